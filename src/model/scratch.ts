import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { atExit } from './at-exit.js';
import { ownerIsGone, ownerPattern, ownerTag } from './owner.js';

export interface ScratchFolder {
  path: string;
  remove(): void;
}

/** A name that identifies the process that made it: <prefix>-<owner>-<random>. */
export function scratchName(prefix: string): string {
  return `${prefix}-${ownerTag()}-${randomBytes(4).toString('hex')}`;
}

/**
 * Removes this user's files and folders with such names below `folder` after their process has exited; those of another machine, boot or
 * container stay. What cannot be removed is left for the next call.
 */
export function removeAbandoned(folder: string, prefix: string): void {
  const pattern = new RegExp(`^${prefix.replaceAll('.', '\\.')}-${ownerPattern}-[0-9a-f]+$`);
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return;
  }
  for (const name of names) {
    const [, pid, start, space] = pattern.exec(name) ?? [];
    if (pid === undefined || ownerIsGone(pid, start!, space!) !== true) continue;
    try {
      const path = join(folder, name);
      const { uid } = lstatSync(path);
      if (uid === (process.getuid?.() ?? uid)) rmSync(path, { recursive: true, force: true });
    } catch {
      // Another process was faster.
    }
  }
}

/**
 * A new empty folder below `folder`, removed by `remove` and when this process exits. Removes leftovers of killed processes first.
 * @throws the system's error, e.g. ENOENT
 */
export function createScratch(folder: string, prefix: string): ScratchFolder {
  removeAbandoned(folder, prefix);
  const path = join(folder, scratchName(prefix));
  mkdirSync(path, { mode: 0o700 });
  const empty = () => rmSync(path, { recursive: true, force: true });
  const undo = atExit(empty);
  const remove = () => {
    undo();
    empty();
  };
  return { path, remove };
}
