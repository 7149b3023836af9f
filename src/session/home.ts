import { rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { InferscopeError } from '../model/errors.js';
import { createScratchFolder } from './scratch-folder.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { probePath } from './temporary-folder.js';
import { makeFolder } from '../model/atomic-write.js';

/** Folders in the home: saved sessions, and caches (models, peaks). */
export interface Home {
  root: string;
  sessions: string;
  cache: string;
}

/**
 * $INFERSCOPE_HOME, else $XDG_DATA_HOME/inferscope, else ~/.local/share/inferscope. Creates nothing.
 * @throws E_USAGE for a URL, which would become a folder of that name
 */
export function homeFolders(env: NodeJS.ProcessEnv = process.env): Home {
  // The XDG base directory specification requires that relative values are ignored.
  const xdg = env['XDG_DATA_HOME']?.startsWith('/') ? env['XDG_DATA_HOME'] : null;
  const setHome = env['INFERSCOPE_HOME'];
  if (setHome && /^\w+:\/\//.test(setHome))
    throw new InferscopeError('E_USAGE', {
      what: `INFERSCOPE_HOME is not a folder: ${setHome}`,
      why: 'Sessions are written and analyzed in a folder of this machine, or of a file system that it mounts.',
      fix:
        'Query a session in S3 in place:  inferscope sql --from s3://BUCKET/PREFIX/SESSION --load-extension HTTPFS QUERY\n' +
        'Or copy it:  aws s3 sync s3://BUCKET/PREFIX/SESSION FOLDER/sessions/SESSION, and set INFERSCOPE_HOME=FOLDER',
    });
  const root = setHome ? resolve(setHome) : join(xdg ?? join(homedir(), '.local', 'share'), 'inferscope');
  return { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
}

/**
 * Creates the folders and writes one test file, here and in the system's temporary folder, so that a command fails before it measures
 * anything. Checking mode bits is not enough: root ignores them, and they do not show a read-only mount or a folder below a file.
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL
 */
export function ensureWritable(home: Home = homeFolders()): Home {
  const probe = probePath(home);
  try {
    makeFolder(home.sessions);
    makeFolder(home.cache);
    try {
      writeFileSync(probe, 'x', { flag: 'wx' });
    } finally {
      // On a full disk the file is created but stays empty.
      rmSync(probe, { force: true });
    }
  } catch (error) {
    throw asStorageFailure(error, { path: home.root, doing: 'prepare the folder for sessions', home: true });
  }
  createScratchFolder().remove();
  return home;
}

/**
 * Tests whether a folder can be created, and removes it again, so that a rejected command leaves nothing.
 * @throws the error of the file system, if it cannot
 */
export function tryFolder(path: string): void {
  for (const created of makeFolder(path).reverse()) {
    try {
      rmdirSync(created);
    } catch {
      // Another process has put a file there.
      return;
    }
  }
}
