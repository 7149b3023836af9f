import { expect, test } from 'vitest';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { testHome } from '../../session/test-folder.js';
import { storedAnswer } from './stored-answer.js';

const home = testHome();
const results = (format: string, path: string) =>
  imported(home, format, fixture(`benchmark-results-recorded/${path}`));

test('imported results answer latencies, rates and failures', async () => {
  const session = await results('guidellm', 'guidellm-errors.json');
  const answerOf = async (question: string) => (await storedAnswer(session, question)).answer;
  expect(await answerOf('what is the TTFT?')).toMatch(
    /^TTFT at concurrent 2: 44\.6 ms at p50, 48\.3 ms at p99 \(n = 8\)\./,
  );
  expect(await answerOf('how many requests failed?')).toMatch(/^At concurrent 2: 4 of 12 requests failed\./);
  expect(await answerOf('how many tokens per second?')).toMatch(
    /^Throughput at concurrent 2: output 120 tok\/s, 9\.77 req\/s\./,
  );
  expect(await answerOf('what do a million tokens cost at 2 USD per hour?')).toContain('120 tok/s');
});

test('without a metric by our definition the answer says so', async () => {
  const { answer, answered_by: by } = await storedAnswer(
    await results('llama-bench', 'llama-bench.json'),
    'what is the TTFT?',
  );
  expect(by).toBe('none');
  expect(answer).toMatch(/^The imported results have no TTFT by the definition of inferscope/);
});

test('shapes of GEMMs come from a BLAS log without a timeline', async () => {
  const session = await imported(home, 'cublas-log', fixture('cublas-cuda13.0-h200/cublas.log'));
  const { answer } = await storedAnswer(session, 'which GEMM shapes are there?');
  expect(answer).toMatch(/^5 GEMM shapes \(M×N×K\): .*\n- 256×1408×512 float16: 2 calls, 369.MFLOP per call/);
});
