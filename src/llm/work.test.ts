import { describe, expect, it } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import type { Architecture, Layer } from './architecture.js';
import { readArchitecture } from './read-architecture.js';
import tinyConfigs from './oracle/tiny-configs.json' with { type: 'json' };
import oracle from './oracle/transformers.json' with { type: 'json' };
import { countParameters } from './parameters.js';
import { presetArchitecture, presets } from './presets.js';
import type { StageShape } from './shape.js';
import { floatStorage } from './storage.js';
import { samplingOp, stageWork } from './work.js';
import { expectedDistinctExperts } from './work-mlp.js';
import { bytesOf, totalWork, workByClass } from './work-totals.js';

const { batch, prompt } = oracle;
const f32 = floatStorage('float32');
const prefill: StageShape = { phase: 'prefill', batchSize: batch, newTokens: prompt, contextTokens: 0 };
const decode: StageShape = { phase: 'decode', batchSize: batch, newTokens: 1, contextTokens: prompt };

interface OracleFlops {
  prefill: { linear: number; attention: number; ops: Record<string, number> };
  decode: { linear: number; attention: number; ops: Record<string, number> } | null;
}

function oracleFlops(name: string): OracleFlops {
  const flopCounts = (oracle.tiny as Record<string, OracleFlops>)[name];
  if (!flopCounts) throw new Error(`${name} is not in the oracle: run oracle/transformers_oracle.py again`);
  return flopCounts;
}

function flops(a: Architecture, shape: StageShape): { linear: number; attention: number } {
  const ops = stageWork(a, shape, f32);
  const attention = totalWork(ops.filter((op) => op.class === 'attention')).flops;
  return { linear: totalWork(ops).flops - attention, attention };
}

/** Dimensions of a score and of a value, for a layer with attention. */
function dimsOf(attention: Layer['attention']): [score: number, value: number] {
  if (attention.kind === 'recurrent') throw new Error('a recurrence has no scores');
  return attention.kind === 'grouped'
    ? [attention.headDim, attention.headDim]
    : [attention.nopeDim + attention.ropeDim, attention.valueDim];
}

/** Multiply-adds of attention counted one by one by definition: query i sees key j ≤ i within the window. */
function attentionByLoops(a: Architecture, { batchSize, newTokens, contextTokens }: StageShape): number {
  let n = 0;
  for (const { attention } of a.layers) {
    const [scoreDim, valueDim] = dimsOf(attention);
    for (let b = 0; b < batchSize; b++) {
      for (let head = 0; head < attention.headCount; head++) {
        for (let query = contextTokens; query < contextTokens + newTokens; query++) {
          for (let key = 0; key <= query; key++) {
            const { window } = attention;
            const isChunked = attention.kind === 'grouped' && attention.chunked;
            if (window !== null && !isChunked && query - key >= window) continue;
            if (window !== null && isChunked && Math.floor(key / window) < Math.floor(query / window))
              continue;
            for (let d = 0; d < scoreDim; d++) n += 2;
            for (let d = 0; d < valueDim; d++) n += 2;
          }
        }
      }
    }
  }
  return n;
}

