import { expect, test } from 'vitest';
import { figure } from '../../model/figure.js';
import { exampleGpuRoofline } from '../../model/documents/test-gpu-roofline.js';
import { bandwidthName, peakTexts } from '../../vocabulary/peaks.js';
import { deviceOf, ordinalOf } from '../device.js';
import { roofsOfCpu } from '../predict/device-roofs.js';
import { exampleRoofline, mebibyte } from '../test-session.js';
import { openDatabase } from '../../session/database.js';
import { queryRows, type SessionDatabase } from '../../session/query.js';
import { float32RanAs, utilizationRoofs } from './roofs.js';
import { stageShares } from './stage.js';
import { fixtureWorkload } from './test-tiny.js';

const h200 = { gpu_name: 'NVIDIA H200' };
const noRooflines = { cpu: null, gpu: null };

test('a stage against the roofs of a GPU: 989 GFLOP and 4.8 GB in 10 ms', () => {
  const roofs = utilizationRoofs({ hardware: h200, workload: fixtureWorkload() }, noRooflines, {
    onCpu: false,
  });
  const work = { flops: 989e9, flops_by_dtype: { float16: 989e9 }, bytes_total: 4.8e9 };
  const time = figure(10, 'ms', 'test', { n: 4, ci95: [8, 12.5] });
  const { mfu, mbu, bound } = stageShares(work, time, 0, roofs);
  // Each takes 1 ms at its peak; a tie is compute-bound. The interval scales with 1 / t.
  expect(mfu.value).toBeCloseTo(0.1, 12);
  expect(mfu.value === null ? null : mfu.ci95?.map((value) => Number(value.toFixed(9)))).toEqual([
    0.08, 0.125,
  ]);
  expect(mbu.value).toBeCloseTo(0.1, 12);
  expect(bound).toBe('compute');
});

test('work in two dtypes: each at its own peak', () => {
  const roofs = utilizationRoofs({ hardware: h200, workload: fixtureWorkload() }, noRooflines, {
    onCpu: false,
  });
  const work = {
    flops: 989e9 + 67e9,
    flops_by_dtype: { float16: 989e9, float32: 67e9 },
    bytes_total: 1,
  };
  const { mfu, peak_flops_per_s } = stageShares(work, figure(10, 'ms', 'test'), 0, roofs);
  expect(mfu.value).toBeCloseTo(0.2, 12);
  expect(peak_flops_per_s.value).toBeCloseTo((989e9 + 67e9) / 2e-3, 0);
});

test('a dtype that the GPU was not measured in has no share of the measured roof', () => {
  const facts = { hardware: h200, workload: fixtureWorkload() };
  const roofs = utilizationRoofs(facts, { cpu: null, gpu: exampleGpuRoofline() }, { onCpu: false });
  const shareOf = (dtype: string) => {
    const work = { flops: 1e12, flops_by_dtype: { [dtype]: 1e12 }, bytes_total: 1 };
    return stageShares(work, figure(10, 'ms', 'test'), 0, roofs).roof_share;
  };
  expect(shareOf('bfloat16').value).toBeCloseTo(1 / 8, 9);
  expect(shareOf('float8')).toMatchObject({
    reason: { code: 'no_roofline', text: 'the measured roofline of NVIDIA H200 does not include it' },
  });
});

test('a CPU uses the measured roofs at the working set; without them the reason is given', () => {
  const roofline = exampleRoofline();
  const facts = { hardware: { cpu_model: 'test CPU' }, workload: fixtureWorkload({ device: 'cpu' }) };
  const roofs = utilizationRoofs(facts, { cpu: roofline, gpu: null }, { onCpu: true });
  const float32 = roofline.compute.find(({ dtype }) => dtype === 'float32');
  expect(roofs.peak('float32').value).toBe(float32!.flops_per_s);
  const smallest = roofline.bandwidth[0]!;
  expect(roofs.bandwidth(1).value).toBe(smallest.bytes_per_s);
  const work = { flops: 1, flops_by_dtype: { float32: 1 }, bytes_total: smallest.bytes_per_s };
  // One second of reading takes two seconds.
  const { mbu, roof_share } = stageShares(work, figure(2000, 'ms', 'test'), 1, roofs);
  expect([mbu.value, roof_share.value]).toEqual([0.5, 0.5]);
  const unmeasured = utilizationRoofs(facts, noRooflines, { onCpu: true }).peak('float32');
  expect(unmeasured.value === null ? unmeasured.reason.code : null).toBe('no_roofline');
});

test('the peaks of a CPU are the same in explain and predict, with the level of the bandwidth', () => {
  const roofline = exampleRoofline();
  const facts = { hardware: { cpu_model: 'test CPU' }, workload: fixtureWorkload({ device: 'cpu' }) };
  const ofExplain = utilizationRoofs(facts, { cpu: roofline, gpu: null }, { onCpu: true });
  const ofPredict = roofsOfCpu(roofline);
  const set = 80 * mebibyte;
  const texts = [ofExplain, ofPredict].map((roofs) =>
    peakTexts([
      ['float32', roofs.peak('float32')],
      [bandwidthName(roofs.bandwidthLevel(set)), roofs.bandwidth(set)],
    ]),
  );
  expect(texts[1]).toEqual(texts[0]);
  expect(texts[0]![0]).toMatch(/^float32 100 GFLOP\/s, bandwidth \(DRAM\) 10\.0 GB\/s: measured roofline/);
  expect(ofPredict.peak('bfloat16')).toEqual(ofExplain.peak('bfloat16'));
});

test('finds the GPU of a session', () => {
  const two = { gpu_name: 'NVIDIA H200', gpu1_name: 'NVIDIA A10' };
  const gpuName = (device: string, ordinal?: number | null, options = {}) =>
    deviceOf(
      {
        hardware: two,
        workload: fixtureWorkload({ device, engine: { name: 'vllm', version: null, options } }),
      },
      ordinal,
    ).name;
  expect([gpuName('cuda:0'), gpuName('cuda:1'), gpuName('cuda'), gpuName('cpu'), gpuName('server')]).toEqual([
    'NVIDIA H200',
    'NVIDIA A10',
    'NVIDIA H200',
    null,
    null,
  ]);
  // The engine's name for the GPU, unless a capture's device is requested.
  expect(gpuName('cuda:1', undefined, { gpu: 'NVIDIA B200' })).toBe('NVIDIA B200');
  expect(gpuName('cuda:0', 1, { gpu: 'NVIDIA B200' })).toBe('NVIDIA A10');
  expect([ordinalOf('cuda:3'), ordinalOf('cuda'), ordinalOf(undefined)]).toEqual([3, null, null]);
  expect(deviceOf({ hardware: { gpu0_name: 'NVIDIA H200' }, workload: null }).peak('float16').value).toBe(
    989e12,
  );
});

test.each([
  // CUTLASS as cuBLAS names it: float32 inputs, the instruction is of TF32.
  ['tfloat32', 'fp32', 'cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4'],
  ['tfloat32', 'tf32', 'sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32'],
  ['float32', 'fp32', 'sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8'],
])('float32 ran as %s: a kernel of type %s, %s', async (expected, dtype, name) => {
  const { connection, close } = await openDatabase();
  await connection.run(
    `CREATE TABLE rank_kernels AS SELECT 'gemm' AS class, '${dtype}' AS dtype, '${name}' AS name, 10 AS dur_ns`,
  );
  const query = (sql: string) => queryRows(connection, sql, []);
  expect(await float32RanAs({ query } as unknown as SessionDatabase)).toBe(expected);
  await close();
});
