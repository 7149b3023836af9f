import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { SessionFiles } from '../session/session-files.js';
import type { CaptureFile, RecognizedFile } from './recognize-file.js';
import { redactedRecord, type Redact } from './redacting.js';

/**
 * Profilers' raw files are saved unchanged and may contain the program's secrets; `session export` leaves them out.
 * The workload's record is exported, so it is saved without secrets.
 */
export async function saveRawFile(
  session: SessionFiles,
  { file, format, pages }: Pick<RecognizedFile, 'file' | 'format' | 'pages'>,
  captureId: string,
  redact: Redact,
): Promise<void> {
  const artifact = { kind: format, captureId, name: basename(file.path) };
  if (format === 'inferscope-record') {
    await session.addArtifact(await redactedRecord(file.path, session.scratch, redact), artifact);
    return;
  }
  for (const page of pages) await session.addArtifact(page, { kind: 'ncu-csv', captureId });
  if (!(await stat(file.path)).isDirectory()) {
    await session.addArtifact(file.path, artifact);
    return;
  }
  const { create } = await import('tar');
  const archive = join(session.scratch, `${captureId}.tar`);
  await create({ file: archive, cwd: join(file.path, '..'), portable: true }, [basename(file.path)]);
  await session.addArtifact(archive, { ...artifact, name: `${basename(file.path)}.tar` });
}

/** Saves an unreadable file: its own tool may be able to read it later or report its error. */
export async function saveUnreadFile(
  session: SessionFiles,
  { path, kind, execution }: CaptureFile,
): Promise<void> {
  const captureId = execution?.execution_id ?? null;
  await session.addArtifact(path, { kind: kind ?? 'unread', captureId, name: basename(path) });
}
