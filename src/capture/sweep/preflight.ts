import type { Issue } from '../../model/document.js';
import type { SweepFailure } from '../../model/documents/sweep.js';
import { waitForFreedMemory, readUsedMemory } from '../run/memory-cleared.js';
import { openGpus, type Gpus } from '../telemetry-gpus.js';
import { formatBytes } from '../../vocabulary/format.js';
import { freeBytes } from '../../vocabulary/storage-failure.js';

/** Why a run cannot start: too little disk in one of its output folders. */
export function diskFailure(folders: readonly string[], minBytes: number): SweepFailure | null {
  for (const folder of folders) {
    const free = freeBytes(folder);
    if (free === null || free >= minBytes) continue;
    return {
      code: 'E_DISK_FULL',
      what: `too little free disk at ${folder}`,
      why: `${formatBytes(free)} are free; ${formatBytes(minBytes)} must stay free for results, logs and sessions (--min-free-disk).`,
      fix: 'Free some space there.',
      infrastructure: true,
    };
  }
  return null;
}

/** Checks that the memory of every GPU returns to its level before the sweep. */
export interface GpuWatch {
  /** Total memory of each GPU; empty without GPUs. */
  capacities: number[];
  name: string | null;
  /** Waits until the memory of the previous run is freed. @returns the memory still in use */
  waitForFreedMemory(signal: AbortSignal): Promise<Issue | null>;
  close(): void;
}

/** For runs that execute elsewhere. */
export const noGpus: GpuWatch = {
  capacities: [],
  name: null,
  waitForFreedMemory: async () => null,
  close: () => {},
};

export async function watchGpus(): Promise<GpuWatch> {
  const { gpus } = await openGpus();
  const before = gpus ? readUsedMemory(gpus) : null;
  return {
    capacities: capacitiesOf(gpus),
    name: gpus?.devices[0]?.name ?? null,
    waitForFreedMemory: (signal) => waitForFreedMemory(gpus, before, signal),
    close: () => gpus?.close(),
  };
}

const capacitiesOf = (gpus: Gpus | null): number[] =>
  (gpus?.devices ?? []).flatMap(({ memoryTotalBytes }) =>
    memoryTotalBytes === null ? [] : [memoryTotalBytes],
  );
