import { expect, test } from 'vitest';
import type { MachineRoofline } from '../model/documents/roofline.js';
import { exampleGpu, exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { bandwidthAt, computePeaks, gpuRoofs, peaksOf } from './roofs.js';
import { exampleRoofline, mebibyte } from './test-session.js';

const roofline: MachineRoofline = exampleRoofline();
const bandwidth = (mib: number) => bandwidthAt(roofline, mib * mebibyte);

test('uses the measured bandwidth of a size; outside the measured range, that of the nearest size', () => {
  expect(bandwidth(4)).toEqual({ bytesPerS: 40e9, level: 'L3' });
  expect(bandwidth(0.01)).toEqual({ bytesPerS: 100e9, level: 'L2' });
  expect(bandwidth(1)).toEqual({ bytesPerS: 100e9, level: 'L2' });
  expect(bandwidth(9999)).toEqual({ bytesPerS: 10e9, level: 'DRAM' });
});

test('interpolates linearly over the logarithm of the size', () => {
  // 2 is halfway from 1 to 4 in the logarithm: (100 + 40) / 2. 8 from 4 to 16: (40 + 20) / 2.
  expect(bandwidth(2).bytesPerS).toBeCloseTo(70e9, 0);
  expect(bandwidth(8).bytesPerS).toBeCloseTo(30e9, 0);
  expect(bandwidth(8).level).toBe('L3');
  // From 16 (20 GB/s) to 64 (10): log4(x / 16).
  expect(bandwidth(32).bytesPerS).toBeCloseTo(15e9, 0);
});

test('the size names the level, last-level cache or DRAM', () => {
  expect(roofline.last_level_cache_bytes).toBe(32 * mebibyte);
  expect([bandwidth(17).level, bandwidth(32).level, bandwidth(33).level, bandwidth(63).level]).toEqual([
    'L3',
    'L3',
    'DRAM',
    'DRAM',
  ]);
  expect(bandwidthAt({ ...roofline, last_level_cache_bytes: null }, 20 * mebibyte).level).toBe('DRAM');
});

test('a working set between two cache levels belongs to the larger one', () => {
  expect(bandwidth(2).level).toBe('L3');
});

test('peaks by dtype', () => {
  expect(computePeaks(roofline)).toEqual({ float32: 100e9, int8: 400e9 });
});

test('MFU divides by the data sheet, roof_share by the measured peak, and each states its source', () => {
  const roofs = gpuRoofs('NVIDIA H200', exampleGpuRoofline());
  expect(roofs.mfuFlops('bfloat16')).toMatchObject({
    value: 989e12,
    source: expect.stringContaining('data sheet'),
  });
  expect(roofs.roofFlops('bfloat16')).toMatchObject({
    value: 800e12,
    source:
      'measured on NVIDIA H200, 2026-11-21 (torch 2.11.0+cu130), GEMM 8192×8192×8192 with throttled clocks',
  });
  expect(roofs.wasThrottled('bfloat16')).toBe(true);
  expect(roofs.wasThrottled('float8')).toBe(false);
  expect(roofs.mbuBandwidth).toMatchObject({ value: 4.8e12 });
  expect(roofs.roofBandwidth).toMatchObject({ value: 4e12 });
  // float8 was not measured, so the data sheet's value is used and labeled.
  expect(roofs.roofFlops('float8')).toMatchObject({
    value: 1979e12,
    source: expect.stringContaining('data sheet'),
  });
  expect(roofs.launchNs).toMatchObject({ value: 2400, unit: 'ns' });
  expect(roofs.hostLink).toMatchObject({ value: 55e9, source: expect.stringContaining('pinned') });
  // 16 lanes of PCIe 5.0: 32 GT/s × 16 × 128/130 / 8.
  expect(gpuRoofs('NVIDIA H200', null).hostLink.value).toBeCloseTo(63e9, -8);
  expect(peaksOf(roofs.roofFlops)).toMatchObject({ float32: 50e12, bfloat16: 800e12 });
  expect(peaksOf(roofs.roofFlops)).not.toHaveProperty('int4');
});

test('a figure that the measured roofline lacks is not said to need a measurement', () => {
  const measured = exampleGpuRoofline({ gpus: [exampleGpu({ l2: null })] });
  expect(gpuRoofs('NVIDIA H200', measured).l2Bandwidth).toMatchObject({
    reason: { code: 'no_roofline', text: 'the measured roofline of NVIDIA H200 does not include it' },
  });
});

test('sums the GPUs of a tensor-parallel group, but not their latencies', () => {
  const roofs = gpuRoofs('NVIDIA H200', exampleGpuRoofline(), { devices: 2 });
  expect(roofs.mfuFlops('bfloat16')).toMatchObject({
    value: 2 * 989e12,
    source: expect.stringContaining('× 2'),
  });
  expect(roofs.roofBandwidth.value).toBe(8e12);
  expect(roofs.graphNodeNs.value).toBe(1100);
});

test('ignores the roofline of another GPU, and needs a measurement of the same GPU if its name is unknown', () => {
  expect(gpuRoofs('NVIDIA H100 80GB HBM3', exampleGpuRoofline())).toMatchObject({
    measured: null,
    launchNs: { value: null, reason: { code: 'no_roofline' } },
    roofFlops: expect.any(Function),
  });
  const unknown = gpuRoofs('NVIDIA X1', null);
  expect(unknown.mfuFlops('bfloat16')).toMatchObject({
    value: null,
    reason: { code: 'unknown_gpu', text: expect.stringContaining('inferscope roofline') },
  });
  const measured = exampleGpuRoofline({ gpus: [exampleGpu({ name: 'NVIDIA X1' })] });
  expect(gpuRoofs('NVIDIA X1', measured).mfuFlops('bfloat16')).toMatchObject({
    value: 800e12,
    source: expect.stringContaining('measured on NVIDIA X1'),
  });
  expect(gpuRoofs(null, measured).mbuBandwidth).toMatchObject({ reason: { code: 'unknown_gpu' } });
});
