import { existsSync, statSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { randomBytes } from 'node:crypto';
import { childEntry } from '../model/installation.js';
import { InferscopeError } from '../model/errors.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { makeFolder, writeAtomically } from '../model/atomic-write.js';

/** Path of a session's report. */
export function reportPath(sessionFolder: string): string {
  return join(sessionFolder, 'derived', 'report.html');
}

/**
 * Checks that the path of a report is writable before anything is measured.
 * @throws E_USAGE for a folder, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function ensureReportPath(path: string, option = '--output'): Promise<void> {
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `${option} ${path} is a folder`,
      why: 'The report is a single file.',
      fix: `Type for example: ${option} ${join(path, 'report.html')}`,
    });
  }
  const probe = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    makeFolder(dirname(resolve(path)));
    await writeFile(probe, 'x').finally(() => rm(probe, { force: true }));
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the report' });
  }
}

/** Client scripts for pages: one draws charts and includes the other one, which is enough for a page without charts. */
export interface PageParts {
  clientScript: string;
  readingScript: string;
}

/**
 * Writes an HTML report atomically.
 * @throws as writeReport
 */
export async function writePage(path: string, render: (parts: PageParts) => string): Promise<void> {
  const script = (entry: string) => readFile(childEntry(entry), 'utf8');
  const parts = {
    clientScript: await script('report-client'),
    readingScript: await script('report-reading'),
  };
  await writeReport(path, () => render(parts));
}

/**
 * Writes a report atomically.
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeReport(path: string, render: () => string): Promise<void> {
  const text = render();
  try {
    writeAtomically(path, text);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the report', neededBytes: Buffer.byteLength(text) });
  }
}
