import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { cachedGpuRoofline, gpuMachineKey, saveGpuRoofline } from '../capture/roofline/cache.js';
import { exampleGpuRoofline } from '../model/documents/test-gpu-roofline.js';
import { testFolder } from '../session/test-folder.js';
import { createSession } from '../session/create.js';
import { homeFolders } from '../session/home.js';
import { attachGpuRoofline, attachRooflineFile, readRooflineFile } from './attach-roofline.js';

afterEach(() => vi.unstubAllEnvs());

const device = { name: 'NVIDIA H200', memoryTotalBytes: 150e9, powerLimitW: 700, migDevices: [] };
const machine = { source: 'NVML' as const, driverVersion: '580.159', devices: [device] };

test('the cached roofline is saved only for a capture of the same GPU', async () => {
  vi.stubEnv('INFERSCOPE_HOME', testFolder());
  const { cache } = homeFolders();
  const keys = { machine: gpuMachineKey(machine), framework: 'any' };
  await saveGpuRoofline(cache, keys, exampleGpuRoofline());
  const cached = await cachedGpuRoofline(cache, machine);
  const session = await createSession({ label: 'x', kind: 'run' });
  const addArtifact = vi.spyOn(session, 'addArtifact');
  expect(await attachGpuRoofline(session, {}, cached)).toEqual([]);
  expect(await attachGpuRoofline(session, { gpu_name: 'NVIDIA A10G' }, cached)).toEqual([]);
  expect(addArtifact).not.toHaveBeenCalled();
  await attachGpuRoofline(session, { gpu_name: 'NVIDIA H200' }, cached);
  expect(
    addArtifact.mock.calls.map(
      ([content]) => JSON.parse(Buffer.from(content as Uint8Array).toString()) as unknown,
    ),
  ).toEqual([exampleGpuRoofline()]);
  await session.abandon();
});

test('--roofline of another GPU is not used, and an issue says so', async () => {
  vi.stubEnv('INFERSCOPE_HOME', testFolder());
  const session = await createSession({ label: 'x', kind: 'import' });
  const addArtifact = vi.spyOn(session, 'addArtifact');
  const file = {
    path: '/elsewhere/h200.json',
    roofline: { roofline: exampleGpuRoofline(), cached: true, ageS: 1 },
  };
  const issues = async (hardware: Record<string, string>) =>
    (await attachRooflineFile(session, hardware, file)).filter(({ code }) => code === 'roofline_not_used');
  const [another] = await issues({ gpu_name: 'NVIDIA A10G' });
  expect(another).toMatchObject({ severity: 'warning' });
  expect(another!.text).toMatch(
    /^--roofline h200\.json .*NVIDIA H200.*NVIDIA A10G.*inferscope roofline --json/,
  );
  const [none] = await issues({});
  expect(none!.text).toMatch(/NVIDIA H200.*names no GPU/);
  expect(addArtifact).not.toHaveBeenCalled();
  expect(await issues({ gpu_name: 'NVIDIA H200' })).toEqual([]);
  expect(addArtifact).toHaveBeenCalledOnce();
  await session.abandon();
});

test('a roofline document of another machine is read; other files are rejected', async () => {
  const folder = testFolder();
  const write = (name: string, content: unknown) => {
    const path = join(folder, name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const gpu = exampleGpuRoofline();
  const printed = { schema: 'inferscope/roofline/1.0', data: { roofline: null, gpu, gpu_cached: true } };
  expect((await readRooflineFile(write('printed.json', printed))).roofline).toEqual(gpu);
  expect((await readRooflineFile(write('cached.json', { data: gpu }))).roofline).toEqual(gpu);
  // In the format of a session's artifact.
  expect((await readRooflineFile(write('artifact.json', gpu))).roofline).toEqual(gpu);
  for (const wrong of [{ data: { roofline: {}, gpu: null } }, [], 'not JSON'])
    await expect(readRooflineFile(write('wrong.json', wrong))).rejects.toMatchObject({
      code: 'E_RECORD_FILE',
    });
  await expect(readRooflineFile(join(folder, 'absent.json'))).rejects.toMatchObject({
    code: 'E_RECORD_FILE',
  });
});
