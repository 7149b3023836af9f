import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { parsePidStat } from '../proc-text.js';
import { processTree } from '../process-tree.js';

/** nsys, nsys-launcher, nsys-ui, … */
const profilerNames = /^nsys/;
/** They wait for their children, and do not forward signals. */
const shells = /^(sh|bash|dash|zsh|ksh|fish|busybox)$/;

interface ProgramProcesses {
  /** All processes of the program, parents first. */
  all: number[];
  /** The shells, and the processes that only shells started. Each of these must stop its own children. */
  first: number[];
}

/**
 * Processes of the program under a profiler: the profiler's process tree without the profiler and its helpers. Empty before the program has
 * started, after it has exited, and without /proc.
 * @param profiler process that was started, which may be a script around the profiler
 */
export function processesBelowProfiler(profiler: number): ProgramProcesses {
  const children = processTree(profiler).flatMap((pid) => {
    const name = executableName(pid);
    return pid === profiler || name === null || profilerNames.test(name) ? [] : [{ pid, name }];
  });
  const otherPids = new Set(children.filter(({ name }) => !shells.test(name)).map(({ pid }) => pid));
  const startedByOthers = new Set<number>();
  for (const { pid } of children) {
    const parent = parentOf(pid);
    if (otherPids.has(parent) || startedByOthers.has(parent)) startedByOthers.add(pid);
  }
  const all = children.map(({ pid }) => pid);
  return { all, first: all.filter((pid) => !startedByOthers.has(pid)) };
}

/** Null for a process that has exited or belongs to another user. */
function executableName(pid: number): string | null {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    return null;
  }
}

function parentOf(pid: number): number {
  try {
    return parsePidStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.parentPid ?? 0;
  } catch {
    return 0;
  }
}
