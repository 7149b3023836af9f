import { readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exampleGpuRoofline } from '../../model/documents/test-gpu-roofline.js';
import { testFolder } from '../../session/test-folder.js';
import {
  cachedGpuRoofline,
  frameworkKey,
  gpuMachineKey,
  saveGpuRoofline,
  readGpuRoofline,
  rooflineFolder,
} from './cache.js';
import { cachedIssues } from './issues.js';

const device = { name: 'NVIDIA H200', memoryTotalBytes: 150e9, powerLimitW: 700, migDevices: [] };
const machine = { source: 'NVML' as const, driverVersion: '580.159', devices: [device, device] };
const framework = { torch: '2.11.0', build: '13.0', gpus: ['NVIDIA H200', 'NVIDIA H200'] };

test('another driver, GPU count, power limit, torch or visible GPU set is another roofline', () => {
  const keys = [
    machine,
    { ...machine, driverVersion: '581.0' },
    { ...machine, devices: [device] },
    { ...machine, devices: [device, { ...device, powerLimitW: 500 }] },
  ].map(gpuMachineKey);
  expect(new Set(keys).size).toBe(keys.length);
  expect(gpuMachineKey({ ...machine, devices: [{ ...device }, device] })).toBe(keys[0]);
  const built = [framework, { ...framework, torch: '2.12.0' }, { ...framework, gpus: ['NVIDIA H200'] }];
  expect(new Set(built.map(frameworkKey)).size).toBe(3);
});

test('is read with its age; ignored if damaged, of another key, or old and doubtful', async () => {
  const cacheDir = testFolder();
  const keys = { machine: gpuMachineKey(machine), framework: frameworkKey(framework) };
  expect(await readGpuRoofline(cacheDir, keys)).toBeNull();
  await saveGpuRoofline(cacheDir, keys, exampleGpuRoofline());
  const [name] = readdirSync(rooflineFolder(cacheDir));
  const path = join(rooflineFolder(cacheDir), name!);
  const daysAgo = (days: number) => {
    const then = Date.now() / 1000 - days * 86_400;
    utimesSync(path, then, then);
  };
  daysAgo(40);
  const found = (await readGpuRoofline(cacheDir, keys))!;
  expect(found.roofline).toEqual(exampleGpuRoofline());
  expect(found.ageS / 86_400).toBeCloseTo(40, 2);
  expect(cachedIssues(found.roofline, found.cached, found.ageS)).toMatchObject([{ code: 'roofline_old' }]);
  expect(cachedIssues(found.roofline, true, 86_400)).toEqual([]);
  expect(await readGpuRoofline(cacheDir, { ...keys, framework: 'other' })).toBeNull();

  const issue = { code: 'gpu_shared' as const, severity: 'warning' as const, text: 'Others ran on gpu0.' };
  await saveGpuRoofline(cacheDir, keys, exampleGpuRoofline({ issues: [issue] }));
  expect(await readGpuRoofline(cacheDir, keys)).toMatchObject({ cached: true });
  daysAgo(1);
  expect(await readGpuRoofline(cacheDir, keys)).toBeNull();

  writeFileSync(path, '{"data":{"gpus":[]}}');
  expect(await readGpuRoofline(cacheDir, keys)).toBeNull();
});

test('sessions on the machine use its newest roofline, whichever torch measured it', async () => {
  const cacheDir = testFolder();
  expect(await cachedGpuRoofline(cacheDir, machine)).toBeNull();
  const key = gpuMachineKey(machine);
  await saveGpuRoofline(
    cacheDir,
    { machine: key, framework: 'older' },
    exampleGpuRoofline({ framework: 'torch 2.10' }),
  );
  const then = Date.now() / 1000 - 3600;
  utimesSync(join(rooflineFolder(cacheDir), `${key}-older.json`), then, then);
  await saveGpuRoofline(cacheDir, { machine: key, framework: 'newer' }, exampleGpuRoofline());
  expect((await cachedGpuRoofline(cacheDir, machine))!.roofline.framework).toBe('torch 2.11.0+cu130');
  expect(await cachedGpuRoofline(cacheDir, { ...machine, driverVersion: '581.0' })).toBeNull();
  expect(await cachedGpuRoofline(cacheDir, null)).toBeNull();
});
