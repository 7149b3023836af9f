import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Process id on this machine of process `inside` a container: NSpid in /proc/<pid>/status lists the ids of a process from the outermost
 * namespace to its own.
 * @param first the container's first process, by its id on this machine
 * @returns null if /proc does not show it
 */
export function hostPid(inside: number, first: number): number | null {
  const space = namespaceOf(first);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const numbers = numbersOf(name);
    if (numbers.at(-1) !== inside) continue;
    if (space === null ? sharesCgroup(name, first) : namespaceOf(Number(name)) === space) return Number(name);
  }
  return null;
}

function numbersOf(pid: string): number[] {
  const line = /^NSpid:\s+(.*)$/m.exec(read(`/proc/${pid}/status`));
  return (line?.[1] ?? '').split(/\s+/).map(Number);
}

/** Readable only by root and the owner. */
function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function sharesCgroup(pid: string, first: number): boolean {
  const cgroup = read(`/proc/${pid}/cgroup`);
  return cgroup !== '' && cgroup === read(`/proc/${first}/cgroup`);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
