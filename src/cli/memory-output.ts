import { writeFile } from 'node:fs/promises';
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { InferscopeError } from '../model/errors.js';
import { makeFolder } from '../session/home.js';
import { asStorageFailure } from '../session/storage-failure.js';

/** results/memory-profiles/<model>-profile_<stamp>.json; `/` of a hub id becomes `_`, a path its last name. */
export function defaultProfilePath(model: string, at: Date): string {
  const isPath = existsSync(model) || model.endsWith('.json');
  const folder = model.endsWith('.json') ? dirname(resolve(model)) : resolve(model);
  const name = (isPath ? basename(folder) : model).replaceAll(/[^\w.-]+/g, '_') || 'model';
  return join('results', 'memory-profiles', `${name}-profile_${stampOf(at)}.json`);
}

/** 20261121-093012, in UTC, as session ids have it. */
export function stampOf(at: Date): string {
  const iso = at.toISOString();
  return `${iso.slice(0, 10).replaceAll('-', '')}-${iso.slice(11, 19).replaceAll(':', '')}`;
}

/** Tries the place before anything is measured for it. @throws E_USAGE, E_HOME_UNWRITABLE */
export function ensureFile(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${path} is a folder`,
      why: 'A memory profile is one file.',
      fix: `Type for example: --output ${join(path, 'profile.json')}`,
    });
  }
  try {
    makeFolder(dirname(resolve(path)));
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'make the folder for the profile' });
  }
}

export async function writeProfile(path: string, profile: unknown): Promise<void> {
  try {
    await writeFile(path, `${JSON.stringify(profile, null, 2)}\n`);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the profile' });
  }
}
