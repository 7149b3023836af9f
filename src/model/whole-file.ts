import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemErrorCode } from './errors.js';

/**
 * Node's own recursive mkdir never returns where a parent exists but takes no folders (/proc: ENOENT).
 * @returns the folders it made, the outermost first
 */
export function makeFolder(path: string): string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [];
  const made = dirname(path) === path ? [] : makeFolder(dirname(path));
  try {
    mkdirSync(path);
    made.push(path);
  } catch (error) {
    // Another process was faster, or it is a file: then the next write says so.
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
  return made;
}

/**
 * Writes a file and its folder, whole or not at all: under another name next to it, which then replaces what is there. A device, a
 * pipe and a link are written to as they are.
 */
export function writeWhole(
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
