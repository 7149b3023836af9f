import { afterAll, describe, expect, test } from 'vitest';
import type { FindingContext, Rule } from '../rule.js';
import { closeAll, contextOf, fired, type Part, repeated, stepRows } from '../test-steps.js';
import { allocatorChurn } from './allocator-churn.js';
import { gpuIdleBetweenRequests } from './gpu-idle-between-requests.js';
import { hostBound } from './host-bound.js';
import { hostCopies } from './host-copies.js';
import { launchBound } from './launch-bound.js';
import { logitsToHost } from './logits-to-host.js';
import { recompilation } from './recompilation.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';

afterAll(closeAll);

/** Every rule about the host; rules without an expected finding must not fire. */
const hostRules: Rule[] = [
  launchBound,
  synchronizationEveryStep,
  hostBound,
  allocatorChurn,
  recompilation,
  hostCopies,
  logitsToHost,
  gpuIdleBetweenRequests,
];
async function firing(context: FindingContext): Promise<string[]> {
  const names: string[] = [];
  for (const rule of hostRules) if ((await rule.find(context)).outcome === 'fired') names.push(rule.id);
  return names;
}

/** A launch of eager PyTorch: 8 µs of dispatch, 4 µs in the call, 2 µs until the kernel starts. */
const launch: Part = { idle: { host: 8, launch_overhead: 4, launch_latency: 2 } };

describe('launch-bound', () => {
  test('expects 0.45 µs of 14 µs of idle time per launch to remain in a graph', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(100, [launch, { kernel: 3 }])));
    const found = fired(await launchBound.find(context));
    // The step takes 100 × 17 µs. The gain is 100 × (14 − 0.45) µs; at worst 1.5 µs remain.
    expect(found.gain!.expected_ms).toBeCloseTo(1.355, 6);
    expect(found.gain!.after_ms).toBeCloseTo(0.345, 6);
    expect(found.gain!.low_ms).toBeCloseTo(1.25, 6);
    expect(found.title).toContain('82 % of every decode step');
    expect(await firing(context)).toEqual(['launch_bound']);
  });

  test('does not report a graph of 100 nodes, or a host that stays ahead of the device', async () => {
    const node = { graph_node: 1, graph_id: 1, correlation: 5 };
    const graph = await contextOf(
      stepRows('decode', 4, () =>
        repeated(100, [{ idle: { launch_latency: 0.4 } }, { kernel: 20, more: node }]),
      ),
    );
    expect(await firing(graph)).toEqual([]);
    const ahead = await contextOf(
      stepRows('prefill', 4, () => repeated(100, [{ idle: { launch_latency: 1 } }, { kernel: 200 }])),
    );
    expect(await firing(ahead)).toEqual([]);
  });
});

