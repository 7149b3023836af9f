import { expect, test } from 'vitest';
import { kernelFiles } from '../../export/kernel-files.js';
import { kernelCase } from '../../llm/kernel-work.js';
import { kernelsDocumentSchema } from '../../model/documents/kernels.js';
import { testHome } from '../../session/test-folder.js';
import { sessionOf } from '../test-session.js';
import { onCpu, protocol, row } from '../test-microbenchmarks.js';
import { analyzeKernels } from './kernels.js';

const unmeasured = { runs: 0, mean_ns: null, median_ns: null, min_ns: null, max_ns: null, sd_ns: null };

test('rates, roofs and bounds of a CPU equal those computed by hand', async () => {
  // 100 GFLOP/s float32. The 96 MiB of rotated buffers exceed the largest measured set: 10 GB/s.
  const square = kernelCase('gemm', 'float32', { m: 1000, n: 1000, k: 1000 });
  const flat = kernelCase('gemm', 'float32', { m: 1, n: 1000, k: 1000 });
  const norm = kernelCase('rmsnorm', 'float32', { tokens: 100, hidden: 1000, residual: 0 });
  const wild = kernelCase('rmsnorm', 'float32', { tokens: 100, hidden: 2000, residual: 0 });
  const large = { rotated_bytes: 96 * 2 ** 20 };
  const session = await sessionOf(
    testHome(),
    {
      microbenchmarks: [
        row(square, 40e6, large),
        row(flat, 0.5e6, large),
        row(norm, 0.1e6, { ...large, max_error: 1e-7 }),
        row(wild, 0.1e6, { ...large, sd_ns: 0.1e6 }),
        row(kernelCase('softmax', 'float32', { rows: 1, columns: 2 }), 0, {
          ...unmeasured,
          outcome: 'failed',
          text: 'its process died',
        }),
      ],
      telemetry: [
        { execution_id: 'kernels', scope: 'cpu0', metric: 'clock_mhz', value: 3000, t_ns: 5e8 },
        { execution_id: 'kernels', scope: 'cpu0', metric: 'clock_mhz', value: 9000, t_ns: 5e9 },
      ],
    },
    { kind: 'kernels', artifacts: { 'kernel-plan': onCpu } },
  );
  const document = await analyzeKernels(session);
  expect(() => kernelsDocumentSchema.parse(document)).not.toThrow();
  const caseOf = (kernel: string, index = 0) =>
    document.data.cases.filter((testCase) => testCase.kernel === kernel)[index]!;
  const caseById = new Map(document.data.cases.map((testCase) => [testCase.case, testCase]));
  // 2 GFLOP in 40 ms are 50 GFLOP/s, half of the peak. 12 MB would take 1.2 ms.
  expect(caseById.get(square.case)).toMatchObject({
    flops_per_s: 50e9,
    bytes_per_s: 0.3e9,
    roof_ns: { value: 20e6 },
    roof_share: { value: 0.5 },
    bound: 'compute',
    clock_mhz: { value: 3000, n: 1 },
  });
  // 4 008 000 bytes at 10 GB/s are 0.4008 ms.
  expect(caseById.get(flat.case)).toMatchObject({
    bound: 'memory',
    roof_share: { value: expect.closeTo(0.8016, 9) },
  });
  // No GEMM, so only its bytes count: (200 000 + 1000) × 4.
  expect(caseOf('rmsnorm')).toMatchObject({
    bound: 'memory',
    roof_ns: { value: expect.closeTo(80_400, 6) },
    intensity: expect.closeTo(400_000 / 804_000, 12),
    max_error: 1e-7,
  });
  // n = 3: t = 4.3027 at two degrees of freedom; 4.3027 · 0.1 / √3.
  const { mean_ns: mean } = caseOf('rmsnorm');
  expect(mean).toMatchObject({ n: 3, ci95: [expect.closeTo(75_158.6, 0), expect.closeTo(124_841.4, 0)] });
  // ± 248 µs around 100 µs: no duration is negative.
  expect(kernelFiles(document)[0]!.text).not.toMatch(/,-\d/);
  expect(caseOf('softmax')).toMatchObject({
    outcome: 'failed',
    text: 'its process died',
    median_ns: null,
    bound: null,
    mean_ns: { value: null, reason: { code: 'failed' } },
    roof_share: { value: null },
  });
});

