import { expect, test } from 'vitest';
import oracle from '../../llm/oracle/encoder-decoders.json' with { type: 'json' };
import { readAnyArchitecture } from '../../llm/read-architecture.js';
import { floatStorage } from '../../llm/storage.js';
import { roofsOfGpu } from './device-roofs.js';
import { predictDocument } from './document.js';

const modelOf = (name: 't5-small' | 'bart-large') => ({
  name,
  architecture: readAnyArchitecture(oracle.models[name].config),
  storage: floatStorage('bfloat16'),
});
const roofs = roofsOfGpu('NVIDIA H200', null);
const predictionOf = async (name: 't5-small' | 'bart-large', request = {}) =>
  (
    await predictDocument(
      modelOf(name),
      roofs,
      { batchSize: [4], inputLen: [200], outputLen: 50, ...request },
      { session: null, tables: [] },
    )
  ).data.stages;

test('a prefill runs both stacks, a decode step the decoder on the caches of both attentions', async () => {
  const [prefill, decode] = await predictionOf('t5-small');
  // T5 small: 6 layers of 512 in each stack, MLP 2048, 8 heads × 64; a matrix is 2 FLOPs per weight and row.
  const [B, S, D, FF, V] = [4, 200, 512, 2048, 32_128];
  const encoder = 6 * (2 * B * S * (4 * D * D + 2 * D * FF) + 4 * B * S * S * D);
  const source = 6 * 2 * B * S * 2 * D * D;
  const step = (context: number) =>
    6 * (2 * B * (6 * D * D + 2 * D * FF) + 4 * B * (context + S) * D) + 2 * B * D * V;
  expect(prefill!.flops).toBeCloseTo(encoder + source + step(1), -3);
  // The mean of 49 steps: the start token, 24 generated ones before it, and its own.
  expect(decode!.flops).toBeCloseTo(step(26), -3);
  const attention = (name: string, stage = prefill) => stage!.ops.filter(({ op }) => op === name);
  expect(attention('attention').map(({ params }) => [params['new_tokens'], params['context']])).toEqual([
    [S, S],
    [S, S],
    [1, 1],
    [1, 1],
  ]);
  expect(attention('cross_attention', decode).map(({ params }) => params['context'])).toEqual([S]);
});

test.each(['eager', 'graph'])('kernels without fusion in %s mode have the same work', async (launch) => {
  const request = { fusion: 'none', launch };
  for (const name of ['t5-small', 'bart-large'] as const) {
    const fused = await predictionOf(name, { launch });
    for (const [i, stage] of (await predictionOf(name, request)).entries()) {
      expect([stage.flops, stage.bytes]).toEqual([fused[i]!.flops, fused[i]!.bytes]);
      expect(stage.kernels).toBeGreaterThan(1.5 * fused[i]!.kernels);
      expect(stage.launched_ms.value!).toBeGreaterThan(fused[i]!.launched_ms.value!);
    }
  }
});

test('refuses positions that a model lacks', async () => {
  await expect(predictionOf('bart-large', { inputLen: [1200] })).rejects.toThrow('positions of bart-large');
  await expect(predictionOf('bart-large', { outputLen: 1200 })).rejects.toThrow('positions of bart-large');
});
