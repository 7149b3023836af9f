import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Issue } from '../../model/document.js';
import type { SweepFailure } from '../../model/documents/sweep.js';
import { deviceMemoryCleared, deviceMemoryUsed } from '../run/memory-cleared.js';
import { openGpus, type Gpus } from '../telemetry-gpus.js';
import { formatBytes } from '../../vocabulary/format.js';

/** Bytes a user may still write below a folder, which need not exist yet; null where the system does not tell. */
export function freeDiskBytes(folder: string): number | null {
  let place = folder;
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  try {
    const { bavail, bsize } = statfsSync(place);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Why a run may not begin: too little disk in one of the folders it writes to. */
export function diskFailure(folders: readonly string[], leastBytes: number): SweepFailure | null {
  for (const folder of folders) {
    const free = freeDiskBytes(folder);
    if (free === null || free >= leastBytes) continue;
    return {
      code: 'E_DISK_FULL',
      what: `too little free disk at ${folder}`,
      why: `${formatBytes(free)} are free; ${formatBytes(leastBytes)} are kept free for results, logs and sessions (--min-free-disk).`,
      fix: 'Free space there.',
      infrastructure: true,
    };
  }
  return null;
}

/** Watches that the memory of every GPU returns to what it was before the sweep. */
export interface GpuWatch {
  /** Of each GPU in all; empty without one. */
  capacities: number[];
  name: string | null;
  /** Waits for the memory of the run before. @returns what is still held */
  cleared(signal: AbortSignal): Promise<Issue | null>;
  close(): void;
}

export async function watchGpus(): Promise<GpuWatch> {
  const { gpus } = await openGpus();
  const before = gpus ? deviceMemoryUsed(gpus) : null;
  return {
    capacities: capacitiesOf(gpus),
    name: gpus?.devices[0]?.name ?? null,
    cleared: (signal) => deviceMemoryCleared(gpus, before, signal),
    close: () => gpus?.close(),
  };
}

const capacitiesOf = (gpus: Gpus | null): number[] =>
  (gpus?.devices ?? []).flatMap(({ memoryTotalBytes }) =>
    memoryTotalBytes === null ? [] : [memoryTotalBytes],
  );
