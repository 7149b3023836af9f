import { userDatabase } from '../../facts/derived/test-queries.js';
import { expect, test } from 'vitest';
import { analyzeResultSchema } from '../../model/documents/analyze.js';
import { gap, kernel, sessionOf, stage, us } from '../../facts/trace/test-hand.js';
import { storedAnswer } from './stored-answer.js';
import { overlap, tokensOf } from './words.js';

const steps = [0, 1, 2, 3];
/** Four decode steps of 1 ms: a GEMM of 300 µs, a copy of 100 µs and 8 bytes, and 600 µs of host time. */
const session = await sessionOf({
  stages: steps.map((i) => stage(i + 1, 'decode', 1000 * i, 1000 * (i + 1), { step_index: i })),
  kernels: steps.map((i) =>
    kernel(i + 1, 1000 * i, 300, { name: 'ampere_gemm_128x64', short_name: 'gemm_128x64' }),
  ),
  copies: steps.map((i) => ({
    stage_id: i + 1,
    kind: 'DtoH',
    bytes: 8,
    start_ns: (1000 * i + 300) * us,
    dur_ns: 100 * us,
    exclusive_ns: 100 * us,
    stream: 1,
    src_kind: 'device',
    dst_kind: 'pageable',
  })),
  gaps: steps.map((i) => gap(1000 * i + 400, { host: 600 })),
});

test('word forms with different endings match', () => {
  expect(tokensOf('Which copies are launched by the synchronizations?')).toEqual(
    new Set(['copy', 'launch', 'sync'].map((word) => [...tokensOf(word)][0]!)),
  );
  expect(overlap(tokensOf('launch-bound decode'), 'Launches bound every step')).toBe(2);
});

test.each([
  // 1.2 ms of kernels in total.
  ['Which kernels take longest?', /gemm_128x64 \(GEMM\): 1\.20 ms, 100 %, 4 calls/],
  [
    'How much is copied to the host?',
    /^4 copies between host and device: 32 B in 0\.400 ms[^]*D2H \(pageable\): 4 copies/,
  ],
  [
    'Why is the GPU idle?',
    /^The GPU is idle for 60 % of a decode step \(0\.600 ms of 1\.00 ms under the profiler\)/,
  ],
  ['How long does a decode step take?', /^A decode step takes 1\.00 ms under the profiler \(n = 4\)/],
  ['Where does the time of ampere_gemm_128x64 go?', /gemm_128x64|A decode step takes 1\.00 ms/],
])('%s', async (question, expected) => {
  const found = await storedAnswer(session, question);
  expect(analyzeResultSchema.parse(found)).toEqual(found);
  expect(found.answered_by).toBe('stored');
  expect(found.answer).toMatch(expected);
  // Every cited query returns its rows.
  const database = await userDatabase(session);
  for (const { id, tool, input, rows } of found.queries) {
    expect(found.answer).toContain(`[${id}]`);
    if (tool === 'sql' && rows !== null && rows > 0)
      expect((await database.query(input!)).length).toBeGreaterThan(0);
  }
  await database.close();
});

test('without a question: key sentences and findings', async () => {
  const { answered_by: by, answer } = await storedAnswer(session, null);
  expect([by, answer]).toEqual(['stored', expect.stringContaining('A decode step takes 1.00 ms')]);
});

test('an answer states that the stored data cannot answer the question', async () => {
  const found = await storedAnswer(session, 'What color is the sky?');
  expect(found).toMatchObject({ answered_by: 'none', queries: [], claims: [] });
  expect(found.answer).toContain('cannot be answered without a model');
  const memory = await storedAnswer(session, 'how much memory does the KV cache take?');
  const silent = await storedAnswer(session, 'are there recompilations?');
  expect(silent.answer).toMatch(/recompil/i);
  expect([memory.answered_by, memory.answer]).toEqual(['none', expect.stringContaining('was not recorded')]);
});
