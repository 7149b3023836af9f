import { tmpdir } from 'node:os';
import { createScratch, type ScratchFolder } from '../model/scratch.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';

/**
 * A new empty folder in the system's temporary folder.
 * @throws E_HOME_UNWRITABLE (a TMPDIR that does not exist), E_DISK_FULL
 */
export function createScratchFolder(): ScratchFolder {
  try {
    return createScratch(tmpdir(), 'inferscope-scratch');
  } catch (error) {
    throw asStorageFailure(error, {
      path: tmpdir(),
      doing: 'make a temporary folder',
      fix: 'Set TMPDIR to a folder that exists and that you may write to: TMPDIR=/tmp inferscope …',
    });
  }
}