describe('long host gaps between two launches of a launch-bound step', () => {
  const stretch = 5000;
  const steps = (kind = 'decode') =>
    stepRows(kind, 4, () => [
      ...repeated(100, [launch, { kernel: 3 }]),
      { idle: { host: stretch, launch_overhead: 4, launch_latency: 2 } },
      { kernel: 3 },
      ...repeated(300, [launch, { kernel: 3 }]),
    ]);
  /** 400 launches of 14 µs and one call of 6 µs, less 0.45 µs for each of 401 nodes. */
  const launches = (400 * 14 + 6 - 401 * 0.45) / 1e3;

  test('does not count 5 ms of Python inside the step as launches, because a graph cannot do that work', async () => {
    const found = fired(await launchBound.find(await contextOf(steps())));
    expect(found.gain!.expected_ms).toBeCloseTo(launches, 6);
    expect(await firing(await contextOf(steps()))).toEqual(['launch_bound', 'host_bound']);
  });

  test('reports 5 ms inside an operator, and the cause names the operator', async () => {
    const rows = steps();
    const within = 1701;
    const operators = [0, 1, 2, 3].map((step) => ({
      op_id: step + 1,
      name: 'aten::attention',
      start_ns: (step * (401 * 3 + 400 * 14 + stretch + 6) + within) * 1000,
      dur_ns: 5_100_000,
    }));
    const gaps = rows.gaps.map((row) =>
      row.host_ns === stretch * 1000 ? { ...row, before_op_id: row.stage_id! + 1 } : row,
    );
    const found = fired(await launchBound.find(await contextOf({ ...rows, gaps, ops: operators })));
    expect(found.gain!.expected_ms).toBeCloseTo(launches + stretch / 1e3, 6);
    expect(found.title).toContain('and spends time inside aten::attention');
    expect(found.cause).toContain('For another 5.00 ms operators do preparation');
    expect(found.gain!.low_ms).toBeCloseTo((400 * 14 + 6 - 401 * 1.5) / 1e3, 6);
  });

  test('0.6 ms before the step overlap with the next one, unless the host waits for this one', async () => {
    const prepared = (waits: Part[]) =>
      stepRows('decode', 4, () => [
        { idle: { host: 600, launch_overhead: 4, launch_latency: 2 } },
        { kernel: 3 },
        ...repeated(100, [launch, { kernel: 3 }]),
        ...waits,
      ]);
    const ahead = fired(await launchBound.find(await contextOf(prepared([]))));
    // As long as the device computes: 101 kernels of 3 µs.
    expect(ahead.gain!.expected_ms).toBeCloseTo((100 * 14 + 6 - 101 * 0.45) / 1e3 + 0.303, 6);
    expect(ahead.at_stake_ms).toBeGreaterThanOrEqual(ahead.gain!.expected_ms);
    const wait: Part = { call: 'cudaStreamSynchronize', from: 2290, takes: 1 };
    const waiting = fired(await launchBound.find(await contextOf(prepared([wait]))));
    expect(waiting.gain!.expected_ms).toBeCloseTo((100 * 14 + 6 - 101 * 0.45 - 1) / 1e3, 6);
  });

  test('does not suggest torch.compile for a prefill, because it captures no graph by default', async () => {
    const { change, gain } = fired(await launchBound.find(await contextOf(steps('prefill'))));
    expect(change.example).toContain('mode="reduce-overhead"');
    expect(change.text).toContain('Pad prompts to a few lengths');
    expect(gain!.assumption).toContain('One graph per padded length.');
  });

  test("names an engine's own switches, and marks numbers from an H200", async () => {
    const rows = steps();
    const named = rows.kernels.map((row) => ({ ...row, name: 'void vllm::rms_norm_kernel<c10::Half>' }));
    const { change, gain } = fired(await launchBound.find(await contextOf({ ...rows, kernels: named })));
    expect(change.text).toContain('--enforce-eager');
    expect(gain!.assumption).toContain('run inferscope roofline to measure this GPU');
    expect(change.text).toContain('cover the batch');
    const mixed = { ...rows, kernels: named, stages: rows.stages.map((row) => ({ ...row, kind: 'mixed' })) };
    expect(fired(await launchBound.find(await contextOf(mixed))).change.text).toContain(
      'cover the tokens per step',
    );
  });
});

