import { expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { kernel, type Rows, sessionOf, stage, us } from '../trace/test-hand.js';
import { traceScope } from '../derived/scope.js';
import { countedClasses, countedKey, inefficiencyParts } from './counter-parts.js';
import { stageGroups } from './stage-groups.js';

const metrics = {
  'gpu__time_duration.sum': 110 * us,
  'dram__bytes.sum': 96e6,
  launch__waves_per_multiprocessor: 1.5,
  sm__maximum_warps_per_active_cycle_pct: 50,
  launch__occupancy_limit_registers: 2,
  launch__occupancy_limit_shared_mem: 8,
  'smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio': 6,
  'smsp__average_warps_issue_stalled_wait_per_issue_active.ratio': 1,
};

const rows: Rows = {
  stages: [stage(1, 'decode', 0, 300, { step_index: 0 })],
  kernels: [
    kernel(1, 10, 100, { name: 'gemm_a', short_name: 'gemm_a' }),
    kernel(1, 120, 60, { name: 'gemm_b', short_name: 'gemm_b' }),
  ],
  counters: Object.entries(metrics).map(([metric, value]): Row<'counters'> => ({
    kernel_name: 'gemm_a',
    launch_ordinal: 0,
    nvtx_path: 'decode',
    metric,
    value,
  })),
};

test('splits kernel time above its roofline into tail, occupancy and stalls, in this order', async () => {
  const session = await sessionOf(rows);
  const database = await session.connect();
  const scope = await traceScope(database, session.manifest);
  await stageGroups(scope);
  const classes = await countedClasses(session, scope, { flops: null, bandwidth: 4.8e12 });
  await database.close();
  const gemm = classes.get(countedKey('decode', 'gemm'))!;
  // 96 MB at 4.8 TB/s take 20 of the kernel's 100 µs. Of the other 80 µs, 1.5 of 2 waves lose 25; half of the remaining
  // 55 is lost occupancy and half stalls.
  expect(gemm.ms).toBeCloseTo(0.1, 9);
  expect(gemm.atRoofMs).toBeCloseTo(0.02, 9);
  const causes = gemm.causes.map(({ label, ms }) => [label.split(/[:,]/)[0], Number((ms * 1e3).toFixed(6))]);
  expect(causes).toEqual([
    ['tail', 25],
    ['occupancy is limited', 27.5],
    ['stalls', 27.5],
  ]);
  expect(gemm.causes[1]!.label).toContain('registers');
  expect(gemm.causes[2]!.label).toContain('long_scoreboard');
});

test('parts sum to the bar: excess traffic, causes, and kernels that ncu did not count', () => {
  const classTimes = {
    ms: 0.1,
    atRoofMs: 0.02,
    causes: [
      { label: 'tail', ms: 0.025, count: 1 },
      { label: 'stalls', ms: 0.055, count: 1 },
    ],
  };
  // The class took 160 µs and needs 16, of which the counted kernel needs 10. Its traffic takes 10 µs more than needed.
  const parts = inefficiencyParts(classTimes, 0.16, 0.016);
  expect(parts.map(({ label, ms }) => [label, Number((ms * 1e3).toFixed(6))])).toEqual([
    ['more bytes or FLOPs than needed', 10],
    ['stalls', 55],
    ['tail', 25],
    ['kernels that ncu did not count', 54],
  ]);
  // A bar of 80 µs cannot contain 90, so parts are scaled in proportion.
  const scaled = inefficiencyParts(classTimes, 0.1, 0.02);
  expect(scaled.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(0.08, 12);
  expect(inefficiencyParts(classTimes, 0.1, 0.2)).toEqual([]);
});

test('finds a kernel although nsys and ncu demangle its name differently', async () => {
  const nsys = 'void vectorized_elementwise_kernel<(int)4, add<float>, (bool)1>(int, T2, T3)';
  const ncu = 'void vectorized_elementwise_kernel<4, add<float>, true>(int, T2, T3)';
  const session = await sessionOf({
    ...rows,
    kernels: [kernel(1, 10, 100, { name: nsys, short_name: 'vectorized_elementwise_kernel' })],
    counters: rows.counters!.map((row) => ({ ...row, kernel_name: ncu })),
  });
  const database = await session.connect();
  const scope = await traceScope(database, session.manifest);
  await stageGroups(scope);
  const classes = await countedClasses(session, scope, { flops: null, bandwidth: 4.8e12 });
  await database.close();
  expect([...classes.values()].map(({ ms }) => Number(ms.toFixed(9)))).toEqual([0.1]);
});
