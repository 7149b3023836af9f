import { expect, test } from 'vitest';
import { breakdownOf } from './breakdown.js';
import { placesOf } from './places.js';
import { gpuPoints, gpusOfRun, ownPids } from './points.js';
import { mb, planOf, rowsOf, samples, memoryRow, torchRows } from './test-run.js';
import { otherProcessIssues, measureTotal } from './total.js';
import type { MemoryRows } from './rows.js';
import type { MemoryPlan } from '../../model/memory-plan.js';

function breakdown(rows: MemoryRows, plan: MemoryPlan = planOf()) {
  const enginePids = ownPids(rows, plan);
  const gpus = gpusOfRun(rows, plan, enginePids);
  const points = gpuPoints(rows, plan, gpus);
  const measured = measureTotal(rows, plan, { gpus, enginePids, points });
  const facts = {
    gpus,
    points,
    enginePids,
    measured,
    log: null,
    estimate: null,
    workload: null,
    pool: null,
    kvHeadsKnown: true,
  };
  return { gpus, points, measured, ...breakdownOf(placesOf(rows, plan, facts), measured, null) };
}

const bytesOf = ({ components }: ReturnType<typeof breakdown>) =>
  Object.fromEntries(components.map(({ component, bytes }) => [component, bytes / mb]));

// Driver samples: 20 MB before, 2240 MB when warm, 2250 MB at the peak.
const used = samples({ 0.5: 20, 1: 20, 2: 1640, 3: 2240, 4: 2240, 5: 2250, 6: 2250 });

test("splits memory at the allocator's peak in prefill into parts that sum to the measured total", () => {
  const result = breakdown(rowsOf({ used: new Map([[0, used]]), recorded: torchRows() }));
  expect(result.gpus).toEqual([0]);
  expect(result.points.baseline.total_bytes).toBe(20 * mb);
  expect(result.points.peak.total_bytes).toBe(2250 * mb);
  // 2240 − 20 − 1700 reserved = 520 of context; 1500 − 1000 − 40 − 100 kept = 360; 1700 − 1500 = 200.
  expect(bytesOf(result)).toEqual({
    model_weights: 1000,
    kv_cache: 40,
    activations: 360,
    framework_overhead: 100,
    allocator_reserve: 200,
    cuda_context: 520,
    residual: 10,
  });
  const sum = result.components.reduce((total, { bytes }) => total + bytes, 0);
  expect(sum).toBe(result.total_measured_bytes);
  expect(result.total_measured_bytes).toBe(2230 * mb);
  expect(result.framework_overhead_gb).toBeCloseTo(0.82, 12);
  expect(result.peak_stage).toBe('prefill');
  expect(result.components.find(({ component }) => component === 'kv_cache')?.evidence[0]).toContain(
    '120.0 MB at the end of decode',
  );
});

test('assigns rounding to whole blocks, and memory held only while loading, to the allocator', () => {
  const lines = [
    ...torchRows().filter(({ what }) => what !== 'max_reserved' && what !== 'max_allocated'),
    ...['prefill', 'decode'].map((stage) =>
      memoryRow(`max_allocated:${stage}`, stage === 'prefill' ? 1500 : 1300),
    ),
    memoryRow('max_allocated:load', 1650),
    memoryRow('max_allocated', 1650, { point: 'peak' }),
    memoryRow('max_reserved', 1700, { point: 'peak' }),
    memoryRow('requested:post_warmup', 1085),
  ];
  const result = breakdown(rowsOf({ used: new Map([[0, used]]), recorded: lines }));
  expect(result.peak_stage).toBe('prefill');
  expect(bytesOf(result)).toMatchObject({
    framework_overhead: 85,
    activations: 360,
    allocator_reserve: 200 + 15,
    residual: 10,
  });
  expect(result.components.find(({ component }) => component === 'allocator_reserve')?.evidence[0]).toContain(
    'loading held 1.650 GB',
  );
});

