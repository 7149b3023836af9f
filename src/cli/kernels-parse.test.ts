import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { kernelNames } from '../model/kernels.js';
import { backendList, dtypeList, kernelName, positiveSeconds } from './kernels-parse.js';

function fault(run: () => unknown): { code: string; text: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof InferscopeError)
      return { code: error.code, text: Object.values(error.parts).join('\n') };
    throw error;
  }
  throw new Error('nothing was thrown');
}

test('parses kernel names and lists, and suggests the nearest name for a typo', () => {
  expect(kernelName('gemm,rope')).toEqual(['gemm', 'rope']);
  expect(kernelName(' Softmax ')).toEqual(['softmax']);
  expect(kernelName('all')).toEqual(kernelNames);
  expect(fault(() => kernelName('atention')).text).toContain('inferscope kernels attention');
  expect(fault(() => kernelName('matmul'))).toMatchObject({
    code: 'E_USAGE',
    text: expect.stringContaining('inferscope kernels gemm'),
  });
  // Object properties are not kernel names.
  expect(fault(() => kernelName('constructor')).code).toBe('E_USAGE');
});

test('parses dtypes and backends', () => {
  expect(dtypeList('bf16,tf32', ['float32'])).toEqual(['float32', 'bfloat16', 'tfloat32']);
  expect(fault(() => dtypeList('int4'))).toMatchObject({
    code: 'E_DTYPE',
    text: expect.stringContaining('int4'),
  });
  expect(fault(() => dtypeList('mxfp4')).code).toBe('E_DTYPE');
  expect(fault(() => dtypeList('fp5')).code).toBe('E_DTYPE');
  expect(backendList('all')).toEqual(['flash', 'efficient', 'cudnn', 'math']);
  expect(backendList('math', ['flash', 'math'])).toEqual(['flash', 'math']);
  expect(fault(() => backendList('flsh')).text).toContain('--backend flash');
});

test('parses seconds', () => {
  expect([positiveSeconds('0.5'), positiveSeconds('2s')]).toEqual([0.5, 2]);
  for (const text of ['0', '-1', 'x', '']) expect(fault(() => positiveSeconds(text)).code).toBe('E_LENGTHS');
});
