import { expect, test } from 'vitest';
import { gpuRooflineSchema } from '../../model/documents/gpu-roofline.js';
import { conditionsWithin, driverIndex } from './conditions.js';
import { gemmCase } from './gemm-search.js';
import { bandwidthCases, collectiveCases, otherProbes } from './gpu-plan.js';
import { collectivesOf, gpuRoofsOf } from './gpu-roofs.js';
import { measuredLine } from './test-lines.js';

const facts = {
  device: 'cuda:0',
  name: 'NVIDIA H200',
  computeCapability: '9.0',
  memoryBytes: 150e9,
  smCount: 132,
  index: 0,
  l2Bytes: 60 * 2 ** 20,
  powerLimitW: 700,
  pciId: null,
};
const noSensors = () => ({ sm_clock_mhz: null, power_w: null, throttled_by: [] });
const gemm = gemmCase({ dtype: 'bfloat16', m: 8192, n: 8192, k: 8192 });
const probe = (kernel: string) =>
  [...bandwidthCases(facts), ...otherProbes(facts)].find((one) => one.kernel === kernel)!;

test('computes rates, shares of the data sheet and ridge points, checked by hand', () => {
  const lines = [
    // 2·8192³ = 1.0995e12 FLOP in 1.4 ms: 785.4 TFLOP/s, 79.4 % of 989.
    measuredLine(gemm, [1.5e6, 1.4e6, 1.3e6]),
    // 1 GiB read and written in 0.5 ms: 4.295 TB/s of 4.8. Read: 1 GiB in 0.25 ms.
    measuredLine(probe('copy'), [0.5e6]),
    measuredLine(probe('read'), [0.25e6]),
    // Writes may be compressed on their way, so they are never the roofline.
    measuredLine(probe('write'), [0.1e6]),
    measuredLine(probe('launch'), [2500], { backend: 'host' }),
  ];
  const gpu = gpuRoofsOf(facts, 'full', lines, noSensors);
  const [peak] = gpu.compute;
  expect(peak!.flops_per_s / 1e12).toBeCloseTo(785.4, 1);
  expect(peak!.of_sheet.value).toBeCloseTo(0.794, 3);
  expect(peak!.sheet).toMatchObject({ value: 989e12 });
  // sd of 1.5, 1.4, 1.3 is 0.1.
  expect(peak!.sd_share).toBeCloseTo(0.1 / 1.4, 6);
  expect(gpu.memory_bytes_per_s! / 1e12).toBeCloseTo(4.295, 3);
  expect(peak!.ridge_flop_per_byte).toBeCloseTo(785.4 / 4.295, 1);
  expect(gpu.bandwidth.find(({ pattern }) => pattern === 'copy')!.of_sheet.value).toBeCloseTo(0.895, 3);
  expect(gpu.launch).toMatchObject({ ns: 2500 });
  expect(gpu.graph_node).toBeNull();
  const roofline = { framework: 'torch', driver: null, measured_at: '', seconds: 1, collectives: null };
  expect(() => gpuRooflineSchema.parse({ ...roofline, gpus: [gpu], issues: [] })).not.toThrow();
});

test('a GPU without a data sheet has no shares, and an issue says what to do', () => {
  const gpu = gpuRoofsOf({ ...facts, name: 'NVIDIA X1' }, 'full', [measuredLine(gemm, [1.4e6])], noSensors);
  expect(gpu.sheet).toBeNull();
  expect(gpu.compute[0]!.of_sheet).toMatchObject({ value: null, reason: { code: 'unknown_gpu' } });
});

test('all-reduce: bus bandwidth as defined by nccl-tests', () => {
  const cases = collectiveCases(8, facts);
  const big = cases.at(-1)!;
  // 1 GiB in 5 ms: 214.7 GB/s, × 1.75 = 375.8 on each link.
  const found = collectivesOf(
    'NVIDIA H200',
    8,
    [measuredLine(big, [5e6]), measuredLine(cases[0]!, [30e3])],
    noSensors,
  )!;
  expect(found.points.map(({ bytes }) => bytes)).toEqual([1024, 2 ** 30]);
  expect(found.points[1]!.algorithm_bytes_per_s / 1e9).toBeCloseTo(214.7, 1);
  expect(found.bus_bytes_per_s! / 1e9).toBeCloseTo(375.8, 1);
  expect(found.latency_ns).toBe(30e3);
});

test('takes clocks, power and throttle reasons from the timed part', () => {
  const row = (t_ns: number, metric: string, value: number, scope = 'gpu0') => ({
    t_ns,
    metric,
    value,
    scope,
  });
  const rows = [
    row(90, 'sm_clock_mhz', 300),
    row(100, 'sm_clock_mhz', 1800),
    row(150, 'sm_clock_mhz', 1700),
    row(150, 'sm_clock_mhz', 10, 'gpu1'),
    row(150, 'power_instant_w', 690),
    row(100, 'throttle_bits', 0x1),
    // power cap, and the idle bit, which limits nothing
    row(150, 'throttle_bits', 0x4 | 0x1),
    row(250, 'throttle_bits', 0x40),
  ];
  expect(conditionsWithin(rows, 'gpu0', { fromNs: 100, toNs: 200 })).toEqual({
    sm_clock_mhz: 1750,
    power_w: 690,
    throttled_by: ['sw_power_cap'],
  });
  expect(conditionsWithin(rows, 'gpu2', { fromNs: 0, toNs: 1e9 })).toEqual({
    sm_clock_mhz: null,
    power_w: null,
    throttled_by: [],
  });
});

test("maps PyTorch's GPU numbers through CUDA_VISIBLE_DEVICES", () => {
  const devices = ['GPU-aaaa', 'GPU-bbbb', 'GPU-cccc'].map((uuid, index) => ({ index, uuid }));
  expect(driverIndex(1, devices, undefined)).toBe(1);
  expect(driverIndex(0, devices, '2,0')).toBe(2);
  expect(driverIndex(1, devices, '2,0')).toBe(0);
  expect(driverIndex(0, devices, 'GPU-bb')).toBe(1);
  expect(driverIndex(0, devices, 'MIG-1234')).toBe(0);
  // GPU 1 fell off the bus: the others keep their indices.
  const withoutSecond = devices.filter(({ index }) => index !== 1);
  expect(driverIndex(0, withoutSecond, 'GPU-cc')).toBe(2);
});

test('measures the L2 with arrays that do not fit the L1s together', () => {
  // Answers of an H200 (60 MiB L2; 132 SMs × 256 KiB = 33 MiB of L1): GB/s by MiB; 64 MiB exceeds the L2.
  const answered: Record<number, number> = { 16: 11_655, 24: 12_008, 32: 8763, 40: 8000, 48: 7500, 64: 5000 };
  const lines = otherProbes(facts)
    .filter(({ kernel, params }) => kernel === 'l2-read' && params['bytes']! / 2 ** 20 in answered)
    .map((one) => measuredLine(one, [one.bytes / answered[one.params['bytes']! / 2 ** 20]!]));
  expect(lines).toHaveLength(6);
  const reads = (change: Partial<typeof facts>) =>
    gpuRoofsOf({ ...facts, ...change }, 'full', lines, noSensors).l2!;
  expect(reads({}).array_bytes).toBe(40 * 2 ** 20);
  expect(reads({}).bytes_per_s / 1e9).toBeCloseTo(8000, 3);
  // For an L2 smaller than the L1s together: any array that fits it.
  expect(reads({ l2Bytes: 32 * 2 ** 20, smCount: 200 }).array_bytes).toBe(24 * 2 ** 20);
});