test('a CPU case uses the bandwidth of the cache level of its working set, and names it', async () => {
  const norm = (tokens: number) => kernelCase('rmsnorm', 'float32', { tokens, hidden: 1000, residual: 0 });
  // The hand roofline: 1 MiB L2 100 GB/s, 4 MiB L3 40, 16 MiB L3 20, 64 MiB DRAM 10.
  const sets: [number, number, string][] = [
    [100, 1, 'L2'],
    [101, 16, 'L3'],
    [102, 64, 'DRAM'],
  ];
  const session = await sessionOf(
    testHome(),
    {
      microbenchmarks: sets.map(([tokens, mib]) =>
        row(norm(tokens), 1e6, { rotated_bytes: mib * 2 ** 20, method: 'graph' }),
      ),
    },
    { kind: 'kernels', artifacts: { 'kernel-plan': { ...onCpu, protocol: { ...protocol, runs: 100 } } } },
  );
  const document = await analyzeKernels(session);
  const { cases, roofs } = document.data;
  expect(cases.map(({ roof_level, roof_bytes_per_s: rate }) => [roof_level, rate.value])).toEqual([
    ['L2', 100e9],
    ['L3', 20e9],
    ['DRAM', 10e9],
  ]);
  for (const testCase of cases) {
    expect(testCase.roof_ns.value).toBeCloseTo((testCase.bytes / testCase.roof_bytes_per_s.value!) * 1e9, 6);
  }
  expect(roofs.levels.map(({ level }) => level)).toEqual(['L2', 'L3', 'DRAM']);
  // 3 runs of the 100 requested.
  expect(document.issues.find(({ code }) => code === 'runs_cut')).toMatchObject({
    severity: 'warning',
    count: 3,
  });
});

test('a GPU without a measured roofline uses its data sheet, and throttling is reported', async () => {
  const gemmCase = kernelCase('gemm', 'bfloat16', { m: 4096, n: 4096, k: 4096 });
  const facts = { name: 'NVIDIA H200', device: 'cuda:0', framework: 'torch', driver: null };
  const unknown = { sm_count: null, l2_bytes: null, memory_bytes: null, compute_capability: null };
  const plan = { ...onCpu, device: 'cuda:0', scope: 'gpu3', device_facts: { ...facts, ...unknown } };
  const sample = (metric: string, value: number, scope = 'gpu3') => ({
    execution_id: 'kernels',
    scope,
    metric,
    value,
    t_ns: 5e8,
  });
  const session = await sessionOf(
    testHome(),
    {
      microbenchmarks: [row(gemmCase, 200_000, { peak_memory_bytes: 2 ** 30 })],
      // Bit 2 is the power cap (nvmlClocksEventReasonSwPowerCap); gpu0 is another GPU.
      telemetry: [
        sample('sm_clock_mhz', 1500),
        sample('throttle_bits', 4),
        sample('power_instant_w', 690),
        sample('sm_clock_mhz', 1980, 'gpu0'),
      ],
    },
    { kind: 'kernels', roofline: null, artifacts: { 'kernel-plan': plan } },
  );
  const { data, issues } = await analyzeKernels(session);
  // 2 · 4096³ FLOP at the 989.5 TFLOP/s of NVIDIA's sheet (989 as printed) are 138.9 µs.
  const [gemm] = data.cases;
  expect(gemm!.roof_ns.value! / 1e3).toBeCloseTo(138.9, 0);
  expect(gemm).toMatchObject({
    bound: 'compute',
    clock_mhz: { value: 1500 },
    power_w: { value: 690 },
    peak_memory_bytes: { value: 2 ** 30 },
    throttled_by: [expect.stringContaining('power')],
  });
  expect(data.roofs.bytes_per_s).toMatchObject({ value: 4.8e12 });
  expect(issues.map(({ code }) => code)).toContain('kernels_throttled');
});

