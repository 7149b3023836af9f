import { afterAll, beforeAll, expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../../advice/explain/explain.js';
import { compareSessions } from '../../compare/sessions/compare.js';
import { analyzeTrace } from './trace.js';

// vLLM 0.26 in one process on an H200 under nsys: TinyLlama's shape, three runs of 4 prompts with 128 tokens each, to
// 32 tokens.
const home = testHome();
const layers = 22;
let id: string;
let database: SessionDatabase | null = null;
const query = <T extends object>(sql: string) => database!.query<T>(sql);

beforeAll(async () => {
  ({ id } = await importSession('test/fixtures/vllm-0.26-h200/run-in-process.tgz', home));
  database = await (await openSession(id, home)).connect();
}, 30_000);
afterAll(() => database?.close());

test('stages are the batches of the program', async () => {
  expect(
    await query(
      `SELECT kind, count(*)::INTEGER AS n, min(batch_size) AS min_batch, max(batch_size) AS max_batch, sum(new_tokens)::INTEGER AS tokens
       FROM stages WHERE kind IN ('prefill', 'decode') GROUP BY kind ORDER BY kind`,
    ),
  ).toEqual([
    { kind: 'decode', n: 3 * 31, min_batch: 4, max_batch: 4, tokens: 3 * 31 * 4 },
    { kind: 'prefill', n: 3, min_batch: 4, max_batch: 4, tokens: 3 * 4 * 128 },
  ]);
});

test('each iteration takes the time that the program printed, without its own work around the engine', async () => {
  const iterations = await query<{ ms: number }>(
    `SELECT (max(end_ns) - min(start_ns)) / 1e6 AS ms FROM stages WHERE kind IN ('prefill', 'decode') GROUP BY iteration ORDER BY iteration`,
  );
  // From the session's stdout.log: "seconds" of turn 0, 1 and 2.
  const printed = [99.6, 77.2, 77.1];
  iterations.forEach(({ ms }, iteration) => {
    expect(ms).toBeLessThan(printed[iteration]!);
    expect(ms).toBeGreaterThan(0.85 * printed[iteration]!);
  });
  expect(iterations).toHaveLength(3);
});

test('a decode step has the kernels of its layers, each with a class', async () => {
  const rows = await query<{ class: string; n: number }>(
    `SELECT k.class, count(*) / 93 AS n FROM kernels k JOIN stages s USING (stage_id) WHERE s.kind = 'decode' GROUP BY k.class`,
  );
  const kernelsPerStep = Object.fromEntries(rows.map((row) => [row.class, row.n]));
  // QKV, output, gate and up, down. One of them is two kernels, split over K.
  expect(kernelsPerStep['gemm']).toBe(5 * layers);
  // FlashAttention 3: forward and combine per layer, and one scheduling kernel per step.
  expect(kernelsPerStep['attention']).toBe(2 * layers + 1);
  expect(kernelsPerStep['norm']).toBe(2 * layers + 1);
  // Gated SiLU, and the rotary embedding.
  expect(kernelsPerStep['elementwise']).toBe(2 * layers);
  // One cache write per layer, and the inputs of a step.
  expect(kernelsPerStep['copy']).toBeGreaterThanOrEqual(layers);
  expect(kernelsPerStep['other'] ?? 0).toBe(0);
});

test('the waterfall of a decode step sums to its measured time, and there is no pause before the first request', async () => {
  const { data } = await explainSession(await openSession(id, home));
  const decode = data.stages.find(({ kind }) => kind === 'decode')!;
  const sum = decode.bars.reduce((total, { ms }) => total + ms, 0);
  expect(sum).toBeCloseTo(decode.measured_ms.value!, 3);
  expect(decode.bars.find(({ id: bar }) => bar === 'unattributed')!.ms).toBeLessThan(
    0.01 * decode.measured_ms.value!,
  );
  expect(data.findings.map(({ rule }) => rule)).not.toContain('gpu_idle_between_requests');
  // 93 decode steps wait longer in total than three prefills.
  expect(data.findings.slice(0, 2)).toMatchObject([
    { rule: 'host_bound', stage: 'decode' },
    { rule: 'launch_bound', stage: 'prefill' },
  ]);
});

test('phases, classes, kernels, launches and a comparison count sampling in the step around it', async () => {
  const session = await openSession(id, home);
  const { data } = await analyzeTrace(session);
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  const compared = await compareSessions([session, { ...session, id: 'again' }]);
  for (const kind of ['decode', 'prefill', 'sampling'] as const) {
    const { kernels, launches } = data.phases.find((phase) => phase.kind === kind)!;
    const ofKind = data.kernels.flatMap((row) => row.phases.filter((phase) => phase.kind === kind));
    const classes = data.classes.find((group) => group.kind === kind)!.rows;
    const inComparison = compared.data.kernels.filter(({ phase }) => phase === kind);
    expect([kind, sum(classes.map((row) => row.per_instance))]).toEqual([kind, expect.closeTo(kernels, 6)]);
    expect([kind, sum(ofKind.map((phase) => phase.per_instance))]).toEqual([
      kind,
      expect.closeTo(kernels, 6),
    ]);
    // A comparison lists each kernel once, in its step.
    if (kind !== 'sampling')
      expect([kind, sum(inComparison.map(({ values }) => values[0]!.count))]).toEqual([
        kind,
        expect.closeTo(kernels, 6),
      ]);
    expect(data.launches.phases.find((phase) => phase.kind === kind)).toMatchObject({ kernels, launches });
  }
});
