import { readFileSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { readCsvRecords } from '../../import/ncu/csv.js';
import { ncuCsvImporter } from '../../import/ncu/ncu-csv.js';
import type { Document, Issue } from '../../model/document.js';
import {
  countersDocumentSchema,
  type CountersResult,
  type KernelCounters,
} from '../../model/documents/counters.js';
import type { Figure } from '../../model/figure.js';
import { createSession } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import { testFolder, testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { analyzeCounters } from './counters.js';
import { speedOfLightBound } from './bound.js';
import { flopByUnit } from './flop.js';
import { kernelRoofline } from './roofline.js';

const home = testHome();
const fixture = (name: string) => join('test/fixtures/ncu-2025.3.1-h200', name);

async function analyze(...names: string[]): Promise<Document<CountersResult>> {
  const writer = await createSession({ home, label: 'ncu', kind: 'import' });
  const found: Issue[] = [];
  for (const [i, name] of names.entries()) {
    const { issues } = await ncuCsvImporter.load(isAbsolute(name) ? name : fixture(name), writer, {
      execution_id: 'counters',
      capture_id: `ncu${i}`,
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: null },
    });
    found.push(...issues);
  }
  const { id } = await writer.finish(summary, found);
  return analyzeCounters(await openSession(id, home));
}

/** NVIDIA's rules from the details page: rule name -> descriptions, one map per kernel name. */
async function readRules(name: string): Promise<Map<string, Map<string, string[]>>> {
  const kernels = new Map<string, Map<string, string[]>>();
  let header: string[] = [];
  for await (const { fields } of readCsvRecords(fixture(name))) {
    if (fields[0] === 'ID') header = fields;
    const field = (column: string) => fields[header.indexOf(column)] ?? '';
    if (fields[0] === 'ID' || field('Rule Name') === '') continue;
    const key = `${field('Kernel Name')} ${field('Grid Size').replace(/[() ]/g, '')}`;
    const list = kernels.get(key) ?? new Map<string, string[]>();
    kernels.set(key, list);
    list.set(field('Rule Name'), [...(list.get(field('Rule Name')) ?? []), field('Rule Description')]);
  }
  return kernels;
}

const value = (figure: Figure) => {
  if (figure.value === null) throw new Error(figure.reason.text);
  return figure.value;
};

describe.each([
  ['ncu-kernels.raw.csv', 'ncu-kernels.details.csv', 7],
  ['ncu-tiny.raw.csv', 'ncu-tiny.details.csv', 4],
])("%s against NVIDIA's rules", (raw, details, groups) => {
  let kernels: KernelCounters[] = [];
  let nvidia: Awaited<ReturnType<typeof readRules>>;
  beforeAll(async () => {
    const result = await analyze(raw);
    expect(countersDocumentSchema.parse(result)).toBeTruthy();
    kernels = result.data.kernels;
    nvidia = await readRules(details);
  });
  const rule = (kernel: KernelCounters, name: string) =>
    nvidia.get(`${kernel.name} ${kernel.grid}`)!.get(name) ?? [];

  test('the bound is the same', () => {
    expect(kernels).toHaveLength(groups);
    for (const kernel of kernels) {
      const [text] = rule(kernel, 'SOLBottleneck');
      const { by, cause } = kernel.bound;
      if (cause === 'grid_too_small') {
        const waves = /only ([\d.]+) full waves/.exec(text!)![1];
        expect([by, value(kernel.waves).toFixed(1)]).toEqual(['latency', waves]);
      } else if (cause === 'low_throughput') expect(text).toMatch(/low compute throughput/);
      else if (cause === 'near_peak') expect(text).toMatch(/greater than 80.0%/);
      else expect(text).toMatch(by === 'compute' ? /^Compute is more heavily/ : /^Memory is more heavily/);
    }
  });

  test('occupancy and its limiter are the same', () => {
    for (const kernel of kernels) {
      const [text] = rule(kernel, 'TheoreticalOccupancy');
      if (text === undefined) {
        expect(kernel.occupancy.limited_by).toEqual([]);
        continue;
      }
      expect(text).toContain(`(${value(kernel.occupancy.theoretical).toFixed(1)}%)`);
      expect(/required registers/.test(text)).toBe(kernel.occupancy.limited_by.includes('registers'));
      expect(/shared memory/.test(text)).toBe(kernel.occupancy.limited_by.includes('shared memory'));
    }
  });

  test('the share of the largest stall is the same', () => {
    let compared = 0;
    for (const kernel of kernels) {
      const text = rule(kernel, 'CPIStall').find((sentence) => sentence.startsWith('On average'));
      const stated = text && /spends ([\d.]+) cycles.*about ([\d.]+)% of the total average/s.exec(text);
      if (!stated || kernel.launches > 1) continue;
      expect(kernel.stalls[0]!.cycles!.toFixed(1)).toBe(stated[1]);
      expect((kernel.stalls[0]!.share * 100).toFixed(1)).toBe(stated[2]);
      compared++;
    }
    expect(compared).toBeGreaterThan(0);
  });

  test('the share of the FP32 peak is the same', () => {
    for (const kernel of kernels) {
      const text = rule(kernel, 'SOLFPRoofline')[0]!;
      const stated = /achieved\s+(close to )?(\d+)% of this device's FP32 peak/.exec(text)!;
      const flop = value(kernel.roofline.flop_by_unit.find(({ unit }) => unit === 'fp32')!.flop);
      // 132 SMs × 128 lanes × 2 at the clock of the run
      const seconds = value(kernel.duration_ns) / 1e9;
      const share = (100 * flop) / seconds / (132 * 128 * 2 * 1.9e9);
      expect(Math.abs(share - Number(stated[2]))).toBeLessThan(2.5);
      expect(flop === 0).toBe(stated[1] === undefined && stated[2] === '0');
    }
  });
});

describe('the 4096³ GEMM and other kernels', () => {
  let data: CountersResult;
  const kernel = (name: string) => data.kernels.find((candidate) => candidate.name.includes(name))!;
  beforeAll(async () => {
    data = (await analyze('ncu-kernels.raw.csv')).data;
  });

  test('the GEMM has 2·4096³ FLOP, and its roofline position equals the hand calculation', () => {
    const { roofline, ...gemm } = kernel('256x128');
    expect(value(roofline.flop)).toBe(2 * 4096 ** 3);
    const seconds = value(gemm.duration_ns) / 1e9;
    expect(value(roofline.achieved_flops)).toBeCloseTo((2 * 4096 ** 3) / seconds, -6);
    // Dense: 132 SMs × 4096 FLOP per clock × 1.585 GHz; the data sheet's 989 TFLOP/s are at 1.83 GHz.
    expect(value(roofline.peak_flops) / (132 * 4096 * 1.585316e9)).toBeCloseTo(1, 6);
    expect(roofline.roof_side).toBe('compute');
    expect(value(roofline.roof_share)).toBeCloseTo(0.9, 1);
    expect(value(roofline.peak_dram_bandwidth) / 4.8e12).toBeCloseTo(1, 1);
    expect(value(gemm.tensor_pipe)).toBeCloseTo(90.187848, 6);
    expect(gemm.bound).toMatchObject({ by: 'compute', cause: 'near_peak' });
    expect(value(gemm.registers_per_thread)).toBe(168);
    expect(value(gemm.shared_memory_per_block)).toBe(214_212);
  });

  test('the GEMV reads its weights, 33.6 MB at one FLOP per byte, below the memory bandwidth', () => {
    const { roofline, bound } = kernel('splitK');
    expect(value(roofline.dram_bytes) / (2 * 4096 * 4096)).toBeCloseTo(1, 1);
    expect(roofline.roof_side).toBe('memory');
    expect(bound.by).toBe('memory');
  });

  test("lists the device's SMs and the launches in order", () => {
    expect(data.devices).toEqual([{ device: 0, compute_capability: '9.0', sm_count: 132 }]);
    expect(data.launches).toHaveLength(7);
    expect(data.launches[0]).toMatchObject({ launch_ordinal: 0, nvtx_path: 'prefill' });
    expect(data.kernels.find(({ nvtx_paths: [path] }) => path === 'prefill')!.stage).toBe('prefill');
  });
});

test('launches with equal name and grid are one kernel with a spread; another grid is another kernel', async () => {
  const { data } = await analyze('ncu-tiny.raw.csv');
  const small = data.kernels.find(({ grid }) => grid === '8,2,1')!;
  expect(small.launches).toBe(2);
  // 4.224 and 4.096 µs
  expect(small.duration_ns).toMatchObject({ value: 4160, unit: 'ns', n: 2 });
  expect(small.duration_ns.value !== null && small.duration_ns.sd).toBeCloseTo(128 / Math.SQRT2, 6);
  expect(value(small.total_duration_ns)).toBe(8320);
  expect(data.launches.map(({ kernel }) => data.kernels[kernel]!.grid)).toEqual([
    '8,8,1',
    '8,2,1',
    '8,2,1',
    '8,1,1',
    '8,8,1',
    '8,11,1',
  ]);
});

test('raw and details page of one run are two captures with separate kernels', async () => {
  const { data } = await analyze('ncu-kernels.raw.csv', 'ncu-kernels.details.csv');
  expect(data.kernels).toHaveLength(14);
  const [raw, details] = ['ncu0', 'ncu1'].map((id) =>
    data.kernels.find((kernel) => kernel.capture_id === id && kernel.name.includes('256x128'))!,
  );
  expect(value(details!.duration_ns) / value(raw!.duration_ns)).toBeCloseTo(1, 3);
  expect(value(details!.occupancy.achieved)).toBeCloseTo(value(raw!.occupancy.achieved), 1);
  expect(value(details!.shared_memory_per_block) / value(raw!.shared_memory_per_block)).toBeCloseTo(1, 3);
  expect(details!.bound.by).toBe(raw!.bound.by);
  expect(details!.roofline.flop).toMatchObject({ value: null, reason: { code: 'no_tensor_counters' } });
  expect(details!.stalls_missing).toMatch(/warp states/);
});

const metrics = (values: Record<string, number>) =>
  new Map(Object.entries(values).map(([name, v]) => [name, { value: v, n: 1, sd: null }]));

test('bounds at their thresholds', () => {
  const bound = (sm: number, memory: number, waves = 4) =>
    speedOfLightBound(
      metrics({
        'sm__throughput.avg.pct_of_peak_sustained_elapsed': sm,
        'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed': memory,
        launch__waves_per_multiprocessor: waves,
      }),
    );
  expect(bound(80, 10).cause).toBe('near_peak');
  expect(bound(10, 80)).toMatchObject({ by: 'memory', cause: 'near_peak' });
  expect(bound(59.9, 59.9).cause).toBe('low_throughput');
  expect(bound(59.9, 59.9, 0.99).cause).toBe('grid_too_small');
  expect(bound(60, 50.1).by).toBe('balanced');
  expect(bound(60, 50)).toMatchObject({ by: 'compute', cause: 'ahead' });
  expect(speedOfLightBound(new Map()).by).toBeNull();
});

test('uses tensor FLOP alone, with a note, if nothing else was counted', () => {
  const some = { 'sm__ops_path_tensor_src_bf16_dst_fp32.sum': 1e9, 'dram__bytes.sum': 1e7 };
  const { flop, arithmetic_intensity } = kernelRoofline(metrics(some));
  expect(flop).toMatchObject({ value: 1e9, source: 'tensor instructions; others not collected' });
  expect(arithmetic_intensity.value).toBe(100);
  const none = { 'sm__ops_path_tensor_src_bf16_dst_fp32.sum': 0, 'dram__bytes.sum': 0 };
  expect(kernelRoofline(metrics(none)).flop).toMatchObject({ reason: { code: 'not_collected' } });
  expect(kernelRoofline(metrics(none)).arithmetic_intensity).toMatchObject({
    reason: { code: 'no_dram_traffic' },
  });
});

describe('uncounted tensor FLOP are missing, not 0', () => {
  const tensor = (values: Record<string, number>) => flopByUnit(metrics(values), 1e-3)[0]!.flop;
  const pipe = 'sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed';
  const capability = 'device__attribute_compute_capability_major';

  test('a GB100 counts utchmma; hmma alone is not enough', () => {
    const hmma = 'sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum';
    expect(tensor({ [capability]: 10, [hmma]: 0 })).toMatchObject({ reason: { code: 'no_tensor_counters' } });
    const utchmma = 'sm__ops_path_tensor_op_utchmma_src_bf16_dst_fp32_sparsity_off.sum';
    expect(tensor({ [capability]: 10, [hmma]: 0, [utchmma]: 5e9 }).value).toBe(5e9);
  });

  test('FLOP of a busy tensor pipe without a counted operation are missing', () => {
    const sum = 'sm__ops_path_tensor_src_fp16.sum';
    expect(tensor({ [capability]: 9, [sum]: 0, [pipe]: 40 })).toMatchObject({
      reason: { code: 'tensor_not_counted' },
    });
    expect(tensor({ [capability]: 9, [sum]: 0, [pipe]: 0.8 }).value).toBe(0);
  });

  test('without counters FLOP are 0 only if the pipe is idle', () => {
    expect(tensor({ [pipe]: 0 }).value).toBe(0);
    expect(tensor({}).value).toBeNull();
  });

  test('counts aggregates once; fp8 has only its aggregate', () => {
    expect(
      tensor({
        [capability]: 9,
        'sm__ops_path_tensor_src_fp16.sum': 100,
        'sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum': 90,
        'sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum': 10,
        'sm__ops_path_tensor_src_fp8_sparsity_off.sum': 7,
        'sm__ops_path_tensor_op_igmma_src_int8_sparsity_off.sum': 1000,
        'sm__ops_path_tensor_src_int8.sum': 1000,
      }).value,
    ).toBe(107);
  });
});

test('counts a page once if its file has it twice', async () => {
  const page = readFileSync(fixture('ncu-kernels.raw.csv'), 'utf8');
  const path = join(testFolder(), 'twice.csv');
  writeFileSync(path, page + page);
  const { data, issues } = await analyze(path);
  expect(data.launches_total).toBe(7);
  expect(issues).toContainEqual(
    expect.objectContaining({ code: 'ncu_repeated', severity: 'warning', count: 7 }),
  );
});

test('a session without counters reports that', async () => {
  const { data, issues } = await analyze();
  expect(data.kernels).toEqual([]);
  expect(issues).toEqual([expect.objectContaining({ code: 'no_counters' })]);
});
