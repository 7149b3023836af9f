import { afterEach, expect, test, vi } from 'vitest';
import { cachedGpuRoofline, gpuMachineKey, keepGpuRoofline } from '../capture/roofline/cache.js';
import { handGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { testFolder } from '../session/test-folder.js';
import { createSession } from '../session/create.js';
import { homeFolders } from '../session/home.js';
import { attachGpuRoofline } from './attach-roofline.js';

afterEach(() => vi.unstubAllEnvs());

const device = { name: 'NVIDIA H200', memoryTotalBytes: 150e9, powerLimitW: 700, migDevices: [] };
const machine = { source: 'NVML' as const, driverVersion: '580.159', devices: [device] };

test('the cached roofline goes along where it is of the same GPU, and nowhere else', async () => {
  vi.stubEnv('INFERSCOPE_HOME', testFolder());
  const { cache } = homeFolders();
  const keys = { machine: gpuMachineKey(machine), framework: 'any' };
  await keepGpuRoofline(cache, keys, handGpuRoofline());
  const cached = await cachedGpuRoofline(cache, machine);
  const session = await createSession({ label: 'x', kind: 'run' });
  const kept = vi.spyOn(session, 'addArtifact');
  expect(await attachGpuRoofline(session, {}, cached)).toEqual([]);
  expect(await attachGpuRoofline(session, { gpu_name: 'NVIDIA A10G' }, cached)).toEqual([]);
  expect(kept).not.toHaveBeenCalled();
  await attachGpuRoofline(session, { gpu_name: 'NVIDIA H200' }, cached);
  expect(
    kept.mock.calls.map(([content]) => JSON.parse(Buffer.from(content as Uint8Array).toString()) as unknown),
  ).toEqual([handGpuRoofline()]);
  await session.abandon();
});
