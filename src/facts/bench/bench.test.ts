import { describe, expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import { type BenchPlan, benchDocumentSchema, type BenchPointResult } from '../../model/documents/bench.js';
import { expectClose, reasonOf } from '../test-rows.js';
import { analyzeBench } from './bench.js';
import { planOf } from './test-bench.js';
import { b2, b4, codes, gpuSession, rows } from './test-bench-session.js';

describe('a benchmark counted by hand', async () => {
  const session = await gpuSession();
  const { data, issues } = await analyzeBench(session);
  const [variant] = data.variants;
  const [first, second, third] = variant!.points as [BenchPointResult, BenchPointResult, BenchPointResult];

  test('the document matches its schema', async () => {
    const document = await analyzeBench(await gpuSession());
    expect(benchDocumentSchema.parse(structuredClone(document))).toEqual(document);
    expect(data.engine).toMatchObject({ device_name: 'NVIDIA H200', model: 'tiny', dtype: 'float16' });
  });

  test('with several ranks the first counts: steps of others are not more tokens', async () => {
    const allRows = rows();
    const { stages = [], iterations = [] } = allRows;
    const onRank1 = <T extends { pid?: number | null }>(row: T) => ({
      ...row,
      rank: 1,
      pid: row.pid! + 1000,
    });
    const rowsOfRanks = {
      ...allRows,
      stages: [...stages, ...stages.map((row) => ({ ...onRank1(row), stage_id: row.stage_id! + 1000 }))],
      iterations: [...iterations, ...iterations.map(onRank1)],
    };
    const [rankVariant] = (await analyzeBench(await gpuSession({}, rowsOfRanks))).data.variants;
    expect(rankVariant!.points[0]!.latency).toEqual(first.latency);
  });

  test('latency: excludes warm-up and other points, with launches as the unit', () => {
    const { latency } = first;
    expect(latency.ttft_ms).toMatchObject({
      n: 4,
      launches: 2,
      mean: 16,
      min: 10,
      max: 22,
      ci95_over_launches: true,
    });
    // Launch means 11 and 21: s = 7.0711, t(1) = 12.7062, half = 12.7062 · 7.0711 / √2 = 63.531.
    const { ci95 } = latency.ttft_ms as { ci95: [number, number] };
    expect(ci95).toEqual([0, expect.closeTo(16 + 63.531, 3)]);
    // (20 + 0.25 + … − 10) / 2: 5.875 ms in the first launch, 9.875 in the second.
    expect(latency.tpot_ms).toMatchObject({ mean: 7.875 });
    expect(latency.e2e_ms).toMatchObject({ mean: (21.75 + 23.75 + 39.75 + 41.75) / 4 });
    // Eight tokens: 4.75, 6.75 twice and 8.75, 10.75 twice.
    expect(latency.itl_ms).toMatchObject({ n: 8, mean: 7.75, p50: 7.75, min: 4.75, max: 10.75, outliers: 0 });
    expect(latency.prefill_device_ms).toMatchObject({ n: 4, mean: 5, sd: 0 });
    expect(latency.decode_device_ms).toMatchObject({ n: 8, mean: 2.5 });
    expect(second.latency.decode_device_ms).toMatchObject({
      value: null,
      reason: { code: 'no_device_time' },
    });
    expect(first.repeats).toHaveLength(4);
    expect(first.warmup).toMatchObject({ iterations: { value: 1, n: 2 }, stable: false });
  });

  test('throughput: output tokens over the mean time are the headline', () => {
    const { throughput } = first;
    // Not the mean of the rates of the repeats, which is above tokens / seconds.
    const mean = (4 * 2 * 3 * 1000) / (21.75 + 23.75 + 39.75 + 41.75);
    expectClose(throughput.output_tokens_per_s, mean);
    expectClose(throughput.total_tokens_per_s, (mean * 7) / 3);
    expectClose(throughput.requests_per_s, mean / 3);
    expectClose(throughput.decode_tokens_per_s, 2000 / 7.875);
    expectClose(throughput.prefill_tokens_per_s, 8000 / 16);
    expectClose(second.throughput.output_tokens_per_s, 2 * mean);
  });

  test('device work is per step, idle time is relative to the clean repeats', () => {
    const work = first.device_work;
    expectClose(work.decode_kernel_ms, 1.5);
    expectClose(work.decode_kernels, 10);
    expectClose(work.prefill_kernel_ms, 4);
    expectClose(work.decode_idle_share, 1 - 1.4 / 7.75);
    expectClose(work.prefill_idle_share, 1 - 4 / 16);
    expect(reasonOf(second.device_work.decode_idle_share)).toBe('not_watched');
  });

  test('idle shares equal SQL over the same rows', async () => {
    const database = await session.connect();
    const busy = (kind: string) =>
      `(SELECT sum(busy_ns) / sum(stages) FROM device_work WHERE point = '${b2.point}' AND kind = '${kind}')`;
    const timed = `iterations i WHERE NOT i.warmup AND i.point = '${b2.point}'`;
    const [row] = await database.query<{ prefill: number; decode: number }>(
      `SELECT 1 - ${busy('prefill')} / (SELECT avg(ttft_ns) FROM ${timed}) AS prefill,
         1 - ${busy('decode')} / (SELECT avg(w) FROM (
           SELECT coalesce(lead(s.start_ns) OVER (PARTITION BY s.pid, s.iteration ORDER BY s.start_ns), i.end_ns) - s.start_ns AS w
           FROM stages s JOIN (FROM ${timed}) i USING (pid, iteration) WHERE s.kind = 'decode')) AS decode`,
    );
    await database.close();
    expectClose(first.device_work.prefill_idle_share, row!.prefill);
    expectClose(first.device_work.decode_idle_share, row!.decode);
  });

  test('a point that did not fit is a limit, not a zero', () => {
    expect(third).toMatchObject({ outcome: 'out_of_memory', text: 'CUDA out of memory.\nTried 2 GiB' });
    expect(third.latency.ttft_ms).toMatchObject({ value: null });
    expect(third.throughput.output_tokens_per_s).toMatchObject({ value: null });
    expect(third.device_work.decode_idle_share).toMatchObject({ value: null });
    expect(third.flags).toEqual([]);
    expect(variant!.flags.find(({ code }) => code === 'out_of_memory')!.text).toBe(
      'batch 8, 4 in + 3 out does not fit: CUDA out of memory; largest measured 4',
    );
    expect(issues.find(({ code }) => code === 'points_missing')!.text).toBe(
      '1 of 3 points were not measured.',
    );
  });

  test('flags appear on the expected points only', () => {
    expect(codes(first)).toEqual([
      'high_variance warning',
      'high_variance warning',
      'warmup_unstable warning',
    ]);
    // Samples of the second point are 80 and 90 %, none of them settled: neither good nor low.
    expect(codes(second)).toEqual([
      'high_variance warning',
      'high_variance warning',
      'throttling warning',
      'other_process warning',
      'not_interleaved info',
    ]);
    expect(second.flags.find(({ code }) => code === 'throttling')!.text).toBe(
      'GPU 0: power cap in 50 % of the samples',
    );
    expect(codes(variant!)).toEqual(['other_process warning', 'out_of_memory warning']);
    expect(variant!.flags[0]!.text).toContain('GPU 0 had 3.00 GiB in use by another process before');
  });
});

test('takes reasons from the engine, and rejects a session without a plan', async () => {
  const notMeasured: BenchPlan['not_measured'] = [
    { figure: 'device_time', code: 'http_only', text: 'over HTTP only' },
    { figure: 'idle_share', code: 'http_only', text: 'over HTTP only' },
    { figure: 'launches', code: 'one_server_process', text: 'one server process' },
  ];
  const session = await gpuSession(
    { artifacts: { 'bench-plan': planOf([b4], { not_measured: notMeasured }) } },
    { ...rows(), device_work: [], stages: [] },
  );
  const { data } = await analyzeBench(session);
  const [point] = data.variants[0]!.points;
  expect(point!.latency.decode_device_ms).toMatchObject({ reason: { code: 'http_only' } });
  expect(point!.latency.itl_ms).toMatchObject({ reason: { code: 'no_steps' } });
  // Rounds against one server do not vary the server process.
  expect(point!.latency.ttft_ms).toMatchObject({ launches: 2, ci95_over_launches: false });
  expect(reasonOf(point!.device_work.decode_idle_share)).toBe('http_only');
  const idle = data.variants[0]!.answers.find(({ id }) => id === 'idle');
  expect(idle!.answer).toBe('Not enough data: over HTTP only.');
  await expect(analyzeBench(await gpuSession({ artifacts: {} }))).rejects.toMatchObject({ code: 'E_USAGE' });
});

test('a stopped run reports what it has', async () => {
  const session = await gpuSession(
    {
      manifest: { status: 'interrupted' },
      artifacts: { 'bench-plan': planOf([b2, benchPoint(['sequence'], 1, 9, 9)]) },
    },
    rows(),
  );
  const { data, issues } = await analyzeBench(session);
  expect(data.variants[0]!.points.map(({ outcome }) => outcome)).toEqual(['measured', 'stopped']);
  expect(issues.find(({ code }) => code === 'points_missing')!.text).toContain('the run was stopped');
  expect(data.variants[0]!.answers.find(({ id }) => id === 'prompt_cost')!.answer).toContain(
    'Not enough data',
  );
});