describe('synchronization', () => {
  const bubble: Part = { idle: { synchronization: 6, host: 10, launch_overhead: 6, launch_latency: 8 } };
  test('the cost of 24 waits per step is their share of the idle time, not their duration', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        ...repeated(24, [bubble, { kernel: 70 }]),
        ...Array.from({ length: 24 }, (_, i): Part => ({
          call: 'cudaStreamSynchronize',
          from: i * 100 + 20,
          takes: 60,
        })),
      ]),
    );
    const found = fired(await synchronizationEveryStep.find(context));
    // The step takes 24 × 100 µs, idle 24 × 30, of which 24 × 0.45 stay between kernels. The waits last 24 × 60, longer than that.
    expect(found.gain!.expected_ms).toBeCloseTo(0.7092, 6);
    expect(found.evidence[0]!.rows[0]).toMatchObject({
      name: 'cudaStreamSynchronize',
      per_instance: 24,
      wait_ms: 1.44,
    });
    expect(await firing(context)).toEqual(['synchronization_every_step']);
  });

  test('one wait at the end of a step of 5 ms is not reported', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        { idle: { synchronization: 6, host: 30, launch_overhead: 6, launch_latency: 8 } },
        { kernel: 5000 },
        { call: 'cudaDeviceSynchronize', from: 60, takes: 4990 },
      ]),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe("the program's own host time", () => {
  const steps = (idle: Record<string, number>) => stepRows('decode', 4, () => [{ idle }, { kernel: 1000 }]);
  test('reports a gap of 3 ms before a step of 1 ms', async () => {
    const context = await contextOf(steps({ host: 3000, launch_overhead: 5, launch_latency: 5 }));
    const found = fired(await hostBound.find(context));
    expect(found.gain!.expected_ms).toBeCloseTo(3, 6);
    expect(found.gain!.after_ms).toBeCloseTo(1.01, 6);
    expect(await firing(context)).toEqual(['host_bound']);
  });

  test('reports short gaps of a step with too few launches to be launch-bound', async () => {
    const gap: Part = { idle: { host: 60, launch_overhead: 20 } };
    const context = await contextOf(stepRows('decode', 4, () => repeated(10, [gap, { kernel: 40 }])));
    const found = fired(await hostBound.find(context));
    expect(found.gain!.expected_ms).toBeCloseTo((10 * (80 - 0.45)) / 1e3, 6);
    expect(await firing(context)).toEqual(['host_bound']);
  });

  test('time inside an operator that does its own preparation does not count for the program', async () => {
    const rows = steps({ host: 3000, launch_overhead: 5, launch_latency: 5 });
    const named = (start: number) => ({
      ...rows,
      gaps: rows.gaps.map((row) => ({ ...row, before_op_id: row.stage_id! + 1 })),
      ops: [0, 1, 2, 3].map((step) => ({
        op_id: step + 1,
        name: 'aten::attention',
        start_ns: (step * 4010 + start) * 1000,
        dur_ns: 100_000,
      })),
    });
    const inside = fired(await hostBound.find(await contextOf(named(5))));
    expect(inside.title).toContain('for the host inside aten::attention');
    expect(inside.change.text).toContain('recurring sizes');
    const before = fired(await hostBound.find(await contextOf(named(2990))));
    expect(before.title).toContain('for the program itself');
    expect(before.cause).toContain('before aten::attention');
  });

  test.each([
    ['in every step it is recompilation', [0, 1, 2, 3], 3],
    ['in one later step it is that one only', [0, 3], 0.75],
    ['in the first step only it is not', [0], null],
  ])('a gap that ends with a code load, %s', async (_, loading, gain) => {
    const rows = steps({ host: 3000, launch_overhead: 5, launch_latency: 5 });
    rows.api_calls.push(
      ...loading.map((step) => ({
        name: 'cuModuleLoadData',
        start_ns: (step * 4010 + 2900) * 1000,
        dur_ns: 50_000,
        stage_id: step,
      })),
    );
    const context = await contextOf(rows);
    const found = await recompilation.find(context);
    if (gain === null) expect(found.outcome).not.toBe('fired');
    else expect(fired(found).gain!.expected_ms).toBeCloseTo(gain, 6);
  });

  test('counts host time of a first step far above the others as first-use cost', async () => {
    const context = await contextOf(
      stepRows('decode', 4, (step) => [{ idle: { host: step === 0 ? 20_000 : 20 } }, { kernel: 1000 }]),
    );
    expect(await firing(context)).toEqual([]);
  });

  test('reports host time between two requests, outside all stages', async () => {
    const rows = stepRows('decode', 4, () => [{ idle: { host: 20 } }, { kernel: 1000 }]);
    // 10 ms without requests, then the same again.
    const later = 14_080 * 1000;
    const shifted = <T extends { start_ns?: number | null; stage_id?: number | null }>(row: T): T => ({
      ...row,
      start_ns: row.start_ns! + later,
      stage_id: row.stage_id! + 10,
    });
    rows.gaps.push({
      start_ns: 4080 * 1000,
      dur_ns: 10_000 * 1000,
      cause: 'host',
      host_ns: 10_000 * 1000,
      stage_id: 10,
    });
    rows.kernels.push(
      ...rows.kernels.map((row) => ({
        ...shifted(row),
        correlation: row.correlation! + 500,
        api_start_ns: row.api_start_ns! + later,
      })),
    );
    rows.gaps.push(...rows.gaps.slice(0, 4).map(shifted));
    rows.stages.push(
      ...rows.stages.map((row) => ({
        ...shifted(row),
        phase_id: row.stage_id! + 10,
        end_ns: row.end_ns! + later,
        device_start_ns: row.device_start_ns! + later,
        device_end_ns: row.device_end_ns! + later,
        iteration: 1,
      })),
    );
    const context = await contextOf(rows);
    const found = fired(await gpuIdleBetweenRequests.find(context));
    expect(found.at_stake_ms).toBeCloseTo(10, 6);
    expect(found.stage).toBeNull();
    // 10 ms of 8 × 1.02 + 10.
    expect(found.title).toContain('55 % of the run, 1 times for 10.0 ms');
  });
});