test('gives a residual at most medium confidence and shows a negative one', () => {
  const shrunk = samples({ 1: 20, 3: 2240, 4: 2240.001, 5: 2240 });
  const late = torchRows().map((row) => (row.stage === 'post_warmup' ? { ...row, t_ns: 3e9 } : row));
  const recorded = [
    ...late.filter(({ what }) => what !== 'max_reserved'),
    ...late.filter(({ what }) => what === 'max_reserved').map((row) => ({ ...row, bytes: 1750 * mb })),
  ];
  const result = breakdown(rowsOf({ used: new Map([[0, shrunk]]), recorded }));
  const residual = result.components.at(-1)!;
  expect(residual).toMatchObject({ component: 'residual', confidence: 'low' });
  // 2220.001 MB measured. Torch reserved 50 MB more after the driver's last sample.
  expect(residual.bytes).toBeCloseTo(-49.999 * mb, 0);
  expect(result.residual_bytes).toBe(residual.bytes);
  expect(result.residual_gb).toBeLessThan(0);
});

test('two ranks: each GPU has a place, and points have sum, max, mean and standard deviation', () => {
  const secondGpu = samples({ 1: 40, 3: 2460, 4: 2460, 5: 2470 });
  const rows = rowsOf({
    used: new Map([
      [0, used],
      [1, secondGpu],
    ]),
    recorded: [...torchRows(), ...torchRows({ device: 1, rank: 1 })],
  });
  const result = breakdown(rows);
  expect(result.gpus).toEqual([0, 1]);
  const { peak, baseline } = result.points;
  expect(peak.per_gpu_details.map(({ used_bytes }) => used_bytes)).toEqual([2250 * mb, 2470 * mb]);
  expect(peak).toMatchObject({ total_bytes: 4720 * mb, max_gb: 2.47, mean_gb: 2.36, stddev_gb: 0.11 });
  expect(baseline.total_gb).toBe(0.06);
  expect(result.model_weights_gb).toBe(2);
  expect(result.components.find(({ component }) => component === 'model_weights')?.evidence).toEqual([
    'GPU 0, GPU 1: parameter tensors on the GPU (float16 + float32)',
  ]);
  // 520 on the first GPU, 2460 − 40 − 1700 on the second.
  expect(bytesOf(result)['cuda_context']).toBe(520 + 720);
  const sum = result.components.reduce((total, { bytes }) => total + bytes, 0);
  expect(sum).toBe(result.total_measured_bytes);
});

test('counts memory that collectives add to a rank as framework overhead, not context', () => {
  const rows = rowsOf({
    used: new Map([[0, used]]),
    recorded: [
      ...torchRows(),
      memoryRow('device_used:alone', 420, { t_ns: 1.1e9 }),
      memoryRow('reserved:alone', 20, { t_ns: 1.1e9 }),
      memoryRow('device_used:post_warmup', 2240),
    ],
  });
  const result = breakdown(rows);
  // Outside torch: 400 MB alone and 540 with the other ranks. The difference is inside the driver's 520 of context.
  expect(bytesOf(result)).toMatchObject({
    framework_overhead: 100 + 140,
    cuda_context: 520 - 140,
    residual: 10,
  });
  expect(result.components.reduce((total, { bytes }) => total + bytes, 0)).toBe(result.total_measured_bytes);
});

