import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { atExit } from '../model/at-exit.js';
import { systemErrorCode } from '../model/errors.js';
import { ownerIsGone, ownerPattern, ownerTag } from '../model/owner.js';
import { flushToDisk } from './kept-file.js';

/**
 * Folders of ours below sessions/ that are not sessions: .tmp- (being written), .trash- (being removed),
 * .swap- (the previous state of session <id> while its new state takes the name). The name says who made it,
 * (owner.ts); .probe- is the file of a test write: .tmp-<owner>-<host>-<random>[+<id>]
 */
type Purpose = 'tmp' | 'trash' | 'swap' | 'probe';
const namePattern = new RegExp(
  String.raw`^\.(tmp|trash|swap|probe)-${ownerPattern}-([a-z0-9]+)-[0-9a-f]+(?:\+(.+))?$`,
);

/** The part of a `Home` that holds the folders. */
interface SessionsFolder {
  sessions: string;
}

/** A folder of another machine or container is left alone until nothing touched it for this long. */
const foreignStaleMs = 24 * 3600 * 1000;
const heartbeatMs = 10 * 60 * 1000;

function ownName(purpose: Purpose, id?: string): string {
  const host =
    hostname()
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, '')
      .slice(0, 20) || 'host';
  const random = randomBytes(4).toString('hex');
  return `.${purpose}-${ownerTag()}-${host}-${random}${id ? `+${id}` : ''}`;
}

/** A path for moving a session out of the way; nothing is created. */
export function asidePath(home: SessionsFolder, purpose: 'trash' | 'swap', id: string): string {
  return join(home.sessions, ownName(purpose, id));
}

/** A path for a test write; nothing is created. */
export function probePath(home: SessionsFolder): string {
  return join(home.sessions, ownName('probe'));
}

interface TemporaryFolder {
  path: string;
  /** Stops the signs of life; the folder itself stays, whatever its name is by then. */
  release(): void;
}

/**
 * A new empty folder below sessions/, invisible to every command, kept visibly alive while its owner runs. A process that
 * leaves before release() takes it along.
 */
export async function createTemporaryFolder(home: SessionsFolder): Promise<TemporaryFolder> {
  const path = join(home.sessions, ownName('tmp'));
  // At once: a signal between the folder and what takes it along would leave it behind.
  mkdirSync(path);
  const timer = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date());
    } catch {
      // Gone or renamed: release() follows.
    }
  }, heartbeatMs);
  timer.unref();
  const remove = () => {
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next writer finds that its owner is gone.
    }
  };
  const undo = atExit(remove);
  const release = () => {
    clearInterval(timer);
    undo();
  };
  return { path, release };
}

function isStale(home: SessionsFolder, name: string, now: number): boolean {
  const match = namePattern.exec(name);
  if (!match) return false;
  const [, , pid, start, space] = match;
  const gone = ownerIsGone(pid!, start!, space!);
  if (gone !== null) return gone;
  return now - statSync(join(home.sessions, name)).mtimeMs > foreignStaleMs;
}

/**
 * Removes what killed processes left, and gives a session its name back when one died between the two renames
 * of a swap. Called by every writer; what cannot be removed is left for the next one.
 */
export function removeStaleFolders(home: SessionsFolder, now: number = Date.now()): void {
  for (const name of readdirSync(home.sessions)) {
    try {
      const match = namePattern.exec(name);
      if (!match || !isStale(home, name, now)) continue;
      const path = join(home.sessions, name);
      const [, purpose, , , , , id] = match;
      if (purpose === 'swap' && id && !existsSync(join(home.sessions, id))) {
        renameSync(path, join(home.sessions, id));
      } else {
        rmSync(path, { recursive: true, force: true });
      }
    } catch {
      // Another writer was faster, or the folder is not ours to remove.
    }
  }
}

/** The session id a .swap- folder holds; null for every other name. */
export function swappedOutId(name: string): string | null {
  const match = namePattern.exec(name);
  return match?.[1] === 'swap' ? (match[6] ?? null) : null;
}

/**
 * Gives the finished folder its final name. rename(2) does not replace a folder that has files in it, so of two
 * writers one gets the name.
 * @returns false when the name is taken
 */
export async function publish(temporary: string, home: SessionsFolder, id: string): Promise<boolean> {
  try {
    await rename(temporary, join(home.sessions, id));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') return false;
    throw error;
  }
  await flushToDisk(home.sessions);
  return true;
}
