import { copyFile, link, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Issue } from '../model/document.js';
import { InferscopeError, systemErrorCode } from '../model/errors.js';
import type { Artifact, Capture, Execution, ManifestData, TableFile, Workload } from '../model/manifest.js';
import { ensureWritable, homeFolders, type Home } from './home.js';
import { flushToDisk } from './digest.js';
import { savedFiles, manifestHashName, writeManifest } from './manifest-file.js';
import { openSession, type Session } from './open.js';
import { openSessionFiles, type SessionFiles } from './session-files.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { asidePath, createTemporaryFolder, publish, removeStaleFolders } from './temporary-folder.js';
import { userFileName } from './user-file.js';

/** Additions of a further capture to the manifest. */
export interface CaptureSummary {
  executions: Execution[];
  captures: Capture[];
  issues?: Issue[];
  ended_at?: string;
  /** Facts of its record: they fill what the session does not have. */
  workload?: Workload | null;
  hardware?: ManifestData['hardware'];
  software?: ManifestData['software'];
}

interface CaptureWriter extends SessionFiles {
  /**
   * Replaces the session by one that includes this capture. The old state is readable until then; a capture that another process added is kept.
   */
  finish(summary: CaptureSummary): Promise<{ id: string; folder: string }>;
  abandon(): Promise<void>;
}

/**
 * Adds a capture to a saved session: its files go into a new folder together with links to the old files, and the folders are swapped by
 * renaming.
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL
 */
export async function addCapture(session: Session, home: Home = homeFolders()): Promise<CaptureWriter> {
  ensureWritable(home);
  removeStaleFolders(home);
  const temporary = await createTemporaryFolder(home);
  const files = await openSessionFiles(
    temporary.path,
    session.manifest.artifacts.map(({ path }) => path),
  );

  async function abandon(): Promise<void> {
    temporary.release();
    await files.discard();
    await rm(temporary.path, { recursive: true, force: true });
  }

  async function finish(summary: CaptureSummary) {
    try {
      const written = await files.close();
      const target = { id: session.id, folder: join(home.sessions, session.id) };
      for (let base = session, tries = 0; ; tries++) {
        if (await swap(temporary.path, base, summary, written, home)) break;
        if (tries === swapTries) throw new Error(`${session.id} kept changing while a capture was added`);
        await sleep(swapPauseMs);
        base = await openSession(session.id, home);
      }
      temporary.release();
      return target;
    } catch (error) {
      await abandon();
      throw asStorageFailure(error, {
        path: home.sessions,
        doing: `add to session ${session.id}`,
        home: true,
      });
    }
  }

  return {
    ...files,
    finish,
    abandon,
  };
}

/** A swap by another process takes milliseconds; it writes its files before. */
const swapTries = 100;
const swapPauseMs = 20;

interface Written {
  tables: Record<string, TableFile[]>;
  artifacts: Artifact[];
}

/** @returns false if the session changed since we read it, because another capture was added */
async function swap(
  temporary: string,
  base: Session,
  summary: CaptureSummary,
  written: Written,
  home: Home,
): Promise<boolean> {
  const manifest = { ...base.manifest, workload: base.recordedWorkload };
  const data = merge(manifest, summary, written);
  try {
    for (const { path } of savedFiles(base.manifest))
      await linkOrCopy(join(base.folder, path), join(temporary, path));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
  await writeManifest(temporary, data, [...base.issues, ...(summary.issues ?? [])]);

  // Until publish() the session is in a .swap- folder, where readers find it too. Moving it away is the lock: only one process can.
  const aside = asidePath(home, 'swap', base.id);
  const folder = join(home.sessions, base.id);
  try {
    await rename(folder, aside);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
  let swapped = false;
  try {
    const recordedHash = (await readFile(join(aside, manifestHashName), 'utf8')).slice(0, 64);
    if (recordedHash !== base.sha256) return false;
    await carryOver(aside, temporary);
    swapped = await publish(temporary, home, base.id);
    return swapped;
  } finally {
    if (swapped) await rm(aside, { recursive: true, force: true });
    else await rename(aside, folder);
  }
}

/** @throws E_USAGE if the session already has one of the captures */
function merge(old: ManifestData, summary: CaptureSummary, written: Written): ManifestData {
  const captureIds = new Set(old.captures.map(({ capture_id }) => capture_id));
  const existing = summary.captures.find(({ capture_id }) => captureIds.has(capture_id));
  if (existing) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${old.id} already has a capture ${existing.capture_id}`,
      why: 'Captures are never replaced.',
      fix: 'Give the new capture another id.',
    });
  }
  const paths = new Set(savedFiles(old).map(({ path }) => path));
  const duplicate = written.artifacts.find(({ path }) => paths.has(path));
  if (duplicate) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${old.id} already has a file ${duplicate.path}`,
      why: 'Another process added it while this capture was being written.',
      fix: 'Add the capture again.',
    });
  }
  const executions = new Map(
    [...old.executions, ...summary.executions].map((execution) => [execution.execution_id, execution]),
  );
  const tables: Record<string, TableFile[]> = { ...old.tables };
  for (const [table, added] of Object.entries(written.tables))
    tables[table] = [...(tables[table] ?? []), ...added];
  return {
    ...old,
    ended_at: summary.ended_at ?? old.ended_at,
    workload: old.workload ?? summary.workload ?? null,
    hardware: { ...summary.hardware, ...old.hardware },
    software: { ...summary.software, ...old.software },
    executions: [...executions.values()],
    captures: [...old.captures, ...summary.captures],
    tables,
    artifacts: [...old.artifacts, ...written.artifacts],
  };
}

/** Files of a session never change, so both states may share them. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  if (existsSync(to)) return;
  await mkdir(dirname(to), { recursive: true });
  try {
    await link(from, to);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') throw error;
    await copyFile(from, to);
    await flushToDisk(to);
  }
}

/** Copies names, notes and reports to the new state. */
async function carryOver(from: string, to: string): Promise<void> {
  if (existsSync(join(from, userFileName))) await copyFile(join(from, userFileName), join(to, userFileName));
  if (existsSync(join(from, 'derived'))) await rename(join(from, 'derived'), join(to, 'derived'));
}
