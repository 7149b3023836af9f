import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { processTree } from '../process-tree.js';

/** nsys, nsys-launcher, nsys-ui, … */
const ofProfilers = /^nsys/;

/**
 * Processes of the program that runs below a profiler: the tree of the profiler without itself and its helpers, parents
 * first. Empty before the program was started, after it has ended, and where there is no /proc.
 * @param profiler process that was started, which may be a script around the profiler
 */
export function belowProfiler(profiler: number): number[] {
  return processTree(profiler).filter((pid) => {
    const name = executable(pid);
    return pid !== profiler && name !== null && !ofProfilers.test(name);
  });
}

/** Null of a process that has ended, or is another user's. */
function executable(pid: number): string | null {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    return null;
  }
}
