import { expect, test } from 'vitest';
import { tinyConfig } from '../../facts/test-session.js';
import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import { benchPoint } from '../../model/bench.js';
import { copiedCache } from './copied-cache.js';

const model: OnnxModel = {
  name: 'tiny',
  modelPath: '',
  config: tinyConfig,
  dtype: 'float32',
  quantization: null,
  weights: 'random',
  weight_bytes: 525_568,
  num_parameters: 131_392,
  tokenizerPath: null,
  logits: 'last',
  kvCache: 'in-place',
  maxContext: 256,
};

test('reports the largest cache if it is significant compared with the weights', () => {
  // 2 layers × 2 (keys, values) × 2 heads × 16 × 4 bytes = 512 bytes per token.
  const small = benchPoint(['throughput'], 1, 60, 40);
  expect(copiedCache(model, [small])).toEqual([]);
  const [issue] = copiedCache(model, [small, benchPoint(['throughput'], 32, 96, 32)]);
  expect(issue).toMatchObject({ code: 'cache_copied', severity: 'warning' });
  // 512 × 32 × 128 = 2 MiB; the weights are 0.5 MiB.
  expect(issue!.text).toContain(
    '2.00 MiB per decode step at batch 32, 96 in + 32 out, compared with 513 KiB of weights',
  );
});

test('no issue for a model with unknown arithmetic', () => {
  const unknown = { ...model, config: { model_type: 'nobody-knows' } };
  expect(copiedCache(unknown, [benchPoint(['latency'], 64, 100, 100)])).toEqual([]);
});
