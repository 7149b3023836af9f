import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../model/errors.js';
import type { Home } from './home.js';
import { sessionIdPattern } from './id.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { swappedOutId } from './temporary-folder.js';

export interface SessionFolder {
  id: string;
  folder: string;
}

/**
 * Every session folder, the one made or imported last at the end. While a new state of a session is being renamed into place, the folder
 * with the old state is returned. Opens nothing, so broken sessions are included.
 */
export const sessionFolders = (...homes: Home[]): SessionFolder[] =>
  homes
    .flatMap(foldersOf)
    // The time of an archive's session is that of its import, when its manifest was written.
    .map(({ id, folder }) => ({ id, folder, writtenMs: manifestWrittenMs(folder) }))
    .sort((a, b) => a.writtenMs - b.writtenMs || (a.id < b.id ? -1 : 1))
    .map(({ id, folder }) => ({ id, folder }));

function foldersOf(home: Home): SessionFolder[] {
  let names: string[];
  try {
    names = readdirSync(home.sessions, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw asStorageFailure(error, { path: home.sessions, doing: 'read the folder of sessions', home: true });
  }
  const folders = new Map<string, string>();
  for (const name of names) if (sessionIdPattern.test(name)) folders.set(name, join(home.sessions, name));
  for (const name of names) {
    const id = swappedOutId(name);
    if (id && !folders.has(id)) folders.set(id, join(home.sessions, name));
  }
  return [...folders].map(([id, folder]) => ({ id, folder }));
}

const manifestWrittenMs = (folder: string): number =>
  statSync(join(folder, 'session.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
