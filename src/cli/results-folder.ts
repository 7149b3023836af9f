import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import { join, parse, relative, resolve } from 'node:path';
import process from 'node:process';
import { InferscopeError, systemErrorCode } from '../model/errors.js';
import { tryFolder } from '../session/home.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { makeFolder, writeAtomically } from '../model/atomic-write.js';

/**
 * Checks that the folder of result files is writable before anything is measured.
 * @returns its absolute path
 * @throws E_USAGE, E_HOME_UNWRITABLE
 */
export function resultsFolder(folder: string): string {
  const path = resolve(folder);
  if (existsSync(path) && !statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${folder} is a file`,
      why: '--output needs a folder, because several files are written.',
      fix: 'Type for example: --output results',
    });
  }
  try {
    tryFolder(path);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'create the folder for results' });
  }
  return path;
}

/**
 * Reserves unused file names with empty files: unchanged, else all with the same number (`baseline_metrics-2.json`).
 * Files of other sessions, even running ones, are never replaced, and files of one session share a number.
 * @returns the names
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL
 */
export function claimNames(folder: string, names: readonly string[]): string[] {
  try {
    makeFolder(folder);
  } catch (error) {
    throw asStorageFailure(error, { path: folder, doing: 'create the folder for results' });
  }
  for (let n = 1; ; n++) {
    const numbered = names.map((name) => {
      const { name: stem, ext } = parse(name);
      return n === 1 ? name : `${stem}-${n}${ext}`;
    });
    if (reserveAll(folder, numbered)) return numbered;
  }
}

/** Reserves all of them or none. */
function reserveAll(folder: string, names: readonly string[]): boolean {
  const reserved: string[] = [];
  try {
    for (const name of names) {
      const path = join(folder, name);
      closeSync(openSync(path, 'wx'));
      reserved.push(path);
    }
    return true;
  } catch (error) {
    for (const path of reserved) rmSync(path, { force: true });
    if (systemErrorCode(error) === 'EEXIST') return false;
    throw asStorageFailure(error, { path: folder, doing: 'write the results' });
  }
}

/** Writes a result file atomically. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export function writeResult(path: string, text: string): void {
  try {
    writeAtomically(path, text);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the results' });
  }
}

/** Writes result files, under other names if the folder has those of another session. @returns a text with the names used */
export function writeResults(folder: string, files: readonly { name: string; text: string }[]): string {
  const requestedNames = files.map(({ name }) => name);
  const names = claimNames(folder, requestedNames);
  for (const [index, { text }] of files.entries()) writeResult(join(folder, names[index]!), text);
  const hint = names[0] === requestedNames[0] ? '' : ` (${requestedNames[0]} belongs to another session)`;
  return `${names.join(', ')} in ${relative(process.cwd(), folder) || '.'}${hint}`;
}
