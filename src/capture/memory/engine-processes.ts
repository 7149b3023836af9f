import process from 'node:process';
import { processTree } from '../process-tree.js';
import type { MemoryTarget } from './memory-target.js';

/** Ranks and workers start and exit; this interval is short enough to see each. */
const periodMs = 250;

/** Collects the process ids of an engine while it runs: the launched process, its descendants, and those that the target reports. */
export function watchProcesses(
  launched: { readonly pid: number | null },
  target: Pick<MemoryTarget, 'pids'>,
): { stop(): number[] } {
  const pids = new Set<number>();
  const addPids = () => {
    const { pid } = launched;
    if (pid !== null)
      for (const processId of process.platform === 'linux' ? processTree(pid) : [pid]) pids.add(processId);
    for (const processId of target.pids?.() ?? []) pids.add(processId);
  };
  addPids();
  const timer = setInterval(addPids, periodMs);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      return [...pids].sort((a, b) => a - b);
    },
  };
}

/** Processes on the GPUs other than the engine's; a running server is the engine. */
export function withoutEngine<Listed extends { pid: number }>(
  listed: readonly Listed[],
  ownPids: readonly number[],
): Listed[] {
  return listed.filter(({ pid }) => !ownPids.includes(pid));
}