describe('FLOPs equal those that PyTorch executes', () => {
  const all = Object.entries(tinyConfigs).map(([name, config]) => [name, readArchitecture(config)] as const);
  const isRecurrent = (a: Architecture) => a.layers.some(({ attention }) => attention.kind === 'recurrent');
  const [recurrent, attending] = [
    all.filter(([, a]) => isRecurrent(a)),
    all.filter(([, a]) => !isRecurrent(a)),
  ];
  // transformers sends each token to every expert of Llama 4, and multiplies AltUp's copies of Gemma 3n with bmm.
  const cases = attending.filter(([name]) => name !== 'llama4' && name !== 'gemma3n');

  it.each(recurrent)('%s: GEMMs of a model with states', (name, a) => {
    const { prefill: oraclePrefill, decode: oracleDecode } = oracleFlops(name);
    const gemmFlops = (shape: StageShape): number =>
      totalWork(stageWork(a, shape, f32).filter((op) => op.gemm !== null)).flops;
    const executed = (ops: Record<string, number>): number => (ops['mm'] ?? 0) + (ops['addmm'] ?? 0);
    expect(gemmFlops(prefill)).toBe(executed(oraclePrefill.ops));
    if (oracleDecode) expect(gemmFlops(decode)).toBe(executed(oracleDecode.ops));
  });

  it.each(attending)('%s: attention by definition', (_, a) => {
    // At decode a latent cache is read in another form, tested below.
    const isLatent = a.layers.some(({ attention }) => attention.kind === 'latent');
    for (const shape of isLatent ? [prefill] : [prefill, decode]) {
      expect(flops(a, shape).attention).toBe(attentionByLoops(a, shape));
    }
  });

  it.each(cases)('%s: linear layers of prefill', (name, a) => {
    // transformers projects every token (OPT-350m's shape), but only the sampled ones are necessary.
    const surplus =
      a.embeddingDim === a.hiddenSize ? 0 : 2 * batch * (prompt - 1) * a.embeddingDim * a.hiddenSize;
    expect(flops(a, prefill).linear).toBe(oracleFlops(name).prefill.linear - surplus);
  });

  it.each(cases)('%s: causal attention of prefill', (name, a) => {
    // Executed without a mask: every query times every key.
    const unmasked = a.layers.reduce((n, { attention }) => {
      const [score, value] = dimsOf(attention);
      return n + 2 * attention.headCount * (score + value) * batch * prompt * prompt;
    }, 0);
    expect(oracleFlops(name).prefill.attention).toBe(unmasked);
  });

  it.each(cases.filter(([name]) => !name.startsWith('deepseek')))('%s: one decode step', (name, a) => {
    // One query: nothing is masked, and a windowed cache contains exactly the window, so both are equal.
    expect(flops(a, decode)).toEqual({
      linear: oracleFlops(name).decode!.linear,
      attention: oracleFlops(name).decode!.attention,
    });
  });

  it.each(cases.filter(([name]) => name.startsWith('deepseek')))('%s: absorbed decode', (name, a) => {
    // transformers expands the whole latent cache again. In the absorbed form only the new token is multiplied with
    // kv_b_proj.
    const first = a.layers[0]?.attention;
    if (first?.kind !== 'latent') throw new Error('not MLA');
    const { headCount: H, kvRank, nopeDim, ropeDim, valueDim } = first;
    const expandedCache = 2 * batch * prompt * kvRank * H * (nopeDim + valueDim) * a.layers.length;
    expect(flops(a, decode).linear).toBe(oracleFlops(name).decode!.linear - expandedCache);
    // Scores over kvRank + ropeDim, values over kvRank, for prompt + 1 keys.
    const perKey = 2 * H * (kvRank + ropeDim + kvRank);
    expect(flops(a, decode).attention).toBe(a.layers.length * batch * (prompt + 1) * perKey);
  });

  it.each(attending)('%s: chunks of a prompt sum to the whole', (_, a) => {
    const chunk = (newTokens: number, contextTokens: number): number =>
      flops(a, { phase: 'prefill', batchSize: 1, newTokens, contextTokens }).attention;
    expect(chunk(3, 0) + chunk(4, 3) + chunk(6, 7)).toBe(chunk(13, 0));
  });
});

describe('FLOPs agree with rules of thumb', () => {
  it.each(presets.map(({ id }) => id))('%s: 2 × active matmul parameters per decode token', (id) => {
    const a = presetArchitecture(id);
    const { linear } = flops(a, { phase: 'decode', batchSize: 3, newTokens: 1, contextTokens: 100 });
    expect(linear).toBe(3 * 2 * countParameters(a).active_matmul);
  });

  it('Llama-2 7B, 512 prompt tokens', () => {
    // By hand: layers 32·(4·4096² + 3·4096·11008) = 6,476,005,376 weights; 2·512 of it = 6.6314e12; lm_head once
    // 2·32000·4096; attention 4·32·4096·(512·513/2).
    const a = presetArchitecture('llama-2-7b');
    const ours = flops(a, { phase: 'prefill', batchSize: 1, newTokens: 512, contextTokens: 0 });
    expect(ours.linear).toBe(2 * 512 * 6_476_005_376 + 2 * 32_000 * 4096);
    expect(ours.attention).toBe(4 * 32 * 4096 * 131_328);
  });
});

