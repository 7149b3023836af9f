import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { parsePidStat } from './proc-text.js';

/**
 * A process and all its descendants (zombies too), from /proc/<pid>/task/<tid>/children. Kernels built without
 * CONFIG_PROC_CHILDREN lack that file; then every process's parent is read, which costs as much as `ps`.
 */
export function processTree(root: number): number[] {
  return existsSync(`/proc/${process.pid}/task/${process.pid}/children`) ? byChildren(root) : byParents(root);
}

function byChildren(root: number): number[] {
  const pids = [root];
  // The list grows while it is walked: children are appended after their parent.
  for (const pid of pids) {
    for (const thread of entries(`/proc/${pid}/task`)) {
      const children = read(`/proc/${pid}/task/${thread}/children`);
      if (children) pids.push(...children.trim().split(' ').filter(Boolean).map(Number));
    }
  }
  return pids;
}

function byParents(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of entries('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = parsePidStat(read(`/proc/${name}/stat`) ?? '');
    if (stat) children.set(stat.parentPid, [...(children.get(stat.parentPid) ?? []), Number(name)]);
  }
  const pids = [root];
  for (const pid of pids) pids.push(...(children.get(pid) ?? []));
  return pids;
}

/** A process may exit between two reads: a missing file counts as empty. */
function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}
