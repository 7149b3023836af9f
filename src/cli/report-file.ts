import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { childEntry } from '../model/installation.js';
import type { Document } from '../model/document.js';
import type { ProfileResult } from '../model/documents/profile.js';
import { asStorageFailure } from '../session/storage-failure.js';

/** Where a session's own report lies. */
export function reportPath(sessionFolder: string): string {
  return join(sessionFolder, 'derived', 'report.html');
}

/**
 * Writes the HTML report, whole or not at all.
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeReport(document: Document<ProfileResult>, path: string): Promise<void> {
  const { profileReport } = await import('../report/html/profile.js');
  const clientScript = await readFile(childEntry('report-client'), 'utf8');
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(temporary, profileReport(document, { clientScript }));
    await rename(temporary, path);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the report' });
  }
}
