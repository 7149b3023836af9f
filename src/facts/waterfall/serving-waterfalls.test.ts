import { expect, test } from 'vitest';
import type { Load } from '../../model/documents/serving.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { tinyWorkload } from '../test-session.js';
import { sessionOf } from '../trace/test-hand.js';
import { fixture, imported } from '../trace/test-import.js';
import { loadWaterfall, resultsWaterfalls } from './serving-waterfalls.js';

const nsPerMs = 1e6;
const load: Load = {
  kind: 'poisson',
  concurrency: null,
  rate_per_s: 4,
  requests: 2,
  warmup_requests: 1,
  ramp_s: 0,
  seconds: null,
};

/** Due at `due` ms, sent 10 ms later, first byte 5 ms after that, first token after `ttft`, done `decode` later. */
const request = (due: number, ttft: number, decode: number, more: Row<'requests'> = {}): Row<'requests'> => ({
  request_id: `r${due}`,
  scheduled_ns: due * nsPerMs,
  sent_ns: (due + 10) * nsPerMs,
  first_byte_ns: (due + 15) * nsPerMs,
  first_token_ns: (due + 10 + ttft) * nsPerMs,
  end_ns: (due + 10 + ttft + decode) * nsPerMs,
  output_tokens: 4,
  status: 'ok',
  warmup: false,
  ...more,
});
const requests = [
  request(0, 900, 900, { warmup: true }),
  request(1000, 100, 300),
  request(2000, 60, 100),
  request(3000, 60, 100, { status: 'http_500' }),
];
const serverSamples = (metric: string, ...values: number[]): Row<'telemetry'>[] =>
  values.map((value, i) => ({ scope: 'server', metric, t_ns: i * nsPerMs, value }));

const inMs = ({ bars }: { bars: { id: string; ms: number }[] }) =>
  Object.fromEntries(bars.map(({ id, ms: value }) => [id, Number(value.toFixed(9))]));

async function waterfallOf(
  telemetry: Row<'telemetry'>[],
  loadLevel = load,
  workload: Parameters<typeof loadWaterfall>[3] = null,
) {
  const session = await sessionOf({ requests, telemetry });
  const database = await session.connect();
  try {
    const stage = (await loadWaterfall(database, 'profiled', loadLevel, workload))!;
    for (const { id, sql, ms: barMs } of stage.bars) {
      if (sql === null) continue;
      const rows = await database.query<{ ms: number }>(sql);
      expect(
        rows.reduce((sum, row) => sum + row.ms, 0),
        id,
      ).toBeCloseTo(barMs, 9);
    }
    for (const row of stage.rows) {
      expect(row.bars.reduce((sum, bar) => sum + bar.ms, 0)).toBeCloseTo(row.measured_ms, 9);
    }
    return stage;
  } finally {
    await database.close();
  }
}

test('proposes to profile a server of the embedded engine with that engine, others with nsys', async () => {
  const captureOf = async (name: string) => {
    const workload = tinyWorkload({ engine: { name, version: null, options: {} } });
    const { bars } = await waterfallOf([], load, workload);
    return bars.find(({ id }) => id === 'kernels.decode')!.better_capture;
  };
  expect(await captureOf('inferscope serve')).toContain('inferscope profile');
  expect(await captureOf('vLLM')).toContain('nsys');
});

test('splits a mean request of an open loop by the metrics of client and server', async () => {
  // The two measured requests take 110 + 100 and 410 ms. From due time to last token: 290; TTFT 80, decode 200, 10
  // before sending.
  const stage = await waterfallOf([
    ...serverSamples('queue_seconds_total', 5, 5.03),
    ...serverSamples('queue_requests_total', 100, 102),
    ...serverSamples('prefill_seconds_total', 1, 1.08),
    ...serverSamples('prefill_requests_total', 100, 102),
    ...serverSamples('e2e_seconds_total', 9, 9.55),
    ...serverSamples('e2e_requests_total', 100, 102),
  ]);
  expect(stage).toMatchObject({
    kind: 'request',
    source: 'serving',
    point: '4 req/s (Poisson)',
    from_schedule: true,
    instances: 2,
    measured_ms: { value: 290 },
    roofline_ms: { value: null, reason: { code: 'remote' } },
  });
  // Queue 30/2, prefill 80/2, network (280 − 275), the remainder of TTFT's 80.
  expect(inMs(stage)).toEqual({
    'kernels.decode': 200,
    'kernels.prefill': 40,
    'host.queue': 15,
    'host.client': 10,
    'host.network': 5,
    unattributed: 20,
  });
});

test("computes the queue by Little's law from a gauge, and network from early response headers", async () => {
  // Three requests were answered between 10 ms (sent) and 2170 ms: 0.03 waiting are 21.6 ms.
  const stage = await waterfallOf(serverSamples('requests_waiting', 0, 0.06, 0.06, 0));
  expect(inMs(stage)).toMatchObject({ 'host.queue': 21.6, 'host.network': 5, unattributed: 53.4 });
  expect(stage.bars.find(({ id }) => id === 'host.queue')).toMatchObject({
    confidence: 'low',
    note: expect.stringContaining('Little') as string,
  });
});

test('does not split TTFT if the server reports nothing', async () => {
  const closed: Load = { ...load, kind: 'closed', concurrency: 1, rate_per_s: null };
  const stage = await waterfallOf([], closed);
  expect(stage.point).toBe('1 user');
  expect(stage.from_schedule).toBeUndefined();
  expect(inMs(stage)).toEqual({ 'kernels.decode': 200, 'host.network': 5, unattributed: 75 });
  expect(stage.bars.at(-1)!.note).toMatch(/queue, prefill, scheduling/);
});

test("uses means or requests of another tool's result file, and needs its end-to-end latency", async () => {
  const home = testHome();
  const resultsOf = async (file: string, importer = 'vllm-bench-serve') => {
    const path = fixture(`benchmark-results-from-schema/${file}.json`);
    const session = await imported(home, importer, path);
    const database = await session.connect();
    const [stage] = await resultsWaterfalls(database);
    const sums = [];
    for (const { sql } of stage?.bars ?? []) {
      const rows = await database.query<{ ms: number }>(sql!);
      sums.push(rows.reduce((sum, row) => sum + row.ms, 0));
    }
    await database.close();
    return { stage, sums };
  };
  const { stage, sums } = await resultsOf('vllm-serve-detailed');
  // mean_ttft_ms and mean_e2el_ms of the file.
  expect(inMs(stage!)).toEqual({
    'kernels.decode': expect.closeTo(108.248, 2) as number,
    unattributed: expect.closeTo(79.655, 2) as number,
  });
  for (const [i, sum] of sums.entries()) expect(sum).toBeCloseTo(stage!.bars[i]!.ms, 9);
  expect((await resultsOf('vllm-serve')).stage).toBeUndefined();
  // The same requests in GuideLLM's file, which defines request_latency differently.
  const guidellm = await resultsOf('guidellm-benchmarks', 'guidellm');
  expect(inMs(guidellm.stage!)).toEqual({
    'kernels.decode': expect.closeTo(108.248, 2) as number,
    unattributed: expect.closeTo(79.655, 2) as number,
  });
  for (const [i, sum] of guidellm.sums.entries()) expect(sum).toBeCloseTo(guidellm.stage!.bars[i]!.ms, 9);
});
