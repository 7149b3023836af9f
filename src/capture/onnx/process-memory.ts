import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

interface ProcessMemory {
  rssBytes: number;
  /** The kernel's high-water mark; null if not readable. */
  peakRssBytes: number | null;
  source: string;
}

/** Resident set of this process: the kernel's figures on Linux, libuv's elsewhere. */
export function processMemory(): ProcessMemory {
  const status = process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : '';
  const kib = (field: string) => {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status);
    return match ? Number(match[1]) * 1024 : null;
  };
  const rss = kib('VmRSS');
  if (rss === null)
    return {
      rssBytes: process.memoryUsage.rss(),
      peakRssBytes: null,
      source: 'libuv uv_resident_set_memory',
    };
  return { rssBytes: rss, peakRssBytes: kib('VmHWM'), source: '/proc/<pid>/status' };
}

/** Resident bytes of the files in a folder that this process maps; null where the kernel does not list them. */
export function mappedBytes(folder: string): number | null {
  let list: string;
  try {
    list = readFileSync('/proc/self/smaps', 'utf8');
  } catch {
    return null;
  }
  let kib = 0;
  let isInside = false;
  for (const line of list.split('\n')) {
    const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$/.exec(line);
    if (mapping) isInside = mapping[1]!.startsWith(`${folder}/`);
    else if (isInside) kib += Number(/^Rss:\s+(\d+) kB/.exec(line)?.[1] ?? 0);
  }
  return kib * 1024;
}

/**
 * Sets the kernel's high-water mark to the current resident set (proc_pid_clear_refs(5): write 5).
 * @returns false if the file does not exist or is not writable
 */
export function resetPeak(): boolean {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
    return true;
  } catch {
    return false;
  }
}
