import { expect, test } from 'vitest';
import { chooseCases } from './kernels-cases.js';

const options = { runs: 3, maxSeconds: 1, check: true, graph: true, seed: 0, tag: [], output: '.' };

test('names the kernels that do not have a requested dtype; the default dtypes are of all', async () => {
  const issuesOf = async (names: Parameters<typeof chooseCases>[0], dtypes: string[]) =>
    (
      await chooseCases(names, options as unknown as Parameters<typeof chooseCases>[1], {
        gpu: false,
        dtypes,
      })
    ).issues.map(({ code, severity, text }) => [code, severity, text]);
  expect(await issuesOf(['swiglu', 'gemm'], ['float32', 'int8'])).toEqual([
    [
      'dtype_left_out',
      'warning',
      expect.stringContaining('Not measured in int8: swiglu. Only gemm and linear'),
    ],
  ]);
  expect(await issuesOf(['gemm'], ['int8'])).toEqual([]);
  for (const dtype of ['float32', 'bfloat16']) expect(await issuesOf([], [dtype])).toEqual([]);
  await expect(issuesOf(['swiglu'], ['int8'])).rejects.toMatchObject({ code: 'E_DTYPE' });
});