test('does not count growth of the whole GPU as collectives if other processes started after the launch', () => {
  const soloReading = { t_ns: 1.1e9 };
  const rows = rowsOf({
    used: new Map([[0, samples({ 1: 20, 3: 7240, 4: 7240, 5: 7250 })]]),
    recorded: [
      ...torchRows(),
      memoryRow('device_used:alone', 420, soloReading),
      memoryRow('reserved:alone', 20, soloReading),
      memoryRow('device_used:post_warmup', 7240),
    ],
    processes: [
      { gpu: 0, pid: 100, samples: samples({ 3: 2220, 4: 2220, 5: 2225 }) },
      { gpu: 0, pid: 7, samples: samples({ 2: 5000, 5: 5000 }) },
    ],
  });
  const result = breakdown(rows);
  expect(bytesOf(result)).toMatchObject({ framework_overhead: 100, cuda_context: 2220 - 1700, residual: 5 });
  expect(result.components.find(({ component }) => component === 'cuda_context')?.evidence[0]).toContain(
    'it includes buffers of NCCL',
  );
  // Processes from before the launch kept their memory.
  const others_before = [{ gpu: 0, pid: 7, name: 'python', used_bytes: 5000 * mb }];
  const withOthersBefore = breakdown(
    { ...rows, used: new Map([[0, samples({ 1: 5020, 4: 7240, 5: 7250 })]]) },
    planOf({ others_before }),
  );
  expect(bytesOf(withOthersBefore)).toMatchObject({
    framework_overhead: 100 + 7240 - 1700 - 400,
    residual: 5,
  });
});

test('leaves out the growth of other processes on a shared GPU if the driver lists processes', () => {
  const rows = rowsOf({
    used: new Map([[0, samples({ 1: 5020, 3: 7240, 4: 7240, 5: 9250 })]]),
    recorded: torchRows(),
    processes: [
      { gpu: 0, pid: 100, samples: samples({ 3: 2220, 4: 2220, 5: 2225 }) },
      { gpu: 0, pid: 7, samples: samples({ 3: 5000, 5: 7000 }) },
    ],
  });
  const others_before = [{ gpu: 0, pid: 7, name: 'python', used_bytes: 5000 * mb }];
  const result = breakdown(rows, planOf({ others_before }));
  expect(result.measured).toMatchObject({ bytes: 2225 * mb, shared: false });
  const plan = planOf({ others_before });
  const enginePids = ownPids(rows, plan);
  expect(otherProcessIssues(rows, plan, { gpus: [0], enginePids, points: result.points })).toEqual([
    {
      code: 'gpu_shared',
      severity: 'warning',
      text: 'GPU 0 was also used by python (pid 7), 5.000 GB: figures of the whole GPU include it.',
    },
  ]);
  expect(bytesOf(result)['residual']).toBe(2225 - 2220);
});

test("bounds the total by torch's records if later processes in a container look like the run's", () => {
  const rows = rowsOf({
    used: new Map([[0, samples({ 1: 20, 3: 2240, 4: 6340, 5: 6350 })]]),
    recorded: [...torchRows(), memoryRow('device_used:post_warmup', 6340)],
    processes: [
      { gpu: 0, pid: 900, samples: samples({ 3: 2220, 4: 2220, 5: 2225 }) },
      { gpu: 0, pid: 901, samples: samples({ 4: 4100, 5: 4100 }) },
    ],
  });
  const plan = planOf({ pid_namespace: 'nested' });
  const result = breakdown(rows, plan);
  // 6340 − 1700 of torch's reserve − 20 before launch is not context.
  expect(result.measured).toMatchObject({ bytes: (6350 - 20) * mb, shared: true });
  expect(result.confidence_levels.overall).toBe('low');
  const context = result.components.find(({ component }) => component === 'cuda_context')!;
  expect(context).toMatchObject({ bytes: (6340 - 20 - 1700) * mb, confidence: 'low' });
  expect(context.evidence[0]).toContain('other processes started on the GPU');
  const issues = otherProcessIssues(rows, plan, {
    gpus: [0],
    enginePids: ownPids(rows, plan),
    points: result.points,
  });
  expect(issues.map(({ code, text }) => `${code}: ${text}`)).toEqual([
    'gpu_shared: GPU 0 was also used by a process that is not visible from here: figures of the whole GPU include it.',
  ]);
});

