import { expect, test } from 'vitest';
import { weightFormat } from './workload.js';

test('a quantization that names the dtype is enough', () => {
  expect(weightFormat('int4', 'MatMulNBits int4, block 32')).toEqual(['MatMulNBits int4, block 32']);
  expect(weightFormat('bfloat16', 'fp8')).toEqual(['bfloat16', 'fp8']);
  expect(weightFormat('bfloat16', null)).toEqual(['bfloat16']);
  expect(weightFormat(null, 'awq')).toEqual(['awq']);
});
