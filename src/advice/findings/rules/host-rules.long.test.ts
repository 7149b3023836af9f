import { afterAll, describe, expect, test } from 'vitest';
import { gpuWorkload } from '../../../facts/bench/test-bench.js';
import { modelFactsSchema } from '../../../model/model-facts.js';
import { rankedFindings } from '../findings.js';
import { closeAll, contextOf, fired, type Part, repeated, stepRows } from '../test-steps.js';
import { gpuIdleBetweenRequests } from './gpu-idle-between-requests.js';
import { hostBound } from './host-bound.js';
import { launchBound } from './launch-bound.js';
import { recompilation } from './recompilation.js';
import { synchronizationEveryStep } from './synchronization-every-step.js';
import { firing, launch } from './test-host-rules.js';

afterAll(closeAll);

describe('launch-bound', () => {
  test('expects 0.45 µs of 14 µs of idle time per launch to remain in a graph', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(100, [launch, { kernel: 3 }])));
    const finding = fired(await launchBound.find(context));
    // The step takes 100 × 17 µs. The gain is 100 × (14 − 0.45) µs; at worst 1.5 µs remain.
    expect(finding.gain!.expected_ms).toBeCloseTo(1.355, 6);
    expect(finding.gain!.after_ms).toBeCloseTo(0.345, 6);
    expect(finding.gain!.low_ms).toBeCloseTo(1.25, 6);
    // The title has the share that the finding affects: 1.355 of 1.7 ms.
    expect(finding.at_stake_ms).toBeCloseTo(1.355, 6);
    const { findings } = await rankedFindings(context, [launchBound]);
    expect(findings[0]!.title).toContain('80 % of every decode step');
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
    const finding = fired(await launchBound.find(await contextOf(steps())));
    expect(finding.gain!.expected_ms).toBeCloseTo(launches, 6);
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
    const finding = fired(await launchBound.find(await contextOf({ ...rows, gaps, ops: operators })));
    expect(finding.gain!.expected_ms).toBeCloseTo(launches + stretch / 1e3, 6);
    expect(finding.title).toContain('and spends time inside aten::attention');
    expect(finding.cause).toContain('For another 5.00 ms operators do preparation');
    expect(finding.gain!.low_ms).toBeCloseTo((400 * 14 + 6 - 401 * 1.5) / 1e3, 6);
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
    const rows = steps('prefill');
    rows.kernels[0]!.name = 'void at::native::vectorized_elementwise_kernel<4>';
    const { change, gain } = fired(await launchBound.find(await contextOf(rows)));
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
    const finding = fired(await synchronizationEveryStep.find(context));
    // The step takes 24 × 100 µs, idle 24 × 30, of which 24 × 0.45 stay between kernels. The waits last 24 × 60, longer than that.
    expect(finding.gain!.expected_ms).toBeCloseTo(0.7092, 6);
    expect(finding.evidence[0]!.rows[0]).toMatchObject({
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
    const finding = fired(await hostBound.find(context));
    expect(finding.gain!.expected_ms).toBeCloseTo(3, 6);
    expect(finding.gain!.after_ms).toBeCloseTo(1.01, 6);
    expect(await firing(context)).toEqual(['host_bound']);
  });

  test('of an engine that schedules ahead, only more sequences per step share it: a gain per token', async () => {
    const rows = steps({ host: 3000, launch_overhead: 5, launch_latency: 5 });
    const stages = rows.stages.map((row) => ({
      ...row,
      batch_size: 8,
      new_tokens: 8,
      context_tokens_sum: 800,
    }));
    const context = await contextOf({ ...rows, stages });
    const model = { ...gpuWorkload().model!, facts: modelFactsSchema.parse({ async_scheduling: true }) };
    const engine = { name: 'vllm', version: '0.26.0', options: {} };
    Object.assign(context.manifest, { workload: gpuWorkload({ model, engine }) });
    const finding = fired(await hostBound.find(context));
    // 3 ms for 8 sequences; the same for 16.
    expect(finding.gain).toMatchObject({ per: 'token', low_ms: expect.closeTo((0.7 * 3) / 16, 6) as number });
    expect(finding.gain!.expected_ms).toBeCloseTo(3 / 16, 6);
    expect(finding.gain!.after_ms).toBeCloseTo(4.01 / 8 - 3 / 16, 6);
  });

  test('reports short gaps of a step with too few launches to be launch-bound', async () => {
    const gap: Part = { idle: { host: 60, launch_overhead: 20 } };
    const context = await contextOf(stepRows('decode', 4, () => repeated(10, [gap, { kernel: 40 }])));
    const finding = fired(await hostBound.find(context));
    expect(finding.gain!.expected_ms).toBeCloseTo((10 * (80 - 0.45)) / 1e3, 6);
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
    ['in every step: recompilation in each step', [0, 1, 2, 3], 3],
    ['in one later step: recompilation in that step', [0, 3], 0.75],
    ['in the first step only: no recompilation', [0], null],
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
    const result = await recompilation.find(context);
    if (gain === null) expect(result.outcome).not.toBe('fired');
    else expect(fired(result).gain!.expected_ms).toBeCloseTo(gain, 6);
  });

  test('counts host time of a first step far above the others as first-use cost', async () => {
    const context = await contextOf(
      stepRows('decode', 4, (step) => [{ idle: { host: step === 0 ? 20_000 : 20 } }, { kernel: 1000 }]),
    );
    expect(await firing(context)).toEqual([]);
  });

  test('reports host time between requests, outside all stages, if it recurs', async () => {
    const request = stepRows('decode', 4, () => [{ idle: { host: 20 } }, { kernel: 1000 }]);
    /** Rows of several requests with 10 ms between each and the next. */
    const requests = (count: number) => {
      const rows = {
        ...request,
        kernels: [...request.kernels],
        gaps: [...request.gaps],
        stages: [...request.stages],
      };
      for (let nth = 1; nth < count; nth++) {
        const later = nth * 14_080 * 1000;
        const shifted = <T extends { start_ns?: number | null; stage_id?: number | null }>(row: T): T => ({
          ...row,
          start_ns: row.start_ns! + later,
          stage_id: row.stage_id! + 10 * nth,
        });
        rows.gaps.push({
          start_ns: later - 10_000 * 1000,
          dur_ns: 10_000 * 1000,
          cause: 'host',
          host_ns: 10_000 * 1000,
          stage_id: 10 * nth,
        });
        rows.kernels.push(
          ...request.kernels.map((row) => ({
            ...shifted(row),
            correlation: row.correlation! + 500 * nth,
            api_start_ns: row.api_start_ns! + later,
          })),
        );
        rows.gaps.push(...request.gaps.slice(0, 4).map(shifted));
        rows.stages.push(
          ...request.stages.map((row) => ({
            ...shifted(row),
            phase_id: row.stage_id! + 10 * nth,
            end_ns: row.end_ns! + later,
            device_start_ns: row.device_start_ns! + later,
            device_end_ns: row.device_end_ns! + later,
            iteration: nth,
          })),
        );
      }
      return rows;
    };
    const finding = fired(await gpuIdleBetweenRequests.find(await contextOf(requests(3))));
    expect(finding.at_stake_ms).toBeCloseTo(10, 6);
    expect(finding.stage).toBeNull();
    // 20 ms of 12 × 1.02 + 20.
    expect(finding.title).toContain('62 % of the run, 2 pauses of 10.0 ms on average');
    expect(await gpuIdleBetweenRequests.find(await contextOf(requests(2)))).toEqual({
      outcome: 'not_fired',
      why: 'The device is idle between stages only once, for 10.0 ms.',
    });
    // Two pauses before 30 prefills are events of the program.
    const many = requests(3);
    const last = many.stages.at(-1)!;
    for (let nth = 1; nth <= 30; nth++)
      many.stages.push({
        ...last,
        kind: 'prefill',
        stage_id: 1000 + nth,
        phase_id: 1000 + nth,
        start_ns: last.end_ns! + nth * 100_000,
        end_ns: last.end_ns! + (nth + 1) * 100_000,
      });
    const { outcome, why } = (await gpuIdleBetweenRequests.find(await contextOf(many))) as {
      outcome: string;
      why: string;
    };
    expect(outcome).toBe('not_fired');
    expect(why).toMatch(/^The device is idle before 2 of 30 requests only, for 20\.0 ms\.$/);
  });
});
