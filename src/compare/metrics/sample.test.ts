import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { homeFolders } from '../../session/home.js';
import { profileRows } from '../../facts/test-rows.js';
import { type Rows, sessionOf } from '../../facts/test-session.js';
import { checkBaseline } from './check.js';
import { mixedWorkloads, sampleSessions } from './sample.js';
import { idleClient } from '../../facts/serving/test-client.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-baseline-'));
const home = homeFolders({ INFERSCOPE_HOME: root });
afterAll(() => rmSync(root, { recursive: true }));

const sessionWith = (rows: Rows) => sessionOf(home, rows, {});
const keyed = (found: Awaited<ReturnType<typeof sampleSessions>>) =>
  Object.fromEntries(found.metrics.map((metric) => [metric.id, metric]));

test('a profile: launches are the unit, without warm-up and profiled execution', async () => {
  const found = keyed(await sampleSessions([await sessionWith(profileRows())]));
  // test-rows.ts: prefill 9, 11 | 19, 21 ms and a sampling of 1 ms each; means of the launches 11 and 21.
  expect(found['ttft_ms']).toMatchObject({ basis: 'launches', values: [11, 21], value: 16, better: 'lower' });
  // Two steps of 4 + 6 | 8 + 10 ms, each with 0.5 sampling, and three gaps of 0.25 ms.
  expect(found['tpot_ms']!.values).toEqual([(10 + 1 + 0.75) / 2, (18 + 1 + 0.75) / 2]);
  expect(found['output_tokens_per_s']).toMatchObject({ better: 'higher', basis: 'launches' });
  // Peak memory is known for both processes: 850 000 and 9e9 bytes.
  expect(found['peak_memory_bytes']!.values.toSorted((a, b) => a - b)).toEqual([850_000, 9e9]);
  expect(Object.keys(found).some((id) => id.includes('profiled'))).toBe(false);
});

test('a session without times is an error that fits bench compare and baselines', async () => {
  const session = await sessionWith({ ...profileRows(), iterations: [], stages: [], memory: [] });
  await expect(sampleSessions([session])).rejects.toThrow(`there is nothing to compare in ${session.id}`);
});

test('runs of different dtypes are one baseline only with a warning', async () => {
  const sessions = [await sessionWith(profileRows()), await sessionWith(profileRows())];
  expect(mixedWorkloads(await sampleSessions(sessions))).toEqual([]);
  sessions[1]!.manifest.workload!.model!.dtype = 'int4';
  const [issue] = mixedWorkloads(await sampleSessions(sessions));
  expect(issue!.text).toMatch(/^The sessions are not runs of one workload \(dtype \w+ \| int4\): /);
});

test('each size is a point', async () => {
  const iteration = (batch_size: number, launch: number, ms: number): Row<'iterations'> => ({
    launch,
    batch_size,
    input_len: 10,
    output_len: 5,
    start_ns: 0,
    end_ns: ms * 1e6,
    ttft_ns: 1e6,
    warmup: false,
  });
  const rows = [iteration(1, 0, 10), iteration(1, 1, 12), iteration(8, 0, 20), iteration(8, 1, 22)];
  const found = keyed(await sampleSessions([await sessionWith({ iterations: rows })]));
  expect(found['batch 1, 10 → 5 · e2e_ms']!.values).toEqual([10, 12]);
  // 8 sequences × 5 tokens in 20 and 22 ms.
  expect(found['batch 8, 10 → 5 · output_tokens_per_s']!.values).toEqual([2000, 40 / 0.022]);
});

test('a load test of one load names it, as one of several loads does', async () => {
  const begin = { begin_ns: 0, end_ns: 1e9 };
  const load = {
    kind: 'closed',
    concurrency: 2,
    rate_per_s: null,
    requests: 2,
    warmup_requests: 0,
    ramp_s: 0,
    seconds: null,
  };
  const plan = {
    target: { url: 'http://h', api: 'completions', model: 'm', server: null, metrics_url: null },
    prompts: { seed: 1, seed_used_before: false, input_len: 100, output_len: 4, tokenizer: null },
    slo: null,
    probe: null,
    points: [{ execution_id: 'clean', load, client: idleClient, ...begin }],
  };
  const requests: Row<'requests'>[] = [1, 2].map((ms) => ({
    status: 'ok',
    sent_ns: 0,
    ttft_ns: ms * 1e6,
    end_ns: ms * 2e6,
    output_tokens: 6,
  }));
  const session = await sessionOf(home, { requests }, { kind: 'bench', artifacts: { 'load-plan': plan } });
  expect(keyed(await sampleSessions([session]))['2 users · ttft_ms']!.values).toEqual([1, 2]);
});

