import { expect, test } from 'vitest';
import type { GpuDevice } from './telemetry-gpu.js';
import { gpuFacts } from './telemetry-gpus.js';

const device = (index: number, name: string) =>
  ({ index, name, memoryTotalBytes: 150_754_820_096 }) as GpuDevice;

test('the manifest has the same GPU names as captures of nsys and PyTorch', () => {
  const alike = [device(0, 'NVIDIA H200'), device(1, 'NVIDIA H200')];
  expect(gpuFacts({ devices: alike, driverVersion: '580.159.03' })).toEqual({
    hardware: { gpu_count: 2, gpu_name: 'NVIDIA H200', gpu_memory_bytes: 150_754_820_096 },
    software: { nvidia_driver: '580.159.03' },
  });
  const mixed = gpuFacts({
    devices: [device(0, 'NVIDIA H200'), device(1, 'NVIDIA L4')],
    driverVersion: null,
  });
  expect(mixed.hardware).toMatchObject({ gpu_name: 'NVIDIA H200', gpu1_name: 'NVIDIA L4' });
  expect(mixed.software).toEqual({});
  expect(gpuFacts(null)).toEqual({ hardware: {}, software: {} });
});
