import type { BenchPlan } from '../../model/documents/bench.js';
import { describe, expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import { benchDocumentSchema, type BenchPointResult } from '../../model/documents/bench.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { close, reasonOf } from '../test-rows.js';
import { repetitions, type Rows, sessionOf, tinyWorkload } from '../test-session.js';
import { analyzeBench } from './bench.js';
import { usesGraphs } from './roof.js';
import { gpuWorkload, planOf } from './test-bench.js';

const million = 1e6;
const b2 = benchPoint(['latency', 'throughput'], 2, 4, 3);
const b4 = benchPoint(['throughput'], 4, 4, 3);
const b8 = benchPoint(['throughput'], 8, 4, 3);

/**
 * Two launches of two points in turn: TTFT 10 and 12 ms, then 20 and 22; steps of 4.75 and 6.75 ms, then 8.75 and 10.75
 * (decode, half a millisecond of sampling, a quarter of loop). Batch 4 takes as long as batch 2.
 */
function rows(): Rows {
  const common = { samplingMs: [1, 0.5, 0.5], loopMs: 0.25, inputLen: 4 };
  const of = (
    pid: number,
    launch: number,
    first: number,
    at: number,
    prefills: number[],
    decodeMs: number[],
  ) =>
    [b2, b4].flatMap(({ point, batch_size: batch }, i) => {
      const one = { ...common, point, batch, pid, launch, decodeMs };
      const later = 50 * i;
      return [
        { ...one, iteration: first + i, warmup: true, at: at + 200 * i, prefillMs: 90 },
        { ...one, iteration: first + 2 + i, at: at + 1000 + later, prefillMs: prefills[0]! },
        { ...one, iteration: first + 4 + i, at: at + 1100 + later, prefillMs: prefills[1]! },
      ];
    });
  const made = repetitions([
    ...of(100, 0, 0, 100, [9, 11], [4, 6]),
    ...of(101, 1, 6, 3000, [19, 21], [8, 10]),
  ]);
  const inFirst = new Set(
    made.iterations!.filter(({ point }) => point === b2.point).map((one) => one.iteration),
  );
  for (const stage of made.stages!) {
    if (!inFirst.has(stage.iteration)) continue;
    if (stage.kind === 'prefill') stage.device_dur_ns = 5 * million;
    if (stage.kind === 'decode') stage.device_dur_ns = (2 + stage.step_index!) * million;
  }
  const sample = (t_ms: number, scope: string, metric: string, value: number): Row<'telemetry'> => ({
    t_ns: t_ms * million,
    scope,
    metric,
    value,
  });
  const ended = (point: string, launch: number, change: Partial<Row<'points'>> = {}): Row<'points'> => ({
    point,
    launch,
    outcome: 'measured',
    warmup_iterations: 1,
    stable: true,
    interleaved: true,
    ...change,
  });
  const work = { point: b2.point, launch: 0, copies: 0, copy_ns: 0, wall_ns: 0 };
  return {
    ...made,
    points: [
      ended(b2.point, 0, { memory_bytes: 1000, memory_source: 'torch' }),
      ended(b2.point, 1, { memory_bytes: 1100, memory_source: 'torch', stable: false }),
      ended(b4.point, 0),
      ended(b4.point, 1, { interleaved: false }),
      ended(b8.point, 0, {
        outcome: 'out_of_memory',
        text: 'CUDA out of memory.\nTried 2 GiB',
        stable: null,
      }),
    ],
    device_work: [
      { ...work, kind: 'decode', stages: 2, kernels: 20, kernel_ns: 3 * million, busy_ns: 2.8 * million },
      { ...work, kind: 'prefill', stages: 1, kernels: 30, kernel_ns: 4 * million, busy_ns: 4 * million },
    ],
    telemetry: [
      // The timed repeats of batch 2 run at 1100 to 1121.75 and 1200 to 1223.75 ms, those of batch 4 50 ms later.
      // In the warm-up of batch 2, and between repeats.
      sample(150, 'gpu0', 'utilization_percent', 5),
      sample(600, 'gpu0', 'utilization_percent', 5),
      sample(1105, 'gpu0', 'utilization_percent', 40),
      sample(1205, 'gpu0', 'utilization_percent', 60),
      sample(1155, 'gpu0', 'utilization_percent', 80),
      sample(1255, 'gpu0', 'utilization_percent', 90),
      sample(1105, 'gpu1', 'utilization_percent', 0),
      sample(1155, 'gpu1', 'utilization_percent', 0),
      sample(1105, 'gpu0', 'power_w', 300),
      sample(1155, 'gpu0', 'throttle_bits', 4),
      sample(1255, 'gpu0', 'throttle_bits', 1),
      sample(1155, 'gpu0', 'compute_processes', 2),
      sample(1105, 'gpu0', 'compute_processes', 1),
      sample(1105, 'process', 'cores_busy', 0.9),
      sample(1155, 'engine', 'kv_cache_usage_ratio', 0.25),
    ],
    memory: [
      { device: 0, t_ns: 50 * million, kind: 'used', bytes: 3 * 2 ** 30 },
      { device: 0, t_ns: 1105 * million, kind: 'used', bytes: 5 * 2 ** 30 },
      { device: 0, t_ns: 1205 * million, kind: 'used', bytes: 6 * 2 ** 30 },
      { device: 1, t_ns: 1205 * million, kind: 'used', bytes: 9 * 2 ** 30 },
      { device: null, t_ns: 1155 * million, kind: 'rss', bytes: 777 },
    ],
  };
}

const gpuSession = (change: Parameters<typeof sessionOf>[2] = {}, all = rows()) =>
  sessionOf(testHome(), all, {
    workload: gpuWorkload(),
    roofline: null,
    kind: 'bench',
    artifacts: { 'bench-plan': planOf([b2, b4, b8]) },
    ...change,
  });

const codes = ({ flags }: { flags: { code: string; severity: string }[] }) =>
  flags.map(({ code, severity }) => `${code} ${severity}`);

describe('a benchmark counted by hand', async () => {
  const session = await gpuSession();
  const { data, issues } = await analyzeBench(session);
  const [variant] = data.variants;
  const [first, second, third] = variant!.points as [BenchPointResult, BenchPointResult, BenchPointResult];

  test('the document has its published form', async () => {
    const found = await analyzeBench(await gpuSession());
    expect(benchDocumentSchema.parse(structuredClone(found))).toEqual(found);
    expect(data.engine).toMatchObject({ device_name: 'NVIDIA H200', model: 'tiny', dtype: 'float16' });
  });

  test('of several ranks the first speaks: steps of the others are no tokens more', async () => {
    const made = rows();
    const { stages = [], iterations = [] } = made;
    const ofRank1 = <T extends { pid?: number | null }>(row: T) => ({
      ...row,
      rank: 1,
      pid: row.pid! + 1000,
    });
    const both = {
      ...made,
      stages: [...stages, ...stages.map((row) => ({ ...ofRank1(row), stage_id: row.stage_id! + 1000 }))],
      iterations: [...iterations, ...iterations.map(ofRank1)],
    };
    const [other] = (await analyzeBench(await gpuSession({}, both))).data.variants;
    expect(other!.points[0]!.latency).toEqual(first.latency);
  });

  test('latency: warm-up and other points are left out, launches are the unit', () => {
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

  test('throughput: output tokens are the headline', () => {
    const { throughput } = first;
    const rates = [21.75, 23.75, 39.75, 41.75].map((ms) => (2 * 3 * 1000) / ms);
    const mean = rates.reduce((sum, one) => sum + one, 0) / 4;
    close(throughput.output_tokens_per_s, mean);
    close(throughput.total_tokens_per_s, (mean * 7) / 3);
    close(throughput.requests_per_s, mean / 3);
    close(throughput.decode_tokens_per_s, 2000 / 7.875);
    close(throughput.prefill_tokens_per_s, 8000 / 16);
    close(second.throughput.output_tokens_per_s, 2 * mean);
  });

  test('device work is of one step, idle is of the clean period', () => {
    const work = first.device_work;
    close(work.decode_kernel_ms, 1.5);
    close(work.decode_kernels, 10);
    close(work.prefill_kernel_ms, 4);
    close(work.decode_idle_share, 1 - 1.4 / 7.75);
    close(work.prefill_idle_share, 1 - 4 / 16);
    expect(reasonOf(second.device_work.decode_idle_share)).toBe('not_watched');
  });

  test('idle shares are those of SQL over the same rows', async () => {
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
    close(first.device_work.prefill_idle_share, row!.prefill);
    close(first.device_work.decode_idle_share, row!.decode);
  });

  test('the machine: only samples in the timed repeats of the point, only the GPU that worked', () => {
    // Repeats of some 20 ms, and NVML averages over up to 1 s: its samples include what ran around them.
    expect(reasonOf(first.machine.gpu_utilization_percent)).toBe('too_short');
    expect(reasonOf(second.machine.gpu_utilization_percent)).toBe('too_short');
    close(first.machine.gpu_memory_used_bytes, 6 * 2 ** 30);
    close(first.machine.memory_bytes, 1100);
    close(second.machine.memory_bytes, 777);
    close(first.machine.cpu_cores_busy, 0.9);
    close(second.machine.kv_cache_usage, 0.25);
    expect(reasonOf(first.machine.power_w)).toBe('too_short');
    expect(reasonOf(first.machine.joules_per_output_token)).toBe('too_short');
    expect(reasonOf(first.machine.kv_cache_usage)).toBe('not_told');
  });

  test('MFU against the dense peak of the sheet, and the range to expect', () => {
    // Linear layers 2 · (12288 + 36864) and lm_head 32768 weights, attention 512 FLOP a key over two layers, 5.5 keys.
    const flops = 2 * (2 * (2 * (12_288 + 36_864) + 32_768) + 512 * 5.5);
    close(first.model_utilization.decode_mfu, flops / 7.875e-3 / 989e12);
    expect(first.model_utilization.decode_bound).toBe('memory');
    const { tpot, ttft } = first.expected;
    if (!('low' in tpot) || !('low' in ttft)) throw new Error('no range');
    // At least the 131 392 parameters of 2 bytes at 4.8 TB/s.
    expect(tpot.low).toBeGreaterThan((131_392 * 2e3) / 4.8e12);
    expect(tpot.low).toBeLessThan((1.2 * 131_392 * 2e3) / 4.8e12);
    close(tpot.high, tpot.low / 0.6 + 0.25);
    expect(tpot.how).toContain('10 launches (counted in a decode step)');
    // Nothing was counted at batch 4: 42 launches a layer, two layers.
    const other = second.expected.tpot;
    if (!('low' in other)) throw new Error('no range');
    close(other.high, other.low / 0.6 + (84 * 25) / 1000);
    expect(variant!.answers.find(({ id }) => id === 'latency')!.answer).toContain('TPOT is above the');
  });

  test('what did not fit is a limit, not a zero', () => {
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

  test('flags fire where they should, and only there', () => {
    expect(codes(first)).toEqual([
      'high_variance warning',
      'high_variance warning',
      'unstable_warmup warning',
    ]);
    // The samples of the second are 80 and 90 %, none of them settled: neither good nor low.
    expect(codes(second)).toEqual([
      'high_variance warning',
      'high_variance warning',
      'throttling warning',
      'other_process warning',
      'not_interleaved info',
    ]);
    expect(second.flags.find(({ code }) => code === 'throttling')!.text).toBe(
      'gpu0: power cap in 50 % of the samples',
    );
    expect(codes(variant!)).toEqual(['other_process warning', 'out_of_memory warning']);
    expect(variant!.flags[0]!.text).toContain('gpu0 had 3.00 GiB in use by another process before');
  });
});

test('energy and utilization: over stretches of one point, from a second on', async () => {
  const repeat = {
    samplingMs: [0, 0],
    loopMs: 0,
    decodeMs: [900],
    prefillMs: 100,
    batch: 2,
    inputLen: 4,
    point: b2.point,
  };
  const made = repetitions([
    { ...repeat, pid: 1, launch: 0, iteration: 0, at: 0 },
    { ...repeat, pid: 1, launch: 0, iteration: 1, at: 1000 },
  ]);
  const of =
    (metric: string) =>
    (t_ms: number, value: number): Row<'telemetry'> => ({
      t_ns: t_ms * million,
      scope: 'gpu0',
      metric,
      value,
    });
  const energy = of('energy_j');
  const busy = of('utilization_percent');
  // 200 J in 1.6 s between samples of an unbroken stretch: 125 W; the one at 5 s is in no repeat.
  const telemetry = [energy(200, 5000), energy(900, 5080), energy(1800, 5200), energy(5000, 9000)];
  // Settled from 1 s into the stretch on: 30 and 40 %, not what the first second says.
  telemetry.push(busy(200, 2), busy(900, 3), busy(1100, 30), busy(1800, 40), busy(5000, 99));
  const point = benchPoint(['latency'], 2, 4, 2);
  for (const row of made.iterations!) row.point = point.point;
  const session = await gpuSession({ artifacts: { 'bench-plan': planOf([point]) } }, { ...made, telemetry });
  const { data, issues } = await analyzeBench(session);
  const { machine, latency } = data.variants[0]!.points[0]!;
  close(machine.power_w, 125);
  expect(machine.gpu_utilization_percent).toMatchObject({ value: 35, n: 2 });
  expect(codes(data.variants[0]!.points[0]!)).toContain('low_utilization warning');
  // The plan ordered 2 launches; one ran.
  expect(data.protocol).toMatchObject({ launches: 1, repeats: 2 });
  // 1 s for 4 tokens.
  close(machine.joules_per_output_token, 125 / 4);
  expect(latency.ttft_ms).toMatchObject({ launches: 1, ci95_over_launches: false });
  expect(issues.map(({ code }) => code)).toContain('one_launch');
});

test('the CPU: measured roofs, no GPU, by accident or on purpose', async () => {
  const workload = { ...gpuWorkload(), device: 'cpu', threads: 2, model: tinyWorkload().model };
  const of = async (command: string[], engine = workload.engine) => {
    const { handRoofline } = await import('../test-session.js');
    const session = await gpuSession({
      workload: { ...workload, engine },
      roofline: handRoofline(),
      manifest: { command },
    });
    return (await analyzeBench(session)).data.variants[0]!;
  };
  const accident = await of(['inferscope', 'bench', 'latency', '--engine', 'transformers']);
  const [point] = accident.points;
  expect(codes(accident)).toEqual(['cpu_by_accident warning', 'out_of_memory warning']);
  expect(reasonOf(point!.machine.gpu_utilization_percent)).toBe('no_gpu');
  // 0.9 of 2 threads.
  expect(codes(point!)).toContain('low_utilization warning');
  expect(point!.expected.tpot).toMatchObject({
    how: expect.stringContaining('each at half its roof') as string,
  });
  const meant = await of(['inferscope', 'bench', 'latency', '--engine', 'transformers', '--device=cpu']);
  expect(codes(meant)).toEqual(['out_of_memory warning']);
  // One that is built for GPUs would not have started.
  const vllm = await of(['inferscope', 'bench', 'latency', '--engine', 'vllm'], {
    ...workload.engine,
    name: 'vllm',
  });
  expect(codes(vllm)).toEqual(['out_of_memory warning']);
});

test('reasons come from the engine; a session without a plan is refused', async () => {
  const cannot: BenchPlan['cannot'] = [
    { figure: 'device_time', code: 'seen_from_outside', text: 'over HTTP only' },
    { figure: 'idle_share', code: 'seen_from_outside', text: 'over HTTP only' },
    { figure: 'launches', code: 'one_server_process', text: 'one server process' },
  ];
  const session = await gpuSession(
    { artifacts: { 'bench-plan': planOf([b4], { cannot }) } },
    { ...rows(), device_work: [], stages: [] },
  );
  const { data } = await analyzeBench(session);
  const [point] = data.variants[0]!.points;
  expect(point!.latency.decode_device_ms).toMatchObject({ reason: { code: 'seen_from_outside' } });
  expect(point!.latency.itl_ms).toMatchObject({ reason: { code: 'no_steps' } });
  // Rounds against one server say nothing of another server process.
  expect(point!.latency.ttft_ms).toMatchObject({ launches: 2, ci95_over_launches: false });
  expect(reasonOf(point!.device_work.decode_idle_share)).toBe('seen_from_outside');
  const idle = data.variants[0]!.answers.find(({ id }) => id === 'idle');
  expect(idle!.answer).toBe('Not enough data: over HTTP only.');
  await expect(analyzeBench(await gpuSession({ artifacts: {} }))).rejects.toMatchObject({ code: 'E_USAGE' });
});

test('decode steps of a CUDA graph cost a node, not a launch, each', async () => {
  const plan = planOf([b2]);
  plan.variants[0]!.engine_args = { mode: 'cudagraph' };
  const { data } = await analyzeBench(await gpuSession({ artifacts: { 'bench-plan': plan } }));
  const { tpot, ttft } = data.variants[0]!.points[0]!.expected;
  if (!('low' in tpot) || !('low' in ttft)) throw new Error('no range');
  close(tpot.high, tpot.low / 0.6 + (10 * 1.5) / 1000);
  expect(tpot.how).toContain('10 nodes of a CUDA graph (counted in a decode step) × 1.5 µs');
  close(ttft.high, ttft.low / 0.6 + (10 * 25) / 1000);
  const vllm = gpuWorkload({ engine: { name: 'vllm', version: null, options: {} } });
  expect(usesGraphs(vllm, {})).toBe(true);
  expect(usesGraphs(vllm, { enforce_eager: 'True' })).toBe(false);
  expect(usesGraphs(gpuWorkload(), { mode: 'compile' })).toBe(false);
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
