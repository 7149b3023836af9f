import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { kernelNames } from '../model/kernels.js';
import { parseBackends, parseDTypes, parseKernelNames, parseMaxSeconds } from './kernels-parse.js';

function errorOf(run: () => unknown): { code: string; text: string } {
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
  expect(parseKernelNames('gemm,rope')).toEqual(['gemm', 'rope']);
  expect(parseKernelNames(' Softmax ')).toEqual(['softmax']);
  expect(parseKernelNames('all')).toEqual(kernelNames);
  expect(errorOf(() => parseKernelNames('atention')).text).toContain('inferscope kernels attention');
  expect(errorOf(() => parseKernelNames('matmul'))).toMatchObject({
    code: 'E_USAGE',
    text: expect.stringContaining('inferscope kernels gemm'),
  });
  // Object properties are not kernel names.
  expect(errorOf(() => parseKernelNames('constructor')).code).toBe('E_USAGE');
});

test('parses dtypes and backends', () => {
  expect(parseDTypes('bf16,tf32', ['float32'])).toEqual(['float32', 'bfloat16', 'tfloat32']);
  expect(errorOf(() => parseDTypes('int4'))).toMatchObject({
    code: 'E_DTYPE',
    text: expect.stringContaining('int4'),
  });
  expect(errorOf(() => parseDTypes('mxfp4')).code).toBe('E_DTYPE');
  expect(errorOf(() => parseDTypes('fp5')).code).toBe('E_DTYPE');
  expect(parseBackends('all')).toEqual(['flash', 'efficient', 'cudnn', 'math']);
  expect(parseBackends('math', ['flash', 'math'])).toEqual(['flash', 'math']);
  expect(errorOf(() => parseBackends('flsh')).text).toContain('--backend flash');
});

test('parses seconds', () => {
  expect([parseMaxSeconds('0.5'), parseMaxSeconds('2s')]).toEqual([0.5, 2]);
  for (const text of ['0', '-1', 'x', '']) expect(errorOf(() => parseMaxSeconds(text)).code).toBe('E_USAGE');
});
