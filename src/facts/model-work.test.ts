import { expect, test } from 'vitest';
import { gpuWorkload } from './bench/test-bench.js';
import { workloadModel } from './model-work.js';

test.each([
  ['unknown', 'the dtype of the model is not recorded (add it with --dtype)'],
  ['q9_x', 'the dtype of the model is not recorded, only as "q9_x" (add it with --dtype)'],
])('a model with the dtype %s says what to add', (dtype, text) => {
  const workload = gpuWorkload();
  const config = { ...workload.model!.config };
  delete config['torch_dtype'];
  delete config['dtype'];
  const model = workloadModel({ ...workload, model: { ...workload.model!, dtype, config } });
  expect(model).toMatchObject({ value: null, reason: { code: 'no_dtype', text } });
});