test('ignores samples from before the end of warm-up if the tool samples once per second', () => {
  const slow = samples({ 0.9: 20, 2.4: 1640, 3.4: 1900, 4.4: 2240, 5.4: 2250, 6.4: 20 });
  const { points } = breakdown(rowsOf({ used: new Map([[0, slow]]), recorded: torchRows() }));
  expect(points.post_warmup.total_bytes).toBe(2240 * mb);
  expect(points.peak.total_bytes).toBe(2250 * mb);
  expect(points.baseline.total_bytes).toBe(20 * mb);
});

test('does not count a cache kept between repeats as overhead, and lists a graph pool separately', () => {
  const base = torchRows().map((row) => {
    if (row.stage === 'post_warmup' && row.what === 'allocated') return { ...row, bytes: 1220 * mb };
    if (row.what === 'kv_cache') return { ...row, bytes: 120 * mb };
    return row;
  });
  const rows = rowsOf({
    used: new Map([[0, used]]),
    recorded: [
      ...base,
      memoryRow('kv_cache:post_warmup:float16', 120),
      memoryRow('graph_pool:post_warmup', 60),
    ],
  });
  const result = bytesOf(breakdown(rows));
  expect(result).toMatchObject({
    kv_cache: 120,
    framework_overhead: 100,
    activations: 1500 - 1000 - 120 - 100,
    cuda_graphs: 60,
    allocator_reserve: 140,
  });
  // 40 of the 100 MB that stay allocated are in the graph pool, and count there once.
  const withGraphAllocations = {
    ...rows,
    recorded: [...rows.recorded, memoryRow('graph_allocated:post_warmup', 40)],
  };
  const split = bytesOf(breakdown(withGraphAllocations));
  expect(split).toMatchObject({
    framework_overhead: 60,
    activations: result['activations'],
    cuda_graphs: 60,
    allocator_reserve: 180,
    residual: result['residual'],
  });
});

test('keeps what was recorded before a run ran out of memory in warm-up', () => {
  const lines = torchRows().filter(({ stage, what }) => ['load'].includes(stage ?? '') || what === 'weights');
  const rows = rowsOf({
    used: new Map([[0, samples({ 1: 20, 2: 1640, 3: 9000, 4: 3000 })]]),
    recorded: [
      ...lines,
      memoryRow('max_allocated:failed', 8000),
      memoryRow('reserved:failed', 8400),
      memoryRow('max_reserved:failed', 8400),
    ],
    phases: [{ label: 'load', start_ns: 1.2e9, end_ns: 2e9 }],
  });
  const failure = { code: 'E_OUT_OF_MEMORY', what: 'out of memory', why: 'w', fix: 'f' };
  const result = breakdown(rows, planOf({ failure, phases: [] }));
  expect(result.points.post_warmup.total_gb).toBeNull();
  expect(result.points.missing.post_warmup).toContain('out of memory');
  expect(result.points.peak.total_bytes).toBe(9000 * mb);
  expect(result.peak_stage).toBe('failed');
  expect(result.confidence_levels.activations).toBe('medium');
  const sum = result.components.reduce((total, { bytes }) => total + bytes, 0);
  expect(sum).toBe(result.total_measured_bytes);
});

test('gives formulas and the total low confidence if model dimensions contradict each other', () => {
  const part = { bytes: 1, confidence: 'medium' as const, evidence: '' };
  const place = {
    gpu: null,
    peakStage: null,
    parts: [
      { ...part, component: 'model_weights' as const },
      { ...part, component: 'kv_cache' as const, basis: 'formula' as const },
      { ...part, component: 'activations' as const },
    ],
  };
  const measured = { bytes: 3, source: 'driver' as const, shared: false, listed: false };
  const levels = (contradicted: boolean) =>
    breakdownOf([place], measured, null, { contradicted }).confidence_levels;
  expect(levels(false)).toMatchObject({ weights: 'medium', kv_cache: 'medium' });
  expect(levels(true)).toMatchObject({ overall: 'low', weights: 'medium', kv_cache: 'low' });
});
