import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import process from 'node:process';

export interface GpuProcessFacts {
  pid: number;
  name: string | null;
  /** Whether it is the local process with that id; null when unknown. */
  here: boolean | null;
}

/** PROC_PID_INIT_INO of the kernel (include/linux/proc_ns.h): the namespace that the machine booted with. */
const initialNamespace = 'pid:[4026531836]';

/** Whether process ids here are those of the machine or of a container. */
export function pidNamespace(link = namespaceLink()): 'initial' | 'nested' | 'unknown' {
  if (link === null) return 'unknown';
  return link === initialNamespace ? 'initial' : 'nested';
}

function namespaceLink(): string | null {
  if (process.platform !== 'linux') return null;
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return null;
  }
}

/**
 * Names a process that the driver lists. In a container the driver may use the host's id, and another process may
 * have that id here: it then counts only if it has one of the GPU's device files open.
 */
export function identifyGpuProcess(pid: number, namespace = pidNamespace()): GpuProcessFacts {
  const name = nameOf(pid);
  if (namespace === 'initial') return { pid, name, here: name !== null };
  if (name === null) return { pid, name: null, here: false };
  const usesGpu = holdsGpu(pid);
  return { pid, name: usesGpu ? name : null, here: usesGpu };
}

function nameOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return null;
  }
}

/** Null when its files are not readable. */
function holdsGpu(pid: number): boolean | null {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((number) => {
      try {
        return /^\/dev\/(nvidia|kfd|dri\/)/.test(readlinkSync(`/proc/${pid}/fd/${number}`));
      } catch {
        return false;
      }
    });
  } catch {
    return null;
  }
}
