import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import type { BenchPointResult } from '../../model/documents/bench.js';
import type { Row } from '../../model/tables.js';
import { expectClose, reasonOf } from '../test-rows.js';
import { exampleRoofline, repetitions, tinyWorkload } from '../test-session.js';
import { analyzeBench } from './bench.js';
import { gpuWorkload, planOf } from './test-bench.js';
import { b2, codes, gpuSession, nsPerMs } from './test-bench-session.js';

test("machine state uses only samples in the point's timed repeats, and only the GPU in use", async () => {
  const { points } = (await analyzeBench(await gpuSession())).data.variants[0]!;
  const [first, second] = points as [BenchPointResult, BenchPointResult];
  // Repeats take some 20 ms and NVML averages over up to 1 s, so samples include neighboring work.
  expect(reasonOf(first.machine.gpu_utilization_percent)).toBe('too_short');
  expect(reasonOf(second.machine.gpu_utilization_percent)).toBe('too_short');
  expectClose(first.machine.gpu_memory_used_bytes, 6 * 2 ** 30);
  expectClose(first.machine.memory_bytes, 1100);
  expectClose(second.machine.memory_bytes, 777);
  expectClose(first.machine.cpu_cores_busy, 0.9);
  expectClose(second.machine.kv_cache_usage, 0.25);
  expect(reasonOf(first.machine.power_w)).toBe('too_short');
  expect(reasonOf(first.machine.joules_per_output_token)).toBe('too_short');
  expect(reasonOf(first.machine.kv_cache_usage)).toBe('not_reported');
});

test('energy and utilization need unbroken periods of one point of at least a second', async () => {
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
    { ...repeat, pid: 1, launch: 0, iteration: 0, startMs: 0 },
    { ...repeat, pid: 1, launch: 0, iteration: 1, startMs: 1000 },
  ]);
  const sampleOf =
    (metric: string) =>
    (t_ms: number, value: number): Row<'telemetry'> => ({
      t_ns: t_ms * nsPerMs,
      scope: 'gpu0',
      metric,
      value,
    });
  const energy = sampleOf('energy_j');
  const busy = sampleOf('utilization_percent');
  // 200 J in 1.6 s between samples of an unbroken period: 125 W. The sample at 5 s is in no repeat.
  const telemetry = [energy(200, 5000), energy(900, 5080), energy(1800, 5200), energy(5000, 9000)];
  // Settled from 1 s into the period: 30 and 40 %, without the first second.
  telemetry.push(busy(200, 2), busy(900, 3), busy(1100, 30), busy(1800, 40), busy(5000, 99));
  const point = benchPoint(['latency'], 2, 4, 2);
  for (const row of made.iterations!) row.point = point.point;
  const session = await gpuSession({ artifacts: { 'bench-plan': planOf([point]) } }, { ...made, telemetry });
  const { data, issues } = await analyzeBench(session);
  const { machine, latency } = data.variants[0]!.points[0]!;
  expectClose(machine.power_w, 125);
  expect(machine.gpu_utilization_percent).toMatchObject({ value: 35, n: 2 });
  expect(codes(data.variants[0]!.points[0]!)).toContain('low_utilization warning');
  // The plan requested 2 launches; one ran.
  expect(data.protocol).toMatchObject({ launches: 1, repeats: 2 });
  // 1 s for 4 tokens.
  expectClose(machine.joules_per_output_token, 125 / 4);
  expect(latency.ttft_ms).toMatchObject({ launches: 1, ci95_over_launches: false });
  expect(issues.map(({ code }) => code)).toContain('one_launch');
});

test('a CPU run uses measured roofs, and warns only if a GPU was expected', async () => {
  const workload = { ...gpuWorkload(), device: 'cpu', threads: 2, model: tinyWorkload().model };
  const variantOf = async (command: string[], engine = workload.engine) => {
    const session = await gpuSession({
      workload: { ...workload, engine },
      roofline: exampleRoofline(),
      manifest: { command },
    });
    return (await analyzeBench(session)).data.variants[0]!;
  };
  const accident = await variantOf(['inferscope', 'bench', 'latency', '--engine', 'transformers']);
  const [point] = accident.points;
  expect(codes(accident)).toEqual(['cpu_by_accident warning', 'out_of_memory warning']);
  expect(reasonOf(point!.machine.gpu_utilization_percent)).toBe('no_gpu');
  // 0.9 of 2 threads.
  expect(codes(point!)).toContain('low_utilization warning');
  expect(point!.expected.tpot).toMatchObject({
    explanation: expect.stringContaining('high = 2 × Σ over operations') as string,
  });
  const intended = await variantOf([
    'inferscope',
    'bench',
    'latency',
    '--engine',
    'transformers',
    '--device=cpu',
  ]);
  expect(codes(intended)).toEqual(['out_of_memory warning']);
  // A build for GPUs would not have started.
  const vllm = await variantOf(['inferscope', 'bench', 'latency', '--engine', 'vllm'], {
    ...workload.engine,
    name: 'vllm',
  });
  expect(codes(vllm)).toEqual(['out_of_memory warning']);
});