describe('memory and copies', () => {
  test('freeing through the driver waits for the device', async () => {
    const context = await contextOf(
      stepRows('prefill', 3, () => [
        ...repeated(4, [{ idle: { synchronization: 200, host: 20, launch_overhead: 6 } }, { kernel: 500 }]),
        ...[0, 1, 2, 3].map((i): Part => ({ call: 'cudaFree', from: i * 726, takes: 190 })),
      ]),
    );
    // The calls last 4 × 190 µs; the device is idle for 4 × 226, of which 4 × 0.45 remain.
    expect(fired(await allocatorChurn.find(context)).gain!.expected_ms).toBeCloseTo(0.76, 6);
    expect(await firing(context)).toEqual(['allocator_churn']);
  });

  const toDevice = { kind: 'HtoD', src_kind: 'pageable', dst_kind: 'device', bytes: 64 * 2 ** 20 };
  test('expects 64 MiB from pageable memory to overlap with 5 ms of kernels after pinning', async () => {
    const context = await contextOf(
      stepRows('prefill', 3, () => [
        { copy: 8000, more: toDevice },
        { idle: { launch_latency: 5 } },
        { kernel: 5000 },
      ]),
    );
    const found = fired(await hostCopies.find(context));
    expect(found.gain!.expected_ms).toBeCloseTo(8, 2);
    // Not overlapped, at 25 GB/s: 67 108 864 B take 2.684 ms.
    expect(found.gain!.low_ms).toBeCloseTo(8.0046 - 2.6844, 2);
    expect(found.evidence[0]!.rows[0]).toMatchObject({ memory: 'pageable', mib: 64, gb_per_s: 8.39 });
    expect(await firing(context)).toEqual(['host_copies']);
  });

  const logits = { kind: 'DtoH', src_kind: 'device', dst_kind: 'pageable' };
  test('reports logits of 16 MiB that are copied to the host, and host work on them', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        { idle: { host: 900, launch_overhead: 5 } },
        { kernel: 1000 },
        { copy: 1500, more: { ...logits, bytes: 16 * 2 ** 20 } },
      ]),
    );
    const found = fired(await logitsToHost.find(context));
    // The copy, the host work after it in three of four steps (the first has no copy before it), and 5 µs of waiting.
    // Sampling on the device takes 30 µs.
    expect(found.at_stake_ms).toBeCloseTo(1.5 + (3 * 0.9) / 4, 1);
    expect(found.gain!.expected_ms).toBeCloseTo(found.at_stake_ms! - 0.03, 6);
  });

  test('a copy of token ids is not reported', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [
        { idle: { host: 20 } },
        { kernel: 1000 },
        { copy: 2, more: { ...logits, bytes: 512 } },
      ]),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('a call that blocks', () => {
  const waiting = (idle: Record<string, number>, busy: number) =>
    stepRows('decode', 4, () => [
      { call: 'cudaStreamSynchronize', from: 1, takes: 5000 },
      { idle },
      { kernel: busy },
      { idle: { synchronization: 800 } },
      { kernel: 100 },
    ]);

  test('a blocking call while the device works is a synchronization', async () => {
    expect(await firing(await contextOf(waiting({ launch_latency: 2 }, 5000)))).toContain(
      'synchronization_every_step',
    );
  });

  test('a blocking call while the device is idle is not: the driver blocks it', async () => {
    expect(await firing(await contextOf(waiting({ device_dependency: 5200 }, 10)))).not.toContain(
      'synchronization_every_step',
    );
  });
});

