import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { InferscopeError, systemErrorCode } from '../../model/errors.js';
import { hasWord } from './running.js';

/**
 * Locks a results folder for this sweep: two sweeps in one folder would disturb each other, and write
 * the same files. The lock of a killed sweep is taken over.
 * @returns releases the folder
 * @throws E_USAGE when another sweep of this machine runs there
 */
export function claimFolder(folder: string): () => void {
  const path = join(folder, `.sweep-${hostname()}.lock`);
  mkdirSync(folder, { recursive: true });
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    const owner = ownerOf(path);
    if (owner !== null && owner !== process.pid && hasWord(owner, 'sweep')) {
      throw new InferscopeError('E_USAGE', {
        what: `another sweep is running in ${folder} (process ${owner})`,
        why: 'Two sweeps at once would disturb each other.',
        fix: `Wait until it finishes, or stop it: kill ${owner}. A sweep on other GPUs can run at the same time with another folder: --output <folder>`,
      });
    }
    rmSync(path, { force: true });
  }
}

/** Process id in the lock; null for a lock that is gone or still empty. */
function ownerOf(path: string): number | null {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
