import { expect, test } from 'vitest';
import { whatIfDocumentSchema } from '../../model/documents/explain.js';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { throughputSession } from '../../facts/bench/test-bench-session.js';
import { profileRows } from '../../facts/test-rows.js';
import { sessionOf } from '../../facts/test-session.js';
import { kernel, sessionOf as sessionOfHand, stage } from '../../facts/trace/test-hand.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { explainSession } from '../explain/explain.js';
import { answerableChanges } from './answerable.js';
import { whatIf } from './what-if.js';

const home = testHome();

test("a profile of the embedded engine: uses its CPU's roofs, and changes that need a GPU say so", async () => {
  const session = await sessionOf(home, profileRows());
  const graph = await whatIf(session, ['cudagraph']);
  expect(whatIfDocumentSchema.parse(graph)).toEqual(graph);
  for (const stage of graph.data.stages) {
    expect(stage.after_ms.value).toBeCloseTo(stage.before_ms.value!, 9);
    expect(stage.unchanged.map(({ why }) => why)).toEqual([
      'a CPU has no kernel launches, so there is no graph to capture',
    ]);
  }
  const batch = await whatIf(session, ['batch-size=4']);
  const decode = batch.data.stages.find(({ kind }) => kind === 'decode')!;
  // Twice the sequences take at least as long, and at most twice as long.
  expect(decode.after_ms.value!).toBeGreaterThan(decode.before_ms.value!);
  expect(decode.after_ms.value!).toBeLessThan(2 * decode.before_ms.value!);
  expect(decode.per_token_after_ms!).toBeLessThan(decode.per_token_before_ms!);
  const prefill = batch.data.stages.find(({ kind }) => kind === 'prefill')!;
  expect(prefill.per_sequence_before_ms).toBeCloseTo(prefill.before_ms.value! / 2, 9);
  expect(prefill.per_sequence_after_ms).toBeCloseTo(prefill.after_ms.value! / 4, 9);
  expect([prefill.per_token_before_ms, decode.per_sequence_before_ms]).toEqual([null, null]);
  expect(await answeredWords(session)).toEqual(['batch-size', 'dtype']);
});

/** Changes that pages offer for a session. */
async function answeredWords(session: Session): Promise<string[]> {
  const isAnswered = answerableChanges(session.manifest, (await explainSession(session)).data);
  const words = ['cudagraph', 'no-sync', 'fused-attention', 'batch-size', 'dtype', 'gpu'] as const;
  return words.filter((word) => isAnswered(word));
}

test('a benchmark without timed kernels: each point has its time, but no prediction', async () => {
  const { session, points } = await throughputSession(home, { growth: 0 });
  const { data } = await whatIf(session, ['batch-size=8']);
  const decode = data.stages.filter(({ kind }) => kind === 'decode');
  expect(decode.map(({ point }) => point)).toEqual(points.map(({ point }) => point));
  for (const stage of data.stages) {
    expect(stage.before_ms.value).toBeGreaterThan(0);
    expect(stage.after_ms).toMatchObject({ value: null, reason: { code: 'no_kernel_times' } });
  }
  expect(await answeredWords(session)).toEqual([]);
});

test('steps without a profiler lack kernel times, not the sizes that were recorded', async () => {
  const { data } = await whatIf(
    await openSession((await importSession(fixture('sglang-h200/none.tgz'), home)).id, home),
    ['context-len=16384'],
  );
  for (const { after_ms } of data.stages)
    expect(after_ms).toMatchObject({ value: null, reason: { code: 'no_kernel_times' } });
  expect(data.stages.map(({ kind }) => kind).toSorted()).toEqual(['decode', 'prefill']);
});

test('a session without stages says that it cannot predict', async () => {
  const session = await sessionOf(home, {}, { kind: 'run', workload: null, roofline: null });
  const { data, issues } = await whatIf(session, ['cudagraph']);
  expect(data.stages).toEqual([]);
  expect(issues[0]).toMatchObject({ code: 'no_waterfall' });
});

test('a session with only ranges of its program says which stages changes are predicted for', async () => {
  const session = await sessionOfHand({
    stages: [stage(1, 'other', 0, 100, { raw_name: 'block', phase_id: 1 })],
    kernels: [kernel(1, 10, 90, { stage_id: 1 })],
  });
  const { data, issues } = await whatIf(session, ['fused-elementwise']);
  expect(data.stages).toEqual([]);
  expect(issues[0]?.text).toMatch(/^Changes are predicted for prefill, .* this session has only: /);
});

test('steps of a CPU without a recorded workload: says why there is no prediction', async () => {
  const session = await imported(home, 'kineto', fixture('kineto-torch2.11-cpu/layer.json.gz'));
  const { data, issues } = await whatIf(session, ['fused-elementwise']);
  expect(data.stages).toEqual([]);
  expect(issues[0]).toMatchObject({
    code: 'no_waterfall',
    text: expect.stringContaining('recorded workload'),
  });
});
