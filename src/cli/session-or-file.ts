import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { InferscopeError } from '../model/errors.js';
import { shellCommand } from '../model/shell.js';
import { openSession, type Session } from '../session/open.js';
import { notify } from './output.js';

/**
 * Resolves an argument to a session. If no session matches and a file exists, the file is saved as a session first: an
 * exported session unchanged (no effect if it already exists), a capture through import.
 * @throws the errors of session selection, `session import` and `import`
 */
export async function openSessionOrFile(argument: string): Promise<Session> {
  try {
    return await openSession(argument);
  } catch (error) {
    const missing = error instanceof InferscopeError && error.code === 'E_SESSION_NOT_FOUND';
    const stats = missing ? statSync(argument, { throwIfNoEntry: false }) : undefined;
    if (stats?.isDirectory())
      throw new InferscopeError('E_SESSION_NOT_FOUND', {
        what: `${argument} is a folder, not a session or a file`,
        why: 'A folder of captures must be imported first.',
        fix: shellCommand(['inferscope', 'import', argument]),
      });
    if (!stats?.isFile()) throw error;
  }
  return openSession(await saveAsSession(resolve(argument)));
}

async function saveAsSession(path: string): Promise<string> {
  const { isArchive } = await import('../import/identify.js');
  if (await isArchive(path)) {
    const { importArchive } = await import('./session-archive.js');
    const { id, outcome } = await importArchive(path);
    if (outcome === 'imported') notify(`imported ${id}`);
    return id;
  }
  const { interruptible } = await import('./interrupt.js');
  const { runImport } = await import('./import-run.js');
  return interruptible((signal) => runImport([path], { tag: [], raw: true }, signal));
}
