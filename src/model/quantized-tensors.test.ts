import { expect, test } from 'vitest';
import type { ModelTensor } from './model-facts.js';
import { quantizedTensors } from './quantized-tensors.js';

const linear = (more: Partial<ModelTensor>): ModelTensor => ({
  path: 'layers.*.up',
  module: 'Linear',
  type: null,
  shape: [128, 64],
  dtype: 'bfloat16',
  bytes: 2 * 128 * 64,
  count: 4,
  ...more,
});

test('weights with fewer bytes than their dtype are quantized', () => {
  expect(quantizedTensors([linear({})], 'bfloat16')).toBeNull();
  expect(quantizedTensors([linear({ type: 'Int8Tensor', bytes: 128 * 64 + 256 })], 'bfloat16')).toEqual({
    name: 'Int8Tensor',
    bytesPerWeight: 1 + 256 / (128 * 64),
  });
  const packed = linear({ module: 'Linear4bit', dtype: 'uint8', bytes: (128 * 64) / 2 });
  expect(quantizedTensors([packed], 'float16')).toEqual({ name: 'Linear4bit', bytesPerWeight: 0.5 });
  // A tied weight has no bytes of its own, and adapters are not weights of the model.
  const adapter = linear({ path: 'layers.*.lora_A.default', bytes: 1 });
  expect(quantizedTensors([linear({}), adapter, linear({ bytes: 0 })], 'bfloat16')).toBeNull();
  expect(quantizedTensors([linear({})], 'unknown')).toBeNull();
  expect(quantizedTensors([], 'bfloat16')).toBeNull();
});