test('a step is the sum of its measured operations, and missing ones are counted and named', async () => {
  const gemm = kernelCase('gemm', 'float32', { m: 1, n: 1000, k: 1000 });
  const lost = kernelCase('swiglu', 'float32', { tokens: 1, intermediate: 10 });
  const op = (name: string, count: number, caseId: string | null, reason: string | null = null) => ({
    name,
    count,
    case: caseId,
    reason,
    flops: 0,
    bytes: 0,
  });
  const model = {
    name: 'tiny',
    dtype: 'float32',
    steps: [
      {
        phase: 'decode' as const,
        batch_size: 1,
        new_tokens: 1,
        context_tokens: 8,
        ops: [
          op('qkv_proj', 4, gemm.case),
          op('swiglu', 4, lost.case),
          op('router_topk', 2, null, 'no kernel'),
        ],
      },
    ],
  };
  const session = await sessionOf(
    testHome(),
    {
      microbenchmarks: [
        row(gemm, 1e6, { rotated_bytes: 96 * 2 ** 20 }),
        row(lost, 0, { ...unmeasured, outcome: 'out_of_memory', text: 'too large' }),
      ],
    },
    { kind: 'kernels', artifacts: { 'kernel-plan': { ...onCpu, model } } },
  );
  const [step] = (await analyzeKernels(session)).data.steps;
  expect(step).toMatchObject({ measured_ops: 4, missing_ops: 6, measured_ns: { value: 4e6 } });
  expect(step!.roof_ns.value).toBeCloseTo(4 * 400_800, 3);
  expect(step!.ops.map(({ reason }) => reason)).toEqual([null, 'out of memory: too large', 'no kernel']);
});

test('one map for each combination of further parameters', async () => {
  const points = [1, 8].flatMap((batch) =>
    [128, 512].flatMap((seq) =>
      ['float32', 'bfloat16'].map((dtype) => ({
        case: `softmax ${dtype} ${batch} ${seq}`,
        series: 'softmax',
        batch_size: batch,
        seq_len: seq,
        hidden_size: 64,
        dtype,
        backend: null,
      })),
    ),
  );
  const session = await sessionOf(
    testHome(),
    {},
    { kind: 'kernels', artifacts: { 'kernel-plan': { ...onCpu, points } } },
  );
  const { maps } = (await analyzeKernels(session)).data;
  expect(maps.map(({ fixed }) => fixed)).toEqual(['dtype float32', 'dtype bfloat16']);
  expect(maps[1]).toMatchObject({
    x: { name: 'batch size', values: ['1', '8'] },
    y: { name: 'sequence length', values: ['128', '512'] },
  });
  expect(maps[1]!.cells).toContainEqual({ x: 1, y: 0, case: 'softmax bfloat16 8 128' });
});

test('kernels and operators of one run of a traced case come only from its own ranges', async () => {
  const norm = kernelCase('rmsnorm', 'float32', { tokens: 100, hidden: 1000, residual: 0 });
  const keys = { execution_id: 'traced', capture_id: 'torch' };
  const range = (stage_id: number, raw_name: string) => ({ ...keys, stage_id, raw_name, kind: 'other' });
  const kernel = (stage_id: number, short_name: string, dur_ns: number) => ({
    ...keys,
    stage_id,
    short_name,
    name: short_name,
    class: 'norm',
    dur_ns,
  });
  const op = { ...keys, name: 'aten::rms_norm', op_type: 'cpu_op', class: null };
  const session = await sessionOf(
    testHome(),
    {
      microbenchmarks: [row(norm, 1e5)],
      // Two runs of three kernels, after the kernels of the inputs.
      stages: [range(0, 'setup'), range(1, `case:${norm.case}`), range(2, `case:${norm.case}`)],
      kernels: [
        kernel(0, 'fill', 9000),
        ...[1, 2].flatMap((id) => [
          kernel(id, 'norm', 300),
          kernel(id, 'norm', 500),
          kernel(id, 'scale', 100),
        ]),
      ],
      ops: [
        { ...op, stage_id: 1, dur_ns: 50, self_dur_ns: 40 },
        { ...op, stage_id: 2, dur_ns: 70, self_dur_ns: 60 },
      ],
    },
    {
      kind: 'kernels',
      artifacts: { 'kernel-plan': { ...onCpu, traces: [{ capture_id: 'torch', case: null }] } },
    },
  );
  expect((await analyzeKernels(session)).data.cases[0]!.executed).toEqual([
    { what: 'kernel', name: 'norm', class: 'norm', count: 2, ns: 800 },
    { what: 'kernel', name: 'scale', class: 'norm', count: 1, ns: 100 },
    { what: 'operator', name: 'aten::rms_norm', class: null, count: 1, ns: 50 },
  ]);
});
