import { expect, test } from 'vitest';
import type { Workload } from '../model/manifest.js';
import { withContext } from './with-context.js';

const recordedWorkload: Workload = {
  model: {
    name: 'recorded',
    config: { hidden_size: 64, quantization_config: { quant_method: 'fp8' } },
    dtype: 'bfloat16',
    quantization: 'fp8',
    weights: 'trained',
    num_parameters: 10,
    weight_bytes: 20,
  },
  engine: { name: 'vllm', version: '0.26.0', options: {} },
  device: 'cuda',
  threads: null,
  batch_size: 4,
  input_len: null,
  output_len: null,
  tensor_parallel_size: 2,
};

test('without context the workload is the recorded one', () => {
  expect(withContext(recordedWorkload, {})).toBe(recordedWorkload);
  expect(withContext(null, {})).toBeNull();
});

test('given values replace recorded ones, and are listed', () => {
  const workload = withContext(recordedWorkload, { batch_size: 8, input_len: 128 });
  expect(workload).toMatchObject({
    batch_size: 8,
    input_len: 128,
    tensor_parallel_size: 2,
    given_by_user: ['batch_size', 'input_len'],
  });
  expect(workload!.model).toBe(recordedWorkload.model);
});

test('a given dtype replaces all that is known about the storage of weights', () => {
  expect(withContext(recordedWorkload, { dtype: 'float16' })!.model).toEqual({
    name: 'recorded',
    config: { hidden_size: 64 },
    dtype: 'float16',
    quantization: null,
    weights: 'trained',
    num_parameters: null,
    weight_bytes: null,
  });
});

test('a given model makes a workload if none was recorded, without a dtype', () => {
  const workload = withContext(null, { model: { name: 'named', config: { hidden_size: 8 } } });
  expect(workload).toMatchObject({
    model: { name: 'named', dtype: 'unknown' },
    batch_size: null,
    given_by_user: ['model'],
  });
});
