import { existsSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join, parse, resolve } from 'node:path';
import process from 'node:process';
import { InferscopeError } from '../model/errors.js';
import { makeFolder } from '../session/home.js';
import { asStorageFailure } from '../session/storage-failure.js';

/**
 * Tries the place of the result files before anything is measured for them.
 * @returns its absolute path
 * @throws E_USAGE, E_HOME_UNWRITABLE
 */
export function resultsFolder(folder: string): string {
  const path = resolve(folder);
  if (existsSync(path) && !statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${folder} is a file`,
      why: 'Several files are written: it takes a folder.',
      fix: 'Type for example: --output results',
    });
  }
  try {
    makeFolder(path);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'make the folder for results' });
  }
  return path;
}

/**
 * Names under which none of the files exists: as they are, else all with one number (`baseline_metrics-2.json`), so that
 * files of another session are never replaced and those of one session stay together.
 */
export function unusedNames(folder: string, names: readonly string[]): string[] {
  for (let n = 1; ; n++) {
    const numbered = names.map((name) => {
      const { name: stem, ext } = parse(name);
      return n === 1 ? name : `${stem}-${n}${ext}`;
    });
    if (!numbered.some((name) => existsSync(join(folder, name)))) return numbered;
  }
}

/** Writes a result file, whole or not at all. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export async function writeResult(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw asStorageFailure(error, { path, doing: 'write the results' });
  }
}
