import { benchPoint } from '../../model/bench.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { repetitions, type Rows, sessionOf } from '../test-session.js';
import { gpuWorkload, planOf } from './test-bench.js';

export const nsPerMs = 1e6;
export const b2 = benchPoint(['latency', 'throughput'], 2, 4, 3);
export const b4 = benchPoint(['throughput'], 4, 4, 3);
export const b8 = benchPoint(['throughput'], 8, 4, 3);

/**
 * Two launches of two points, alternating: TTFT 10 and 12 ms, then 20 and 22; steps of 4.75 and 6.75 ms, then 8.75 and
 * 10.75 (decode, 0.5 ms of sampling, 0.25 ms of loop). Batch 4 takes as long as batch 2.
 */
export function rows(): Rows {
  const common = { samplingMs: [1, 0.5, 0.5], loopMs: 0.25, inputLen: 4 };
  const repeat = (
    pid: number,
    launch: number,
    first: number,
    startMs: number,
    prefills: number[],
    decodeMs: number[],
  ) =>
    [b2, b4].flatMap(({ point, batch_size: batch }, i) => {
      const one = { ...common, point, batch, pid, launch, decodeMs };
      const offsetMs = 50 * i;
      return [
        { ...one, iteration: first + i, warmup: true, startMs: startMs + 200 * i, prefillMs: 90 },
        { ...one, iteration: first + 2 + i, startMs: startMs + 1000 + offsetMs, prefillMs: prefills[0]! },
        { ...one, iteration: first + 4 + i, startMs: startMs + 1100 + offsetMs, prefillMs: prefills[1]! },
      ];
    });
  const repeatRows = repetitions([
    ...repeat(100, 0, 0, 100, [9, 11], [4, 6]),
    ...repeat(101, 1, 6, 3000, [19, 21], [8, 10]),
  ]);
  const inFirst = new Set(
    repeatRows.iterations!.filter(({ point }) => point === b2.point).map((iteration) => iteration.iteration),
  );
  for (const stage of repeatRows.stages!) {
    if (!inFirst.has(stage.iteration)) continue;
    if (stage.kind === 'prefill') stage.device_dur_ns = 5 * nsPerMs;
    if (stage.kind === 'decode') stage.device_dur_ns = (2 + stage.step_index!) * nsPerMs;
  }
  const sample = (t_ms: number, scope: string, metric: string, value: number): Row<'telemetry'> => ({
    t_ns: t_ms * nsPerMs,
    scope,
    metric,
    value,
  });
  const pointRow = (point: string, launch: number, change: Partial<Row<'points'>> = {}): Row<'points'> => ({
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
    ...repeatRows,
    points: [
      pointRow(b2.point, 0, { memory_bytes: 1000, memory_source: 'torch' }),
      pointRow(b2.point, 1, { memory_bytes: 1100, memory_source: 'torch', stable: false }),
      pointRow(b4.point, 0),
      pointRow(b4.point, 1, { interleaved: false }),
      pointRow(b8.point, 0, {
        outcome: 'out_of_memory',
        text: 'CUDA out of memory.\nTried 2 GiB',
        stable: null,
      }),
    ],
    device_work: [
      { ...work, kind: 'decode', stages: 2, kernels: 20, kernel_ns: 3 * nsPerMs, busy_ns: 2.8 * nsPerMs },
      { ...work, kind: 'prefill', stages: 1, kernels: 30, kernel_ns: 4 * nsPerMs, busy_ns: 4 * nsPerMs },
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
      { device: 0, t_ns: 50 * nsPerMs, kind: 'used', bytes: 3 * 2 ** 30 },
      { device: 0, t_ns: 1105 * nsPerMs, kind: 'used', bytes: 5 * 2 ** 30 },
      { device: 0, t_ns: 1205 * nsPerMs, kind: 'used', bytes: 6 * 2 ** 30 },
      { device: 1, t_ns: 1205 * nsPerMs, kind: 'used', bytes: 9 * 2 ** 30 },
      { device: null, t_ns: 1155 * nsPerMs, kind: 'rss', bytes: 777 },
    ],
  };
}

export const gpuSession = (change: Parameters<typeof sessionOf>[2] = {}, all = rows()) =>
  sessionOf(testHome(), all, {
    workload: gpuWorkload(),
    roofline: null,
    kind: 'bench',
    artifacts: { 'bench-plan': planOf([b2, b4, b8]) },
    ...change,
  });

export const codes = ({ flags }: { flags: { code: string; severity: string }[] }) =>
  flags.map(({ code, severity }) => `${code} ${severity}`);

/**
 * One repeat of throughput at batch 2 and at batch 4, and nothing else.
 * @param growth additional share of the time of batch 2 that batch 4 takes
 */
export async function throughputSession(home: ReturnType<typeof testHome>, { growth }: { growth: number }) {
  const points = [2, 4].map((batch) => benchPoint(['throughput'], batch, 4, 3));
  const repeats = points.map(({ point, batch_size: batch }, i) => {
    const scale = 1 + growth * i;
    return {
      samplingMs: [1, 0.5, 0.5],
      loopMs: 0.25,
      inputLen: 4,
      batch,
      point,
      pid: 1,
      launch: 0,
      iteration: i,
      startMs: 1000 * i,
      prefillMs: 10 * scale,
      decodeMs: [4 * scale, 4 * scale],
    };
  });
  const session = await sessionOf(home, repetitions(repeats), {
    kind: 'bench',
    workload: gpuWorkload(),
    roofline: null,
    artifacts: { 'bench-plan': planOf(points, { parts: ['throughput'] }) },
  });
  return { session, points };
}
