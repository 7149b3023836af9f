import { rm } from 'node:fs/promises';
import type { Issue } from '../model/document.js';
import type { ManifestData } from '../model/manifest.js';
import { newUser, writeUser } from './user-file.js';
import { checkNewName } from './name.js';
import { ensureWritable, homeFolders, type Home } from './home.js';
import { sessionId } from './id.js';
import { writeManifest } from './manifest-file.js';
import { openSessionFiles, type SessionFiles } from './session-files.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { reportToOuterRun } from './report-to-outer.js';
import { createTemporaryFolder, publish, removeStaleFolders } from './temporary-folder.js';

export interface NewSession {
  /** Becomes the readable part of the id, e.g. the model's name. */
  label: string;
  /** The command that makes the session: profile, run, import, … */
  kind: string;
  name?: string | null;
  tags?: string[];
  /** The time in the id; default: now. */
  createdAt?: Date;
  home?: Home;
}

/** Facts known at the end of a run; id, kind, tables and artifacts come from the writer. */
export type SessionSummary = Omit<ManifestData, 'id' | 'kind' | 'subjects' | 'tables' | 'artifacts'>;

export interface SessionWriter extends SessionFiles {
  /**
   * Makes the session visible, completely or not at all. The writer cannot be used afterwards.
   * @throws E_DISK_FULL, E_HOME_UNWRITABLE (the temporary folder is removed)
   */
  finish(summary: SessionSummary, issues?: Issue[]): Promise<{ id: string; folder: string }>;
  /** Removes everything written. */
  abandon(): Promise<void>;
}

/** Another session may have taken the name during a long run: then this one is saved without a name. */
function recheckName(name: string | null, home: Home): { name: string | null; issue: Issue | null } {
  if (name === null) return { name, issue: null };
  try {
    checkNewName(name, home);
    return { name, issue: null };
  } catch {
    const text = `The name ${name} was taken by another session during the run; this session has no name.`;
    return { name: null, issue: { code: 'name_taken', severity: 'warning', text } };
  }
}

/**
 * Starts a session under a temporary name. Until finish() no command sees it; after a crash the next writer removes it.
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL, E_SESSION_NAME when the name is taken: all before anything is measured
 */
export async function createSession(session: NewSession): Promise<SessionWriter> {
  const home = ensureWritable(session.home ?? homeFolders());
  if (session.name) checkNewName(session.name, home);
  const createdAt = session.createdAt ?? new Date();
  removeStaleFolders(home);
  const temporary = await createTemporaryFolder(home).catch((error: unknown) => {
    throw asStorageFailure(error, { path: home.sessions, doing: 'start a session', home: true });
  });
  const files = await openSessionFiles(temporary.path).catch(async (error: unknown) => {
    await remove(temporary.path);
    throw asStorageFailure(error, { path: temporary.path, doing: 'start a session', home: true });
  });

  let isDone = false;

  async function abandon(): Promise<void> {
    if (isDone) return;
    isDone = true;
    temporary.release();
    await files.discard();
    await remove(temporary.path);
  }

  async function finish(summary: SessionSummary, issues: Issue[] = []) {
    try {
      const written = await files.close();
      const { name, issue } = recheckName(session.name ?? null, home);
      if (issue) issues = [...issues, issue];
      if (name || session.tags?.length) {
        await writeUser(temporary.path, newUser(name, session.tags ?? []));
      }
      for (let attempt = 1; ; attempt++) {
        const id = sessionId(createdAt, session.label, attempt);
        await writeManifest(temporary.path, { id, kind: session.kind, ...summary, ...written }, issues);
        if (await publish(temporary.path, home, id)) {
          isDone = true;
          temporary.release();
          reportToOuterRun({ id, kind: session.kind });
          return { id, folder: `${home.sessions}/${id}` };
        }
      }
    } catch (error) {
      await abandon();
      throw asStorageFailure(error, { path: home.sessions, doing: 'save the session', home: true });
    }
  }

  return {
    ...files,
    finish,
    abandon,
  };
}

async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
