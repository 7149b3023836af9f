import { setTimeout as sleep } from 'node:timers/promises';
import type { Issue } from '../../model/document.js';
import type { Gpus } from '../telemetry-gpus.js';
import { formatBytes } from '../../vocabulary/format.js';

/** The driver frees a context some time after its process has exited. */
const waitMs = 10_000;
const pollMs = 200;
/** Tolerance for small allocations of other programs. */
const toleranceBytes = 256 * 2 ** 20;

/** Used bytes per device; null if NVML does not report it. */
export function readUsedMemory({ devices }: Pick<Gpus, 'devices'>): (number | null)[] {
  return devices.map((device) => device.sample().memoryUsedBytes);
}

/** Waits until no GPU uses more memory than before the first execution. @returns an issue if one still does after `limitMs` */
export async function waitForFreedMemory(
  gpus: Pick<Gpus, 'devices'> | null,
  before: (number | null)[] | null,
  signal: AbortSignal,
  limitMs = waitMs,
): Promise<Issue | null> {
  if (!gpus || !before) return null;
  const deadline = Date.now() + limitMs;
  for (;;) {
    const excess = readUsedMemory(gpus).map((used, i) => (used ?? 0) - (before[i] ?? used ?? 0));
    const firstInUse = excess.findIndex((bytes) => bytes > toleranceBytes);
    if (firstInUse < 0 || signal.aborted) return null;
    if (Date.now() >= deadline) {
      const text = `GPU memory did not clear: GPU ${firstInUse} uses ${formatBytes(excess[firstInUse]!)} more than before the first execution (one of its processes may still be running: nvidia-smi lists them).`;
      return { code: 'gpu_memory_not_cleared', severity: 'warning', text };
    }
    await sleep(pollMs);
  }
}