describe('bytes', () => {
  const tiny: Record<string, unknown> = {
    model_type: 'llama',
    hidden_size: 8,
    intermediate_size: 12,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    vocab_size: 20,
  };

  it('of a tiny Llama by hand, decode, batch 2, 5 cached tokens, float32', () => {
    const a = readArchitecture(tiny);
    const shape: StageShape = { phase: 'decode', batchSize: 2, newTokens: 1, contextTokens: 5 };
    const ops = [...stageWork(a, shape, f32), samplingOp(a, shape, f32)];
    const [D, I, V, N, kv] = [8, 12, 20, 2, 4]; // kv: 2 heads × 2
    // name: weights, KV read, KV written, activations in, out, in elements
    const layer = (first: boolean): [string, number[]][] => [
      ['input_norm', [D, 0, 0, N * D * (first ? 1 : 2), N * D * (first ? 1 : 2)]],
      ['qkv_proj', [D * (D + 2 * kv), 0, 0, N * D, N * (D + 2 * kv)]],
      ['rotary', [0, 0, 0, N * (D + kv), N * (D + kv)]],
      ['attention', [0, N * 5 * 2 * kv, N * 2 * kv, N * (D + 2 * kv), N * D]],
      ['o_proj', [D * D, 0, 0, N * D, N * D]],
      ['post_attention_norm', [D, 0, 0, 2 * N * D, 2 * N * D]],
      ['gate_up_proj', [2 * D * I, 0, 0, N * D, 2 * N * I]],
      ['swiglu', [0, 0, 0, 2 * N * I, N * I]],
      ['down_proj', [D * I, 0, 0, N * I, N * D]],
    ];
    const expected: [string, number[]][] = [
      ['embedding', [N * D, 0, 0, 0, N * D]],
      ...layer(true),
      ...layer(false),
      ['final_norm', [D, 0, 0, 2 * N * D, N * D]],
      ['lm_head', [V * D, 0, 0, N * D, N * V]],
      ['sample', [0, 0, 0, N * V, N * 2]], // a token id is 8 bytes
    ];
    expect(
      ops.map(({ name, bytes: b }) => [
        name,
        [b.weights, b.kv_read, b.kv_write, b.activations_in, b.activations_out].map((x) => x / 4),
      ]),
    ).toEqual(expected);
  });

  it('of a decode step are the weights without the embedding table, and the cache', () => {
    for (const id of ['llama-2-7b', 'qwen2.5-7b', 'phi-2', 'deepseek-v2-lite']) {
      const a = presetArchitecture(id);
      const shape: StageShape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 1000 };
      const { bytes } = totalWork(stageWork(a, shape, floatStorage('float16')));
      const { total, embedding, by_component } = countParameters(a);
      // k of E experts are read, and one row of the embedding table.
      const moe = a.layers.find(({ mlp }) => mlp.kind === 'moe')?.mlp;
      const idle =
        moe?.kind === 'moe' ? by_component.experts * (1 - moe.expertsPerToken / moe.expertCount) : 0;
      expect(bytes.weights).toBeCloseTo(2 * (total - embedding - idle + a.hiddenSize), -1);
    }
  });

  it('give the 1397 GB/s that gpt-fast reports for 104.9 tok/s with Llama-2 7B', () => {
    // gpt-fast counts parameters without the embedding, and its KV cache (about 200 tokens); A100-80, 2039 GB/s.
    const shape: StageShape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 200 };
    const { bytes } = totalWork(stageWork(presetArchitecture('llama-2-7b'), shape, floatStorage('bfloat16')));
    const gb_s = ((bytes.weights + bytes.kv_read) * 104.9) / 1e9;
    expect(Math.abs(gb_s / 1397 - 1)).toBeLessThan(0.002);
    expect(gb_s / 2039).toBeCloseTo(0.685, 3);
  });

  it('are equal for tied and untied lm_heads', () => {
    const bytes = (tie: boolean): number =>
      totalWork(stageWork(readArchitecture({ ...tiny, tie_word_embeddings: tie }), decode, f32)).bytes_total;
    expect(bytes(true)).toBe(bytes(false));
  });

  it('of a windowed cache stop growing at the window', () => {
    const a = readArchitecture({ ...tiny, model_type: 'mistral', sliding_window: 4 });
    const read = (contextTokens: number): number =>
      totalWork(stageWork(a, { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens }, f32)).bytes
        .kv_read;
    // 2 layers · 2·4 elements · 4 bytes per cached token; the new token is the window's fourth key.
    expect([read(2), read(3), read(4), read(50)]).toEqual([128, 192, 192, 192]);
  });
});

describe('experts', () => {
  it('expected distinct experts equal the mean over every possible routing', () => {
    // 4 experts, 2 per token, 3 tokens: all 6³ equally likely choices.
    const pairs = [0, 1, 2, 3].flatMap((i) => [0, 1, 2, 3].filter((j) => j > i).map((j) => [i, j]));
    let distinctSum = 0;
    for (const x of pairs)
      for (const y of pairs) for (const z of pairs) distinctSum += new Set([...x, ...y, ...z]).size;
    expect(expectedDistinctExperts(4, 2, 3)).toBeCloseTo(distinctSum / pairs.length ** 3, 12);
  });

  it('are k for one token and all experts for many', () => {
    expect(expectedDistinctExperts(8, 2, 1)).toBeCloseTo(2, 12);
    expect(expectedDistinctExperts(256, 8, 10_000)).toBeCloseTo(256, 9);
  });
});

describe('sums', () => {
  const a = presetArchitecture('gemma-3-1b');
  const ops = stageWork(a, { phase: 'prefill', batchSize: 2, newTokens: 700, contextTokens: 100 }, f32);
  const whole = totalWork(ops);

  it('by class sum to the total', () => {
    const parts = workByClass(ops);
    expect(parts.reduce((n, { work }) => n + work.flops, 0)).toBe(whole.flops);
    expect(parts.reduce((n, { work }) => n + work.bytes_total, 0)).toBe(whole.bytes_total);
    expect(parts.reduce((n, { work }) => n + work.ops, 0)).toBe(ops.length);
  });

  it('count each byte once', () => {
    expect(whole.bytes_total).toBe(ops.reduce((n, op) => n + bytesOf(op), 0));
    // Full attention in layer 5, a window of 512 in layer 4: 800 keys exceed the window.
    const attention = (layer: number): number =>
      totalWork(ops.filter((op) => op.layer === layer && op.class === 'attention')).flops;
    expect(attention(5)).toBeGreaterThan(attention(4));
  });
});

it('rejects impossible shapes', () => {
  const a = presetArchitecture('gpt2');
  for (const change of [
    { batchSize: 0 },
    { newTokens: 0.5 },
    { contextTokens: -1 },
    { contextTokens: NaN },
  ]) {
    expect(() => stageWork(a, { ...decode, ...change }, f32)).toThrow(InferscopeError);
  }
});
