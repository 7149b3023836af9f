import { rename, rm } from 'node:fs/promises';
import type { SessionFolder } from './folders.js';
import { homeFolders, type Home } from './home.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { asidePath } from './temporary-folder.js';

/**
 * Removes a session. It disappears in one step and its files are deleted afterwards; after a crash in between the next writer removes them.
 * @throws E_HOME_UNWRITABLE
 */
export async function deleteSession(session: SessionFolder, home: Home = homeFolders()): Promise<void> {
  const trash = asidePath(home, 'trash', session.id);
  try {
    await rename(session.folder, trash);
    await rm(trash, { recursive: true, force: true });
  } catch (error) {
    throw asStorageFailure(error, {
      path: session.folder,
      doing: `delete session ${session.id}`,
      home: true,
    });
  }
}
