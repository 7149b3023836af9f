import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Reads kernel facts under /proc and /sys. `root` is `/`, or a folder with recorded files, so that tests can read other
 * machines.
 */
export interface KernelFiles {
  /** Text without the trailing newline; null if the file is absent, unreadable or empty. */
  text(path: string): string | null;
  /** A decimal integer; null if absent or not a number. */
  integer(path: string): number | null;
  entries(path: string): string[];
  exists(path: string): boolean;
}

export function kernelFiles(root = '/'): KernelFiles {
  const text = (path: string): string | null => {
    try {
      const content = readFileSync(join(root, path), 'utf8').replace(/\n+$/, '');
      return content === '' ? null : content;
    } catch {
      return null;
    }
  };
  return {
    text,
    integer(path) {
      const content = text(path)?.trim();
      return content && /^-?\d+$/.test(content) ? Number(content) : null;
    },
    entries(path) {
      try {
        return readdirSync(join(root, path));
      } catch {
        return [];
      }
    },
    exists: (path) => existsSync(join(root, path)),
  };
}

/** CPU and node lists in sysfs format: `0-3,8,10-11` → [0,1,2,3,8,10,11]. Empty text is an empty list. */
export function parseCpuList(text: string): number[] {
  const cpus: number[] = [];
  for (const part of text.trim().split(',')) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part.trim());
    if (!match) continue;
    const first = Number(match[1]);
    for (let cpu = first; cpu <= Number(match[2] ?? first); cpu += 1) cpus.push(cpu);
  }
  return cpus;
}
