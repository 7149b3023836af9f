import { expect, test } from 'vitest';
import { onCpu, row } from '../../facts/test-microbenchmarks.js';
import { sessionOf } from '../../facts/test-session.js';
import { kernelCase } from '../../llm/kernel-work.js';
import { testHome } from '../../session/test-folder.js';
import { storedAnswer } from './stored-answer.js';

test('kernels of a benchmark are answered by time, or by distance from their roofs', async () => {
  // The example CPU: 100 GFLOP/s and 10 GB/s. 2 GFLOP in 40 ms are half of the peak; the norm has a tenth of the bandwidth.
  const gemm = kernelCase('gemm', 'float32', { m: 1000, n: 1000, k: 1000 });
  const norm = kernelCase('rmsnorm', 'float32', { tokens: 100, hidden: 1000, residual: 0 });
  const large = { rotated_bytes: 96 * 2 ** 20 };
  const session = await sessionOf(
    testHome(),
    { microbenchmarks: [row(gemm, 40e6, large), row(norm, norm.bytes, large)] },
    { kind: 'kernels', artifacts: { 'kernel-plan': onCpu } },
  );
  const slowest = await storedAnswer(session, 'which kernels take longest?');
  expect(slowest.answer).toMatch(/^Longest among 2 measured cases: gemm float32 1000×1000×1000: 40\.0 ms/);
  const farthest = await storedAnswer(session, 'which kernel is farthest from the roofline?');
  expect(farthest.answer).toMatch(
    /^Farthest from its roof among 2 measured cases: rmsnorm float32 .* 10 % of its roof, memory-bound/,
  );
});

test('whether batching pays off is a question about batches', async () => {
  const { topicsOf } = await import('./topics.js');
  const { parseQuestion } = await import('./parsed-question.js');
  expect(topicsOf(parseQuestion('Does batching pay off?'), null as never)[0]!.id).toBe('turning_batch');
});
