import { cpSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { estimateDocumentSchema } from '../model/documents/estimate.js';
import { estimateFitsDocumentSchema } from '../model/documents/estimate-memory.js';
import { InferscopeError } from '../model/errors.js';
import { terminalView } from '../render/terminal/view.js';
import { rawValue } from '../render/value.js';
import { testFolder } from '../session/test-folder.js';
import { estimateView } from '../views/estimate.js';
import { estimateFitsView } from '../views/estimate-fits.js';
import { estimateFits } from '../facts/estimate/fits.js';
import { findGpu } from './estimate-gpu.js';
import { type EstimateRequest, estimateDocument } from './estimate.js';

const options = (change: Partial<EstimateRequest>): EstimateRequest => ({
  model: 'tinyllama-1.1b',
  batchSize: [1],
  inputLen: [128],
  outputLen: [128],
  phase: 'prefill',
  engine: 'transformers',
  tensorParallelSize: 1,
  pipelineParallelSize: 1,
  expertParallelSize: 1,
  ...change,
});

const codeOf = async (run: Promise<unknown>): Promise<string> => {
  const error: unknown = await run.catch((thrown: unknown) => thrown);
  return error instanceof InferscopeError ? error.code : 'none';
};

describe('estimate', () => {
  it('Llama 3.1 8B: the published parameter count, bfloat16 from its config, 128 KiB of KV cache per token', async () => {
    const document = await estimateDocument(options({ model: 'llama-3.1-8b' }));
    expect(estimateDocumentSchema.parse(document)).toEqual(document);
    // model.safetensors.index.json of meta-llama/Llama-3.1-8B: total_size 16 060 522 496 in bfloat16.
    expect(document.data).toMatchObject({
      weight_format: 'bfloat16',
      parameters: { total: 8_030_261_248, active: 8_030_261_248 },
      weight_bytes: 16_060_522_496,
      // 2 · 32 layers · 8 heads · 128 · 2 B.
      kv_cache_bytes_per_token: 131_072,
      layers: null,
    });
    expect(document.issues).toEqual([]);
  });

  it('TinyLlama prefill by hand: gate and up projection of 22 layers, totals of all parts', async () => {
    const document = await estimateDocument(options({ layers: true, batchSize: [2], inputLen: [100] }));
    expect(estimateDocumentSchema.parse(document)).toEqual(document);
    const { groups, outside, total } = document.data.layers!;
    const gateUp = groups[0]!.modules.find(({ module }) => module === 'gate_up_proj');
    expect(gateUp).toMatchObject({
      parameters: 22 * 2 * 2048 * 5632,
      flops: 22 * 2 * 200 * 2 * 2048 * 5632,
      activation_out_bytes: 22 * 200 * 2 * 5632 * 2,
    });
    for (const key of ['parameters', 'flops', 'bytes'] as const) {
      const parts = [...groups.flatMap(({ modules }) => modules), ...outside];
      expect(parts.reduce((sum, part) => sum + part[key], 0)).toBe(total[key]);
    }
    expect(total.parameters).toBe(document.data.parameters.total);
  });

  it('decode: one token per sequence after the prompt, or after --context-len', async () => {
    const shape = async (change: Partial<EstimateRequest>) =>
      (await estimateDocument(options({ layers: true, phase: 'decode', batchSize: [3], ...change }))).data
        .layers!;
    const after = await shape({});
    expect([after.new_tokens, after.context_tokens]).toEqual([1, 128]);
    // Each sequence reads its 128 cached tokens: 2 · 22 layers · 4 heads · 64 · 2 B per token.
    expect(after.total.kv_read_bytes).toBe(3 * 128 * 2 * 22 * 4 * 64 * 2);
    expect((await shape({ contextLen: [0] })).total.kv_read_bytes).toBe(0);
  });

  it('warns of sequences beyond the positions of the model, which no largest context can have', async () => {
    const codes = async (change: Partial<EstimateRequest>) =>
      (await estimateDocument(options({ model: 'gpt2', ...change }))).issues.map(({ code }) => code);
    expect(await codes({ inputLen: [900], outputLen: [124] })).not.toContain('beyond_positions');
    expect(await codes({ inputLen: [900], outputLen: [8, 125] })).toContain('beyond_positions');
    const { data } = await estimateDocument(
      options({ model: 'gpt2', gpu: '24GiB', inputLen: [8], outputLen: [1024] }),
    );
    expect(data.memory!.points[0]!.largest.context_tokens).toBeNull();
  });

  it('accepts an engine preset, a folder, its config.json and a dtype', async () => {
    const preset = await estimateDocument(options({ model: 'llama-24m', dtype: 'float32' }));
    expect(preset.data.parameters.total).toBe(24_125_952);
    expect(preset.data.weight_bytes).toBe(24_125_952 * 4);
    // Its config states no dtype.
    expect((await estimateDocument(options({ model: 'llama-24m' }))).data.weight_format).toBe('float16');
    const folder = testFolder();
    const config = {
      model_type: 'llama',
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      intermediate_size: 192,
      vocab_size: 512,
      tie_word_embeddings: true,
      torch_dtype: 'float32',
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    for (const model of [folder, join(folder, 'config.json')]) {
      const { data } = await estimateDocument(options({ model }));
      expect([data.parameters.total, data.weight_bytes]).toEqual([131_392, 525_568]);
    }
    const int4 = await estimateDocument(options({ model: folder, dtype: 'int4', engine: 'onnx' }));
    // Linear layers: half a byte and 4 bytes for 32; 32 768 embedding and 320 norm parameters stay float32.
    const linear = 2 * (4096 + 2048 + 2048 + 4096 + 3 * 64 * 192);
    expect(int4.data.weight_bytes).toBe(linear * (0.5 + 4 / 32) + (32_768 + 320) * 4);
    expect(int4.data).toMatchObject({ activation_dtype: 'float32', kv_cache_dtype: 'float32' });
    const half = await estimateDocument(options({ model: 'llama-3.1-8b', engine: 'onnx' }));
    expect([half.data.activation_dtype, half.data.weight_format]).toEqual(['float32', 'float32']);
    // On a GPU int4 is GPTQ, as in what-if: 2.5 bytes for up to 128 weights of a row, the rest in 16 bits.
    const gptq = await estimateDocument(options({ model: folder, dtype: 'int4' }));
    expect(gptq.data).toMatchObject({ weight_format: 'gptq-int4-g128', activation_dtype: 'bfloat16' });
    const scales = 2 * (64 + 32 + 32 + 64 + 2 * 192 + 2 * 64) * 2.5;
    expect(gptq.data.weight_bytes).toBe(linear / 2 + scales + (32_768 + 320) * 2);
  });

  it('rejects unknown models and dtypes by code', async () => {
    expect(await codeOf(estimateDocument(options({ model: 'llama-3.1-9b' })))).toBe('E_MODEL_NOT_FOUND');
    const folder = testFolder();
    expect(await codeOf(estimateDocument(options({ model: folder })))).toBe('E_MODEL_NOT_FOUND');
    writeFileSync(join(folder, 'config.json'), '{"model_type": "frobnicator"}');
    expect(await codeOf(estimateDocument(options({ model: folder })))).toBe('E_MODEL_ARCHITECTURE');
    writeFileSync(join(folder, 'config.json'), '[1]');
    expect(await codeOf(estimateDocument(options({ model: folder })))).toBe('E_MODEL_CONFIG');
    for (const [dtype, code] of [
      ['bfloat16', 'E_DTYPE'],
      ['int8', 'E_DTYPE'],
      ['float32', 'none'],
    ] as const)
      expect(await codeOf(estimateDocument(options({ engine: 'onnx', dtype }))), dtype).toBe(code);
  });

  it('names the tensor-parallel sizes that work', async () => {
    const fixOf = async (model: string, tensorParallelSize: number) => {
      const error: unknown = await estimateDocument(options({ model, tensorParallelSize })).catch(
        (thrown: unknown) => thrown,
      );
      return error instanceof InferscopeError ? error.parts.fix : null;
    };
    // 71 heads and one KV head.
    expect(await fixOf('falcon-7b', 3)).toBe('Give --tensor-parallel-size 1 or 71.');
    // 32 heads and 8 KV heads.
    expect(await fixOf('llama-3.1-8b', 3)).toBe('Give --tensor-parallel-size 1, 2, 4, 8, 16 or 32.');
  });

  it.each(['llama-3.1-70b', 'deepseek-v3', 'gemma-3-27b'])('%s fits 80 columns', async (model) => {
    const document = await estimateDocument(
      options({ model, layers: true, batchSize: [64], inputLen: [8192] }),
    );
    const text = stripVTControlCharacters(terminalView(estimateView(document), { width: 80 }));
    for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
  });
});

describe('memory', () => {
  const memoryOf = async (change: Partial<EstimateRequest>) =>
    (await estimateDocument(options(change))).data.memory!;

  it('Llama-2 7B on an A10G: weights, cache and what fits, computed by hand', async () => {
    const { points, gpu } = await memoryOf({
      model: 'llama-2-7b',
      gpu: 'A10G',
      batchSize: [4],
      inputLen: [1024],
      outputLen: [1],
    });
    // torch's "total capacity of 22.06 GiB".
    expect(gpu!.total_bytes).toBe(Math.round(22.06 * 2 ** 30));
    const [point] = points;
    const bytesOf = (component: string) => point!.lines.find((line) => line.component === component)!.bytes;
    expect(bytesOf('model_weights')).toBe(2 * 6_738_415_616);
    expect(bytesOf('kv_cache')).toBe(4 * 1024 * 524_288);
    // Includes cosines and sines of 128 values for each position.
    expect(bytesOf('activations')).toBe(4 * 1024 * 2 * (4 * 4096 + 3 * 11_008) + 2 * 1024 * 128 * 2);
    expect(point!.fits).toBe(true);
    expect(point!.total_bytes).toBe(point!.lines.reduce((sum, { bytes }) => sum + bytes, 0));
    // 22.06 GiB minus weights (12.55) and context (0.44) leaves 9.07 for sequences of 0.5 GiB cache, 0.09 of activations and about 0.18 of
    // further memory of torch's allocator each.
    expect(Math.abs(point!.largest.batch_size! - 9.07 / 0.77)).toBeLessThan(1.5);
    expect(point!.would_fit).toEqual([]);
  });

  it('vLLM does not start where its pool holds less than one sequence of max_model_len', async () => {
    const request = { model: 'llama-3.1-8b', gpu: '24GB', engine: 'vllm' } as const;
    const [point] = (await memoryOf(request)).points;
    expect(point!.kv_pool!.concurrency).toBeLessThan(1);
    expect(point!.fits).toBe(false);
    const shorter = /^--max-model-len (\d+)$/.exec(point!.would_fit[0]!.change);
    const maxModelLen = Number(shorter?.[1]);
    expect((await memoryOf({ ...request, maxModelLen })).points[0]!.fits).toBe(true);
    expect((await memoryOf({ ...request, maxModelLen: maxModelLen + 16 })).points[0]!.fits).toBe(false);
  });

  it('lists changes that make it fit', async () => {
    const [point] = (await memoryOf({ model: 'llama-2-13b', gpu: '24GB' })).points;
    expect(point!.fits).toBe(false);
    expect(point!.largest).toEqual({ context_tokens: 0, batch_size: 0, concurrency: 0 });
    expect(point!.would_fit.map(({ change }) => change)).toEqual([
      '--quantization fp8-row',
      '--quantization awq-int4-g128',
      '--tensor-parallel-size 2',
      '--tensor-parallel-size 4',
      '--tensor-parallel-size 8',
    ]);
  });

  it('lists give one point per value', async () => {
    const { points } = await memoryOf({ batchSize: [1, 8], inputLen: [128, 1024], outputLen: [32] });
    expect(points.map((point) => [point.batch_size, point.input_len])).toEqual([
      [1, 128],
      [1, 1024],
      [8, 128],
      [8, 1024],
    ]);
  });

  it('accepts a quantization and a cache dtype', async () => {
    const document = await estimateDocument(
      options({ model: 'llama-2-7b', quantization: 'awq-int4-g128', kvCacheDtype: 'float8' }),
    );
    expect(document.data.weight_format).toBe('awq-int4-g128');
    expect(document.data.kv_cache_bytes_per_token).toBe(262_144);
    // AWQ of Llama-2 7B on the hub (TheBloke/Llama-2-7B-AWQ): 3.89 GB.
    expect(document.data.weight_bytes / 1e9).toBeCloseTo(3.89, 1);
  });
});

describe('files', () => {
  const folder = join('test', 'fixtures', 'model-files-tiny');
  // The models have 64 positions.
  const optionsOf = (change: Partial<EstimateRequest>) =>
    options({ inputLen: [32], outputLen: [32], ...change });

  it('safetensors: the same sizes as its own library reads, without the second lm_head', async () => {
    const { data, issues } = await estimateDocument(optionsOf({ model: join(folder, 'qwen2-safetensors') }));
    // ORIGIN.md of the fixture: 43 584 bytes of different tensors, 49 728 in the files.
    expect(data.files).toMatchObject({ bytes: 43_584, parameters: 21_792, tensors: 26 });
    expect(data.files!.excluded).toEqual([
      { what: 'the tied lm_head, stored twice', bytes: 49_728 - 43_584 },
    ]);
    expect(data.parameters.total).toBe(21_792);
    expect(data.memory!.points[0]!.lines[0]!.bytes).toBe(43_584);
    expect(issues).toEqual([]);
    const wide = await estimateDocument(
      optionsOf({ model: join(folder, 'qwen2-safetensors'), dtype: 'float32' }),
    );
    expect(wide.data.memory!.points[0]!.lines[0]!.bytes).toBe(2 * 43_584);
  });

  it('GGUF: a mix of block types, sized from its header', async () => {
    const { data, issues } = await estimateDocument(optionsOf({ model: join(folder, 'qwen2-q5_0.gguf') }));
    expect(data.files).toMatchObject({ format: 'gguf', bytes: 18_624, parameters: 21_792, tensors: 26 });
    expect(Object.keys(data.files!.bytes_by_dtype).sort()).toEqual(['F32', 'Q5_0', 'Q8_0']);
    expect(data.parameters.total).toBe(21_792);
    expect(data.model.model_type).toBe('qwen2');
    expect(data.memory!.points[0]!.lines[0]!.bytes).toBe(18_624);
    expect(issues).toEqual([]);
  });

  it('a truncated shard is an issue, and the config is used', async () => {
    const broken = testFolder();
    cpSync(join(folder, 'qwen2-safetensors'), broken, { recursive: true });
    truncateSync(join(broken, 'model-00002-of-00002.safetensors'), 20_000);
    const { data, issues } = await estimateDocument(optionsOf({ model: broken }));
    expect(data.files).toBeNull();
    expect(issues.map(({ code }) => code)).toEqual(['headers_not_read']);
    expect(data.weight_bytes).toBe(43_584);
    rmSync(join(broken, 'model-00002-of-00002.safetensors'));
    expect((await estimateDocument(optionsOf({ model: broken }))).issues[0]!.text).toContain('00002');
    writeFileSync(join(broken, 'x.gguf'), 'no gguf');
    expect(await codeOf(estimateDocument(optionsOf({ model: join(broken, 'x.gguf') })))).toBe('E_MODEL_FILE');
  });
});

describe('--gpu', () => {
  it.each([
    ['A10G', 'NVIDIA A10G'],
    ['a10', 'NVIDIA A10'],
    ['H200', 'NVIDIA H200'],
    ['rtx 4090', 'NVIDIA GeForce RTX 4090'],
    ['T4', 'Tesla T4'],
    ['h100-pcie', 'NVIDIA H100 PCIe'],
    ['MI300X', 'AMD Instinct MI300X'],
    ['a100-80gb', 'NVIDIA A100-SXM4-80GB'],
    ['H100', 'NVIDIA H100 80GB HBM3'],
    ['rtx4090', 'NVIDIA GeForce RTX 4090'],
    ['A100', 'NVIDIA A100-SXM4-80GB'],
  ])('%s is %s', (typed, name) => {
    expect(findGpu(typed).name).toBe(name);
  });

  it('rejects ambiguous and unknown GPUs', () => {
    expect(() => findGpu('V100')).toThrow('several');
    expect(() => findGpu('Voodoo 2')).toThrow('unknown GPU');
    expect(findGpu('24GB').totalBytes).toBe(24e9);
  });
});

describe('--fits', () => {
  const fits = estimateFits(findGpu('A10G'), options({ inputLen: [512] }));
  const row = (id: string) => fits.data.models.find(({ model }) => model === id)!;

  it('lists the models that users ask for, each with all memory components', () => {
    expect(estimateFitsDocumentSchema.parse(fits)).toEqual(fits);
    for (const id of ['tinyllama-1.1b', 'qwen2-1.5b', 'phi-2', 'mistral-7b', 'llama-2-7b'])
      expect(row(id)).toBeDefined();
    for (const { formats } of fits.data.models) {
      for (const format of formats) {
        const parts =
          format.weight_bytes + format.kv_cache_bytes + format.activation_bytes + format.overhead_bytes;
        expect(parts).toBeCloseTo(format.needed_bytes, 0);
        expect(format.fits).toBe(format.needed_bytes <= fits.data.gpu.total_bytes);
      }
    }
  });

  it('--context-len is the sum of prompt and output; lists are refused', () => {
    const { data } = estimateFits(findGpu('A10G'), options({ contextLen: [639] }));
    expect([data.input_len, data.output_len]).toEqual([639, 0]);
    const same = data.models.find(({ model }) => model === 'llama-2-7b')!;
    // As many tokens in the KV cache as with 512 + 128, since the last one is not read again.
    expect(same.formats[1]!.kv_cache_bytes).toBe(row('llama-2-7b').formats[1]!.kv_cache_bytes);
    expect(() => estimateFits(findGpu('A10G'), options({ batchSize: [1, 8] }))).toThrow(
      '--fits takes one --batch-size, not 1, 8',
    );
  });

  it('Llama-2 7B on 22.06 GiB: not in float32 (25.1 GiB of weights), in bfloat16 (12.6)', () => {
    const [float32, bfloat16] = row('llama-2-7b').formats;
    expect([float32!.fits, bfloat16!.fits]).toEqual([false, true]);
    expect(bfloat16!.weight_bytes / 2 ** 30).toBeCloseTo(12.55, 2);
    expect(row('llama-2-70b').formats.map((format) => format.fits)).toEqual([false, false, false, false]);
  });

  it('shows which models are gated and how much to download', () => {
    expect([row('llama-2-7b').gated, row('qwen2-1.5b').gated, row('gpt2').gated]).toEqual([
      true,
      false,
      false,
    ]);
    // Llama-2 7B: the two safetensors files are 9.98 and 3.50 GB.
    expect(row('llama-2-7b').download_bytes / 1e9).toBeCloseTo(13.48, 2);
    // gpt2's model.safetensors has masks and float32 weights: 548 MB.
    expect(row('gpt2').download_bytes).toBe(548_105_171);
  });
});

it.each([
  { model: 'llama-3.1-70b', gpu: 'H100 80GB HBM3', tensorParallelSize: 8, engine: 'vllm' as const },
  {
    model: 'deepseek-v3',
    gpu: 'H200',
    tensorParallelSize: 8,
    expertParallelSize: 8,
    pipelineParallelSize: 2,
  },
  { model: 'llama-2-13b', gpu: '24GB', batchSize: [1, 8, 64], inputLen: [2048, 100_000] },
])('$model fits 100 columns', async (change) => {
  const text = stripVTControlCharacters(
    terminalView(estimateView(await estimateDocument(options(change))), { width: 100 }),
  );
  for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(100);
});

it('the table of models lists every model with its memory in each format, within 80 columns', () => {
  const document = estimateFits(findGpu('A10G'), options({}));
  const view = estimateFitsView(document);
  const table = view.lead.find((block) => block.type === 'table')!;
  const { models } = document.data;
  expect(table.rows).toHaveLength(models.length);
  const index = models.findIndex(({ formats }) => formats[0]!.fits);
  const cells = table.rows[index]!.cells.map(rawValue);
  expect(cells[1]).toBe(models[index]!.parameters / 1e9);
  expect(cells[2]).toBe(models[index]!.download_bytes / 1e9);
  expect(cells[4]).toBe(models[index]!.formats[0]!.needed_bytes / 1e9);
  const large = models.findIndex(({ formats }) => !formats[0]!.fits);
  expect(rawValue(table.rows[large]!.cells[4]!)).toMatch(/^\(.*\)$/);
  const text = stripVTControlCharacters(terminalView(view, { width: 80 }));
  expect(text).toContain('(no room at 80 columns: gated)');
  for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
});

describe('80 columns, and dropped columns are named', () => {
  const textOf = async (change: Partial<EstimateRequest>, fits: boolean[] = []): Promise<string> => {
    const document = await estimateDocument(options({ model: 'llama-3.1-8b', ...change }));
    // Searching what fits takes seconds, and the layout needs only some figure.
    for (const [index, point] of fits.length === 0 ? [] : document.data.memory!.points.entries()) {
      point.fits = fits[index % fits.length]!;
      point.largest.context_tokens = 100_000 + index;
    }
    const text = stripVTControlCharacters(terminalView(estimateView(document), { width: 80 }));
    for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
    return text.replaceAll(/\s+/g, ' ');
  };

  it('columns that are equal in all rows are shown once above the table', async () => {
    const text = await textOf({ batchSize: [1, 8, 512] }, [true]);
    expect(text).toContain('in all rows: input 128, output 128, weights 16.1 GB batch');
    expect(text).toContain('batch KV cache activations overhead needed ');
  });

  it('columns that do not fit are named', async () => {
    const lists = { batchSize: [1, 512], inputLen: [512, 131_072], outputLen: [128, 1024] };
    const text = await textOf(lists, [true, false]);
    expect(text).toContain('in all rows: weights 16.1 GB batch input output KV cache');
    expect(text).toMatch(/\(no room at 80 columns: overhead/);
    expect(text).toContain('max context');
  });

  it('asks for --gpu when the GPU size is unknown', async () => {
    expect(await textOf({ batchSize: [1, 8] })).toContain('Whether it fits: give --gpu');
  });

  it('GPUs with different memory contents get separate columns', async () => {
    const text = await textOf({
      model: 'gemma-3-27b',
      batchSize: [256],
      contextLen: [131_072],
      pipelineParallelSize: 12,
    });
    for (const label of ['GPU 0', 'GPU 11']) expect(text).toContain(label);
    // Two tables.
    expect(text.match(/weights \d/g)).toHaveLength(2);
  });
});
