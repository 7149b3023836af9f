import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { llamaForward, relativeError, type ForwardConfig } from '../../../test/oracle/llama-forward.js';
import { readOnnx, weightsOf } from '../../../test/oracle/onnx-weights.js';
import { openDecoder } from './decoder.js';
import { writtenModel } from './written-model.js';

const cacheDir = mkdtempSync(join(tmpdir(), 'inferscope-graph-'));
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }));

const tiny = {
  model_type: 'llama',
  hidden_size: 64,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  intermediate_size: 176,
  vocab_size: 96,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
};

const prompts = [
  [3, 91, 17, 17, 60, 5, 44, 8, 29, 70],
  [88, 2, 33, 51, 7, 7, 19, 64, 90, 1],
];
const continuation = [
  [12, 0, 77, 41],
  [5, 95, 66, 13],
];

/** Differences of each family, as config.json fields and as oracle options. */
const cases: Record<string, { config: Record<string, unknown>; oracle?: Partial<ForwardConfig> }> = {
  'llama, 2 queries per KV head': { config: tiny },
  'llama, multi-query, untied': {
    config: { ...tiny, num_key_value_heads: 1, tie_word_embeddings: false },
  },
  'llama with biases': {
    config: { ...tiny, attention_bias: true, mlp_bias: true },
    oracle: { qkv_bias: true, output_bias: true, mlp_bias: true },
  },
  'llama 3.1 rotary scaling': {
    config: {
      ...tiny,
      rope_theta: 500,
      rope_scaling: {
        rope_type: 'llama3',
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 32,
      },
    },
  },
  'linear rotary scaling': { config: { ...tiny, rope_scaling: { rope_type: 'linear', factor: 4 } } },
  'mistral, window of 4': {
    config: { ...tiny, model_type: 'mistral', sliding_window: 4 },
    oracle: { window: () => 4 },
  },
  'qwen2, q/k/v biases, window on the upper layers': {
    config: {
      ...tiny,
      model_type: 'qwen2',
      use_sliding_window: true,
      sliding_window: 5,
      max_window_layers: 1,
    },
    oracle: { qkv_bias: true, window: (layer) => (layer >= 1 ? 5 : null) },
  },
  'qwen3, q/k norms, heads wider than hidden': {
    config: { ...tiny, model_type: 'qwen3', head_dim: 32 },
    oracle: { qk_norm: true },
  },
};

/**
 * Runs prefill and decode steps through the runtime and the oracle; errors are max|Δ|/max|ref| over all logits. float32
 * sums of 64 to 176 terms have errors of about 1e-6.
 */
async function measureErrors(
  name: string,
  options: { dtype: 'float32' | 'int4'; computeInt4?: 'int8' | 'float32' },
) {
  const { config, oracle = {} } = cases[name]!;
  const model = await writtenModel(name, config, { cacheDir, seed: 7, logits: 'all', ...options });
  const weights = weightsOf(readOnnx(model.modelPath).tensors);
  const reference = prompts.map((prompt, row) =>
    llamaForward({ ...(config as unknown as ForwardConfig), ...oracle }, weights, [
      ...prompt,
      ...continuation[row]!,
    ]),
  );
  const decoder = await openDecoder(model, { threads: 1, contextLen: 20 });
  try {
    const inputLen = prompts[0]!.length;
    const whole = await decoder.prefill(prompts.map((prompt, row) => [...prompt, ...continuation[row]!]));
    const withoutCache = relativeError(whole.allLogits!, reference.flat());
    const first = await decoder.prefill(prompts);
    const prefill = relativeError(
      first.allLogits!,
      reference.flatMap((rows) => rows.slice(0, inputLen)),
    );
    const last = relativeError(
      first.logits,
      reference.map((rows) => rows[inputLen - 1]!),
    );
    const decode = [];
    for (let k = 0; k < continuation[0]!.length; k++) {
      const { logits } = await decoder.decode(continuation.map((tokens) => tokens[k]!));
      decode.push(
        relativeError(
          logits,
          reference.map((rows) => rows[inputLen + k]!),
        ),
      );
    }
    return { withoutCache, prefill, last, decode: Math.max(...decode) };
  } finally {
    await decoder.release();
  }
}

describe.each(Object.keys(cases))('%s', (name) => {
  it('equals in float32 the logits of a float64 forward pass, with and without cache', async () => {
    const errors = await measureErrors(name, { dtype: 'float32' });
    for (const error of Object.values(errors)) expect(error).toBeLessThan(1e-4);
  });

  it('equals in int4 the logits of its dequantized weights', async () => {
    const errors = await measureErrors(name, { dtype: 'int4', computeInt4: 'float32' });
    for (const error of Object.values(errors)) expect(error).toBeLessThan(1e-3);
  });

  // Rounding activations to int8 changes a GEMM's result by 0.6 to 2 % of its deviation (linear.test.ts: step/√12, with a
  // row's largest value 3 to 8 times its deviation). 13 sequential GEMMs make 2 to 7 %.
  it('stays within 10 % of the dequantized weights if int8 is permitted', async () => {
    const errors = await measureErrors(name, { dtype: 'int4' });
    for (const error of Object.values(errors)) expect(error).toBeLessThan(0.1);
  });
});

it('has logits on the scale of a trained model, so that softmax is neither flat nor a spike', async () => {
  const model = await writtenModel('scale', tiny, { cacheDir, seed: 3 });
  const decoder = await openDecoder(model, { threads: 1, contextLen: 20 });
  const { logits, allLogits } = await decoder.prefill(prompts);
  await decoder.release();
  const mean = logits.reduce((sum, value) => sum + value, 0) / logits.length;
  const std = Math.sqrt(logits.reduce((sum, value) => sum + (value - mean) ** 2, 0) / logits.length);
  expect(allLogits).toBeNull();
  expect(std).toBeGreaterThan(0.5);
  expect(std).toBeLessThan(3);
});
