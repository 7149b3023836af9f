import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { atExit } from '../model/at-exit.js';
import { systemErrorCode } from '../model/errors.js';
import { ownerIsGone, ownerPattern, ownerTag } from '../model/owner.js';
import { flushToDisk } from './digest.js';

/**
 * Our folders in sessions/ that are not sessions: .tmp- (being written), .trash- (being removed), .swap- (previous state of session <id>
 * while its new state takes the name). The name identifies the process that made it (owner.ts); .probe- is the file of a test write:
 * .tmp-<owner>-<host>-<random>[+<id>]
 */
type Purpose = 'tmp' | 'trash' | 'swap' | 'probe';
const namePattern = new RegExp(
  String.raw`^\.(tmp|trash|swap|probe)-${ownerPattern}-([a-z0-9]+)-[0-9a-f]+(?:\+(.+))?$`,
);

/** The part of a `Home` with the folders. */
interface SessionsFolder {
  sessions: string;
}

/** A folder of another machine or container is removed only after this time without a change. */
const foreignStaleMs = 24 * 3600 * 1000;
const heartbeatMs = 10 * 60 * 1000;

function folderName(purpose: Purpose, id?: string): string {
  const host =
    hostname()
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, '')
      .slice(0, 20) || 'host';
  const random = randomBytes(4).toString('hex');
  return `.${purpose}-${ownerTag()}-${host}-${random}${id ? `+${id}` : ''}`;
}

/** A path to move a session to before it is removed or swapped; creates nothing. */
export function asidePath(home: SessionsFolder, purpose: 'trash' | 'swap', id: string): string {
  return join(home.sessions, folderName(purpose, id));
}

/** A path for a test write; creates nothing. */
export function probePath(home: SessionsFolder): string {
  return join(home.sessions, folderName('probe'));
}

interface TemporaryFolder {
  path: string;
  /** Stops the heartbeat; the folder itself stays under its current name. */
  release(): void;
}

/**
 * A new empty folder below sessions/, invisible to every command, with a heartbeat while its owner runs. A process that exits before
 * release() removes it.
 */
export async function createTemporaryFolder(home: SessionsFolder): Promise<TemporaryFolder> {
  const path = join(home.sessions, folderName('tmp'));
  // Synchronous: a signal after creating the folder and before registering its removal would leave it behind.
  mkdirSync(path);
  const timer = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date());
    } catch {
      // The folder is gone or renamed: release() follows.
    }
  }, heartbeatMs);
  timer.unref();
  const remove = () => {
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next writer removes it, since its owner is gone.
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
  const isGone = ownerIsGone(pid!, start!, space!);
  if (isGone !== null) return isGone;
  return now - statSync(join(home.sessions, name)).mtimeMs > foreignStaleMs;
}

/**
 * Removes folders left by killed processes, and restores the name of a session if a process died between the two renames of a swap. Called
 * by every writer; what cannot be removed is left for the next one.
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
      // Another writer was faster, or the folder belongs to another user.
    }
  }
}

/** The session id of a .swap- folder; null for every other name. */
export function swappedOutId(name: string): string | null {
  const match = namePattern.exec(name);
  return match?.[1] === 'swap' ? (match[6] ?? null) : null;
}

/**
 * Renames the finished folder to its final name. rename(2) does not replace a non-empty folder, so only one of two writers gets the name.
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
