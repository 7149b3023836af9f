import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { document } from '../../model/document.js';
import { type GpuRoofline, gpuRooflineSchema } from '../../model/documents/gpu-roofline.js';
import type { Gpus } from '../telemetry-gpus.js';
import { writeAtomically } from '../../model/atomic-write.js';

export interface CachedGpuRoofline {
  roofline: GpuRoofline;
  cached: boolean;
  ageS: number;
}

/** Increase it when the measurement changes: cached rooflines become invalid. */
const measurementVersion = 2;

/** The properties of a machine's GPUs that form the key. */
type MachineFacts = Pick<Gpus, 'source' | 'driverVersion'> & {
  devices: Pick<Gpus['devices'][number], 'name' | 'memoryTotalBytes' | 'powerLimitW' | 'migDevices'>[];
};

const digest = (facts: unknown) =>
  createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 12);

/** Names, sizes, power limits and partitions of the GPUs, and the driver: everything that affects a roof. No serial number. */
export function gpuMachineKey({ source, driverVersion, devices }: MachineFacts): string {
  return digest([
    measurementVersion,
    source,
    driverVersion,
    devices.map(({ name, memoryTotalBytes, powerLimitW, migDevices }) => [
      name,
      memoryTotalBytes,
      powerLimitW,
      migDevices.map((part) => part.name),
    ]),
  ]);
}

interface FrameworkFacts {
  torch: string | null;
  /** CUDA or ROCm it was built for. */
  build: string | null;
  /** GPUs that it sees: CUDA_VISIBLE_DEVICES may hide some. */
  gpus: readonly string[];
}

export function frameworkKey(facts: FrameworkFacts): string {
  return digest([facts.torch, facts.build, facts.gpus]);
}

export const rooflineFolder = (cacheDir: string): string => join(cacheDir, 'roofline-gpu');

const fileName = (machine: string, framework: string) => `${machine}-${framework}.json`;

export async function saveGpuRoofline(
  cacheDir: string,
  keys: { machine: string; framework: string },
  roofline: GpuRoofline,
): Promise<void> {
  const path = join(rooflineFolder(cacheDir), fileName(keys.machine, keys.framework));
  writeAtomically(path, JSON.stringify(document('gpu-roofline', '1.0', roofline)));
}

/** The cached roofline of exactly this machine and framework; null if there is no valid one. */
export function readGpuRoofline(
  cacheDir: string,
  keys: { machine: string; framework: string },
): Promise<CachedGpuRoofline | null> {
  return readEntry(join(rooflineFolder(cacheDir), fileName(keys.machine, keys.framework)));
}

/**
 * The newest roofline that matches this machine's current state (GPUs, driver, power limits), through any
 * PyTorch; for commands that create a session here and attach it (artifact kind `roofline-gpu`). Nothing is measured, no
 * Python is started; opening the driver takes milliseconds.
 * @param cacheDir homeFolders().cache
 * @param gpus already open; undefined opens and closes them, null: no GPUs
 */
export async function cachedGpuRoofline(
  cacheDir: string,
  gpus?: MachineFacts | null,
): Promise<CachedGpuRoofline | null> {
  if (gpus === null) return null;
  const folder = rooflineFolder(cacheDir);
  const names = await readdir(folder).catch(() => []);
  if (names.length === 0) return null;
  // Imports call this too, usually with an empty folder; loading the driver code takes 0.1 s.
  const opened = gpus ? null : (await (await import('../telemetry-gpus.js')).openGpus()).gpus;
  const machine = gpus ?? opened;
  if (!machine) return null;
  const key = gpuMachineKey(machine);
  opened?.close();
  const ownNames = names.filter((name) => name.startsWith(`${key}-`) && name.endsWith('.json'));
  const entries = await Promise.all(ownNames.map((name) => readEntry(join(folder, name))));
  return entries.filter((roofline) => roofline !== null).sort((a, b) => a.ageS - b.ageS)[0] ?? null;
}

/** Measured while another process ran, far below the data sheet, or incompletely: used now, but not cached for long. */
const doubtfulForS = 600;
const doubtfulCodes = new Set(['gpu_shared', 'below_data_sheet', 'not_measured']);

function isDoubtful({ issues }: GpuRoofline): boolean {
  return issues.some(({ code, severity }) => doubtfulCodes.has(code) && severity !== 'info');
}

/** An unreadable entry or one of another format is ignored. */
async function readEntry(path: string): Promise<CachedGpuRoofline | null> {
  try {
    const parsed = JSON.parse(await readFile(path, 'utf8')) as { data?: unknown };
    const roofline = gpuRooflineSchema.parse(parsed.data);
    const ageS = Math.max(0, (Date.now() - (await stat(path)).mtimeMs) / 1000);
    return isDoubtful(roofline) && ageS > doubtfulForS ? null : { roofline, cached: true, ageS };
  } catch {
    return null;
  }
}
