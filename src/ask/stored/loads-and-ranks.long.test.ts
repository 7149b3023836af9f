import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { answerer } from './stored-answer.js';

testHome();

async function answerOf(file: string, ...questions: string[]): Promise<string[]> {
  const { answer, close } = await answerer(
    await openSession((await importSession(`test/fixtures/${file}.tgz`)).id),
  );
  try {
    const answers: string[] = [];
    for (const question of questions) answers.push((await answer(question)).answer);
    return answers;
  } finally {
    await close();
  }
}

test('latencies are of the load in the question, else of the last one', async () => {
  const [asked, last, other, rate] = await answerOf(
    'vllm-0.26-h200/bench-serve',
    'what is the TTFT at 16 users?',
    'what is the TTFT?',
    'what is the TTFT at 6 users?',
    'how many tokens per second at 16 users?',
  );
  expect(asked).toMatch(/^At 16 users TTFT is 56\.9 ms at p50/);
  expect(last).toMatch(/^At the last load \(32 users\) TTFT is 228 ms/);
  expect(rate).toMatch(/^At 16 users: output 4.680 tok\/s/);
  // Not the 16 users.
  expect(other).toMatch(/^At the last load \(32 users\)/);
});

test('the slow rank is the one with the hot experts, not a list of waits', async () => {
  const [answer] = await answerOf('hot-expert-2h200/hot', 'which rank is slow?');
  expect(answer).toMatch(/^Uneven experts: rank 1 /);
});

test('sampled memory is named by what it is', async () => {
  const [answer] = await answerOf('unprepared-h200/bart', 'how much memory does it need?');
  expect(answer).toContain('2.91 GiB (GPU memory)');
  expect(answer).toContain('- resident memory of the processes: ');
});

test('an amount of communication is answered for every kind of step, not only where it is a finding', async () => {
  const [amount, problem] = await answerOf(
    'vllm-tp2-h200/tp2',
    'How much time is communication?',
    'is NCCL communication a problem?',
  );
  expect(amount).toMatch(/^Communication takes 83\.9 µs of a decode step/);
  expect(amount).toContain('Communication takes 2.00 ms of a mixed step');
  expect(amount).toMatch(/of a prefill: .* in 17 kernels\./);
  expect(amount).not.toContain('vectorized_elementwise');
  expect(problem).toMatch(/^Yes: Exposed communication/);
});

test('kernels have the names of the report, where several of PyTorch have one bare name', async () => {
  const { id } = await importSession('test/fixtures/diagnosis-stock-validation/sk_14_experts-fault.tgz');
  const { answer, close } = await answerer(await openSession(id));
  try {
    const { answer: text } = await answer('which kernels take longest?');
    expect(text).toContain('The longest kernel is nvjet ');
    expect((await answer('are there stragglers between ranks?')).answer).not.toContain('was not found');
  } finally {
    await close();
  }
});

test('copies, graphs and launch calls are counted on the rank that is shown, as kernels are', async () => {
  const { id } = await importSession('test/fixtures/vllm-tp2-h200/tp2.tgz');
  const session = await openSession(id);
  const { answer, close } = await answerer(session);
  const database = await session.connect();
  try {
    for (const [question, table] of [
      ['are there copies between host and device?', 'copies'],
      ['are CUDA graphs used?', 'kernels'],
      ['how many launches?', 'api_calls'],
      ['which kernels take longest?', 'kernels'],
    ] as const) {
      const { queries } = await answer(question);
      const filters = queries.flatMap(({ input }) => input?.match(/WHERE .*(?=\n|$)/)?.[0] ?? []);
      const filter = filters.find((text) => text.includes('capture_id'))!;
      const [row] = await database.query<{ ranks: number }>(
        `SELECT count(DISTINCT rank) AS ranks FROM ${table} ${filter}`,
      );
      expect(row!.ranks, question).toBe(1);
    }
  } finally {
    await database.close();
    await close();
  }
});
