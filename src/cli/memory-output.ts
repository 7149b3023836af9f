import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { InferscopeError } from '../model/errors.js';
import { profileName, stampOf } from '../model/result-names.js';
import { tryFolder } from '../session/home.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { claimNames } from './results-folder.js';
import { writeAtomically } from '../model/atomic-write.js';

/** In results/memory-profiles below the working directory. */
export function defaultProfilePath(model: string, time: Date): string {
  const name = profileName(existsSync(model) ? resolve(model) : model, stampOf(time));
  return join('results', 'memory-profiles', name);
}

/** Reserves the path with an empty file; if it exists by now, the next free path. */
export function reservePath(path: string): string {
  const folder = dirname(path);
  return join(folder, claimNames(folder, [basename(path)])[0]!);
}

/** Checks that the path is writable before anything is measured. @throws E_USAGE, E_HOME_UNWRITABLE */
export function ensureWritableFile(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${path} is a folder`,
      why: 'A memory profile is one file.',
      fix: `Type for example: --output ${join(path, 'profile.json')}`,
    });
  }
  try {
    tryFolder(dirname(resolve(path)));
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'create the folder for the profile' });
  }
}

export async function writeProfile(path: string, profile: unknown): Promise<void> {
  try {
    writeAtomically(path, `${JSON.stringify(profile, null, 2)}\n`);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the profile' });
  }
}
