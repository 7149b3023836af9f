import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Issue } from '../model/document.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { type SavedFile, type ManifestData, manifestDataSchema, type UserData } from '../model/manifest.js';
import type { SessionFolder } from './folders.js';
import { homeFolders, type Home } from './home.js';
import { digestFile } from './digest.js';
import { checkSizes, readManifest, totalBytes } from './manifest-file.js';
import type { SessionDatabase } from './query.js';
import { selectSession, type SessionFilter } from './select.js';
import { corrupt } from './session-problem.js';
import { sharedDatabase } from './shared-database.js';
import { readUser } from './user-file.js';
import type { SessionTables } from './views.js';
import { withContext } from './with-context.js';

/** Tables of up to this size together are hashed on every opening (a tenth of a second); `verify` hashes all. */
const hashedOnOpenBytes = 32 * 2 ** 20;

export interface Session {
  id: string;
  folder: string;
  /** Version of inferscope that wrote it. */
  toolVersion: string;
  /** As recorded, except for the workload, in which values given by the user replace recorded ones. */
  manifest: ManifestData;
  /** The workload in session.json. */
  recordedWorkload: ManifestData['workload'];
  /** Issues of the recording. */
  issues: Issue[];
  user: UserData;
  /** Set if user.json is damaged; `user` is then empty. */
  userIssue: Issue | null;
  /** sha256 of session.json. */
  sha256: string;
  /** A connection to a database with this session's tables, to be closed by the caller; temporary tables are per connection. */
  connect(): Promise<SessionDatabase>;
}

/**
 * Opens a session: checks manifest, its checksum, every file's size, and the checksums of small tables.
 * @param selector id, unique prefix, name, @last, @last~1
 * @param usable sessions that @last counts
 * @throws E_SESSION_NOT_FOUND, E_SESSION_AMBIGUOUS, E_SESSION_CORRUPT, E_SESSION_NEWER
 */
export async function openSession(
  selector: string,
  home: Home = homeFolders(),
  usable: SessionFilter | null = null,
): Promise<Session> {
  for (let tries = 1; ; tries++) {
    try {
      return await openFolder(selectSession(selector, home, usable));
    } catch (error) {
      // A swap for an added capture may happen between two of our reads; real damage persists.
      if (tries === openTries || !isCorrupt(error)) throw error;
      await sleep(openPauseMs);
    }
  }
}

const openTries = 3;
const openPauseMs = 20;

function isCorrupt(error: unknown): boolean {
  return error instanceof InferscopeError && error.code === 'E_SESSION_CORRUPT';
}

/** Opens the session in a folder that is already selected. */
export async function openFolder({ id, folder }: SessionFolder): Promise<Session> {
  const file = readManifest(folder, id);
  const manifest = checkManifest(file.data, id);
  checkSizes(folder, manifest);
  const tableFiles = Object.values(manifest.tables).flat();
  if (totalBytes(tableFiles) <= hashedOnOpenBytes) await checkHashes(folder, id, tableFiles);
  const { user, issue } = readUser(folder);
  return {
    id,
    folder,
    toolVersion: file.toolVersion,
    manifest: { ...manifest, workload: withContext(manifest.workload, user.context ?? {}) },
    recordedWorkload: manifest.workload,
    issues: file.issues,
    user,
    userIssue: issue,
    sha256: file.sha256,
    connect: sharedDatabase(
      sessionTables({ id, folder, manifest, user }),
      tableFiles.reduce((sum, { rows }) => sum + rows, 0),
    ),
  };
}

function checkManifest(data: ManifestData, id: string): ManifestData {
  const checked = manifestDataSchema.safeParse(data);
  if (!checked.success) {
    const [first] = checked.error.issues;
    const where = first ? `data.${first.path.join('.')}: ${first.message}` : checked.error.message;
    throw corrupt(id, 'session.json does not have the form of a manifest', where);
  }
  if (checked.data.id !== id) {
    throw corrupt(id, 'its folder was renamed', `session.json says its id is ${checked.data.id}.`);
  }
  return checked.data;
}

async function checkHashes(folder: string, id: string, files: SavedFile[]): Promise<void> {
  for (const file of files) {
    const digest = await digestFile(join(folder, file.path)).catch((error: unknown) => {
      throw corrupt(id, `${file.path} cannot be read`, messageOf(error), error);
    });
    if (digest.sha256 === file.sha256) continue;
    throw corrupt(
      id,
      `${file.path} does not match its checksum`,
      `The manifest states ${file.sha256.slice(0, 12)}…, the file has ${digest.sha256.slice(0, 12)}….`,
    );
  }
}

/** Absolute paths of a session's Parquet files, as the views and the `sql` child need them. */
export function sessionTables(
  session: Pick<Session, 'id' | 'folder' | 'manifest'> & { user?: Session['user'] },
): SessionTables {
  const files = Object.entries(session.manifest.tables).map(
    ([table, list]) => [table, list.map(({ path }) => join(session.folder, path))] as const,
  );
  const kernelClasses = session.user?.context?.kernel_classes;
  return {
    id: session.id,
    files: Object.fromEntries(files),
    ...(kernelClasses && { kernelClasses }),
  };
}