test('requests of one run are repeats; several sessions are launches', async () => {
  const request = (ttft: number): Row<'requests'> => ({
    status: 'ok',
    sent_ns: 0,
    ttft_ns: ttft * 1e6,
    end_ns: ttft * 2e6,
    output_tokens: 6,
  });
  const failed: Row<'requests'> = { status: 'failed', sent_ns: 0, ttft_ns: 1, end_ns: 2 };
  const run = (first: number) => sessionWith({ requests: [request(first), request(first + 2), failed] });
  const [a, b] = [await run(10), await run(20)];
  expect(keyed(await sampleSessions([a]))['ttft_ms']).toMatchObject({ basis: 'repeats', values: [10, 12] });
  // Twelve tokens; the later of the two ends is at 2 × 12 ms.
  expect(keyed(await sampleSessions([a]))['output_tokens_per_s']).toMatchObject({
    value: 500,
    basis: 'none',
  });
  expect(keyed(await sampleSessions([a, b]))['ttft_ms']).toMatchObject({
    basis: 'launches',
    values: [11, 21],
  });
});

const metricRow = (change: Row<'metrics'>): Row<'metrics'> => ({
  capture_id: 'r0',
  point: 0,
  label: 'rate inf',
  name: 'ttft',
  same_definition: true,
  statistic: 'mean',
  value: 10,
  unit: 'ms',
  n: 100,
  definition: '',
  source: 'file: mean_ttft_ms',
  ...change,
});

test('result files: the recomputed figure comes first, and its deviation gives the interval within the run', async () => {
  const recomputed = { source: 'recomputed from 100 requests' };
  const found = keyed(
    await sampleSessions([
      await sessionWith({
        metrics: [
          metricRow({}),
          metricRow({ ...recomputed, value: 11 }),
          metricRow({ ...recomputed, statistic: 'sd', value: 2 }),
          metricRow({ name: 'completed', statistic: 'value', unit: 'requests' }),
          metricRow({ name: 'duration', statistic: 'value', unit: 's' }),
        ],
      }),
    ]),
  );
  expect(Object.keys(found)).toEqual(['ttft']);
  // t(99) = 1.98422 × 2 / √100
  expect(found['ttft']).toMatchObject({ value: 11, basis: 'interval' });
  expect(found['ttft']!.interval!.ci95[1]).toBeCloseTo(11.396844, 5);
  expect(found['ttft']!.interval!.over_launches).toBe(false);
});

test('repeated runs of one label are launches: appended lines, or several files', async () => {
  const run = (values: number[]) =>
    sessionWith({
      metrics: values.flatMap((value, i) => [
        metricRow({ capture_id: `r${i}`, value }),
        metricRow({
          capture_id: `r${i}`,
          value: 100 / value,
          unit: 'tok/s',
          name: 'output_throughput',
          statistic: 'value',
        }),
      ]),
    });
  const base = await sampleSessions([await run([10.1, 10.3, 9.9, 10.2])]);
  const now = await sampleSessions([await run([11.0, 10.6, 11.3, 10.9, 11.1])]);
  expect(keyed(base)['ttft']).toMatchObject({ basis: 'launches', values: [10.1, 10.3, 9.9, 10.2] });
  const found = checkBaseline({ name: 'main', set_at: '2026-11-21T00:00:00.000Z', ...base }, now, {
    tolerance: 0.05,
    withinProcess: false,
  });
  expect(found.comparisons.map(({ id, verdict }) => [id, verdict])).toEqual([
    ['ttft', 'regression'],
    ['output_throughput', 'regression'],
  ]);
});

test('rejects a session without measurements', async () => {
  await expect(sampleSessions([await sessionWith({})])).rejects.toMatchObject({ code: 'E_USAGE' });
});

test('the loads of a load test are compared by what they are, not by their number', async () => {
  const { id } = await importSession('test/fixtures/vllm-0.26-h200/bench-serve.tgz', home);
  const { metrics } = await sampleSessions([await openSession(id, home)]);
  expect([...new Set(metrics.map(({ point }) => point))]).toEqual(['4 users', '16 users', '32 users']);
});
