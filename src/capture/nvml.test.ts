import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { limitingBits, throttleReasonNames } from '../model/throttle-reasons.js';
import { cudaVersion } from '../model/cuda-version.js';
import { nvmlReturnName } from './nvml-codes.js';
import { openNvml } from './nvml.js';

test('a missing NVML library gives a reason instead of a crash', async () => {
  const { nvml, reason } = await openNvml(['libnvidia-ml-of-no-machine.so.1']);
  expect(nvml).toBeNull();
  expect(reason).toMatchObject({ code: 'library_missing' });
  expect(reason?.text).toContain('libnvidia-ml-of-no-machine.so.1');
});

test.runIf(process.platform === 'linux')('a library that is not NVML gives a reason', async () => {
  const { nvml, reason } = await openNvml(['libm.so.6']);
  expect(nvml).toBeNull();
  expect(reason?.code).toBe('symbol_missing');
});

test('error codes equal those of nvml.h', () => {
  expect(nvmlReturnName(9)).toBe('NVML_ERROR_DRIVER_NOT_LOADED');
  expect(nvmlReturnName(18)).toBe('NVML_ERROR_LIB_RM_VERSION_MISMATCH');
  expect(nvmlReturnName(77)).toBe('NVML_ERROR_77');
  expect(cudaVersion(12040)).toBe('12.4');
  expect(cudaVersion(13000)).toBe('13.0');
});

test('idle is a named reason, but not throttling', () => {
  expect(throttleReasonNames(0x1)).toEqual(['gpu_idle']);
  expect((0x1 & limitingBits) !== 0).toBe(false);
  expect(throttleReasonNames(0x44)).toEqual(['sw_power_cap', 'hw_thermal_slowdown']);
  expect((0x44 & limitingBits) !== 0).toBe(true);
  expect((0 & limitingBits) !== 0).toBe(false);
});

const { nvml, reason } = await openNvml();

/** Runs only with an NVIDIA GPU: nvidia-smi, which reads the same driver in another way, is the reference. */
describe.runIf(nvml)(`a real GPU${reason ? ` (skipped: ${reason.code})` : ''}`, () => {
  const smi = (query: string) =>
    execFileSync('nvidia-smi', ['-i', '0', `--query-gpu=${query}`, '--format=csv,noheader,nounits'], {
      encoding: 'utf8',
    })
      .trim()
      .split(', ');

  test('constant values equal those of nvidia-smi', () => {
    const device = nvml!.devices[0]!;
    const [name, uuid, bus, total, driver, limit, capability, smMax] = smi(
      'name,uuid,pci.bus_id,memory.total,driver_version,enforced.power.limit,compute_cap,clocks.max.sm',
    );
    expect(device.name).toBe(name);
    expect(device.uuid).toBe(uuid);
    expect(device.pciBusId).toBe(bus);
    expect(device.memoryTotalBytes! / 2 ** 20).toBeCloseTo(Number(total), -1);
    expect(nvml!.driverVersion).toBe(driver);
    expect(device.powerLimitW).toBeCloseTo(Number(limit), 0);
    expect(device.computeCapability).toBe(capability);
    expect(device.maxSmClockMhz).toBe(Number(smMax));
  });

  test("a sample is close to nvidia-smi's, and every null has a reason", () => {
    const device = nvml!.devices[0]!;
    const [used, temperature] = smi('memory.used,temperature.gpu').map(Number);
    const sample = device.sample();
    expect(Math.abs(sample.memoryUsedBytes! / 2 ** 20 - used!)).toBeLessThan(1024);
    expect(Math.abs(sample.temperatureC! - temperature!)).toBeLessThan(15);
    expect(sample.powerW!).toBeGreaterThan(5);
    expect(sample.powerW!).toBeLessThan(2 * device.powerLimitW!);
    for (const [field, value] of Object.entries(sample)) {
      if (value === null) expect(device.missing[field], field).toMatch(/^NVML_ERROR_/);
    }
    expect(device.sample()).toBe(sample);
  });
});
