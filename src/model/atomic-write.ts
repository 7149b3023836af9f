import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemErrorCode } from './errors.js';

/**
 * Node's own recursive mkdir never returns if a parent exists but accepts no folders (/proc: ENOENT).
 * @returns the created folders, outermost first
 */
export function makeFolder(path: string): string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [];
  const created = dirname(path) === path ? [] : makeFolder(dirname(path));
  try {
    mkdirSync(path);
    created.push(path);
  } catch (error) {
    // Another process was faster, or it is a file, which the next write reports.
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
  return created;
}

/**
 * Writes a file atomically: to another name in the folder, which then replaces the file. Makes the folder first. A device, a pipe and a
 * link are written directly.
 */
export function writeAtomically(
  path: string,
  text: string,
  options: { mode?: number; flush?: boolean } = {},
): void {
  makeFolder(dirname(resolve(path)));
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) return writeFileSync(path, text);
  const fresh = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    writeFileSync(fresh, text, options);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}