describe('waits between the launches of a step', () => {
  const kernel = (startNs: number): Part => ({ kernel: 3, more: { api_start_ns: startNs } });
  const experts = (waits: number) =>
    stepRows('decode', 4, (step) =>
      Array.from({ length: 100 }, (_, launched): Part[] => {
        const startNs = step * 1_700_000 + launched * 17_000;
        const wait: Part = { call: 'cudaStreamSynchronize', from: launched * 17 + 1, takes: 3 };
        return [...(launched % Math.floor(100 / waits) === 2 ? [wait] : []), launch, kernel(startNs)];
      }).flat(),
    );

  test('say that no graph can contain them, and leave the gain of launches to the launch-bound finding', async () => {
    const context = await contextOf(experts(20));
    const found = fired(await synchronizationEveryStep.find(context));
    const launches = fired(await launchBound.find(context));
    expect(found.title).toContain('no CUDA graph can launch it');
    expect(found.at_stake_ms).toBeGreaterThan(launches.at_stake_ms!);
    expect(found.gain!.expected_ms + launches.at_stake_ms!).toBeCloseTo(found.at_stake_ms!, 6);
    expect(found.gain!.what_if).toBe('no-sync');
  });

  test('include the cost of launches that only compute the value', async () => {
    /** Four products, a comparison, its reduction, a wait of 3 µs and a pause of 40 µs, ten times per step. */
    const steps = (compare: string) =>
      stepRows('decode', 4, (step) =>
        Array.from({ length: 60 }, (_, nth): Part[] => {
          const offset = nth * 17 + Math.floor(nth / 6) * 40;
          const name = ['a', 'a', 'a', 'a', compare, 'all'][nth % 6]!;
          const more = {
            api_start_ns: (step * 1420 + offset) * 1000,
            name,
            class: name === 'a' ? 'gemm' : 'elementwise',
          };
          const last = nth % 6 === 5;
          return [
            launch,
            { kernel: 3, more },
            ...(last
              ? [{ idle: { host: 40 } }, { call: 'cudaStreamSynchronize', from: offset + 6, takes: 3 }]
              : []),
          ];
        }).flat(),
      );
    const gainOf = async (compare: string) =>
      fired(await synchronizationEveryStep.find(await contextOf(steps(compare)))).gain!.expected_ms;
    // Pauses: 52 - 3 - 12 µs; each of the two launches takes 5 µs and follows a pause of 12 µs. No pause is known after the last launch of a step.
    expect(await gainOf('isfinite')).toBeCloseTo((9 * (3 + 37 + 2 * 17) + 3) / 1e3, 6);
    expect(await gainOf('a')).toBeCloseTo((9 * (3 + 37 + 17) + 3) / 1e3, 6);
  });

  test('are too few to prevent a graph of the work between them', async () => {
    const context = await contextOf(experts(3));
    expect((await synchronizationEveryStep.find(context)).outcome).toBe('not_fired');
    expect(fired(await launchBound.find(context)).change.more).toContain('between its launches');
  });
});
