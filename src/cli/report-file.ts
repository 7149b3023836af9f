import { existsSync, statSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { randomBytes } from 'node:crypto';
import { childEntry } from '../model/installation.js';
import { InferscopeError } from '../model/errors.js';
import { makeFolder } from '../session/home.js';
import { asStorageFailure } from '../session/storage-failure.js';

/** Where a session's own report lies. */
export function reportPath(sessionFolder: string): string {
  return join(sessionFolder, 'derived', 'report.html');
}

/**
 * Tries the place of a report before anything is measured for it.
 * @throws E_USAGE for a folder, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function ensureReportPath(path: string): Promise<void> {
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${path} is a folder`,
      why: 'The report is one file.',
      fix: `Type for example: --output ${join(path, 'report.html')}`,
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

/** Scripts that pages are made with: one draws charts and does what the other does, which is enough for a page without any. */
export interface PageParts {
  clientScript: string;
  readingScript: string;
}

/**
 * Writes an HTML report, whole or not at all.
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
 * Writes a report, whole or not at all.
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeReport(path: string, render: () => string): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    makeFolder(dirname(resolve(path)));
    await writeFile(temporary, render());
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw asStorageFailure(error, { path, doing: 'write the report' });
  }
}
