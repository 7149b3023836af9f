import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../model/errors.js';
import type { Home } from './home.js';
import { sessionIdPattern } from './id.js';
import { asStorageFailure } from './storage-failure.js';
import { swappedOutId } from './temporary-folder.js';

export interface SessionFolder {
  id: string;
  folder: string;
}

/**
 * Every session folder, oldest first. A session whose new state is just taking its name is read from the folder
 * it was moved to. Nothing is opened: a broken session is listed too.
 */
export function sessionFolders(home: Home): SessionFolder[] {
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
  const changed = new Map<string, number>();
  const changedMs = (folder: string): number => {
    const known = changed.get(folder);
    if (known !== undefined) return known;
    const read = statSync(join(folder, 'session.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    changed.set(folder, read);
    return read;
  };
  return [...folders].map(([id, folder]) => ({ id, folder })).sort((a, b) => byTime(a, b, changedMs));
}

/** Ids begin with their second; sessions of one second are ordered by the time their manifest was written. */
function byTime(a: SessionFolder, b: SessionFolder, changedMs: (folder: string) => number): number {
  const [stampA, stampB] = [a.id.slice(0, 15), b.id.slice(0, 15)];
  if (stampA !== stampB) return stampA < stampB ? -1 : 1;
  const difference = changedMs(a.folder) - changedMs(b.folder);
  if (difference !== 0) return difference;
  return a.id < b.id ? -1 : 1;
}
