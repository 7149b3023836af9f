import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { InferscopeError, systemErrorCode } from '../../model/errors.js';
import { hasWord } from './running.js';

/**
 * Makes a folder of results this sweep's own until it ends: two sweeps of one folder would measure each other, and write
 * the same files. What a killed sweep left is taken over.
 * @returns gives the folder back
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
        what: `another sweep runs in ${folder} (process ${owner})`,
        why: 'Two at once would measure each other.',
        fix: `Wait until it ends, or end it: kill ${owner}. On GPUs of its own a sweep may run beside it, into another folder: --output <folder>`,
      });
    }
    rmSync(path, { force: true });
  }
}

/** Null for a lock that is gone, or that nobody wrote his number into yet. */
function ownerOf(path: string): number | null {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
