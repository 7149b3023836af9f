import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, readdirSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { InferscopeError } from '../model/errors.js';
import type { SessionFolder } from './folders.js';
import { flushToDisk } from './kept-file.js';
import { keptFiles, manifestHashName, manifestName, readManifest } from './manifest-file.js';
import { asStorageFailure } from './storage-failure.js';
import { userFileName } from './user-file.js';
import { requireIntact, verifySession } from './verify.js';

export const archiveSuffix = '.inferscope.tar.gz';

export interface ExportOptions {
  /** File to write; <id>.inferscope.tar.gz in the current folder by default. */
  output?: string;
  /** Takes derived/ (reports, caches) along. */
  derived?: boolean;
  overwrite?: boolean;
}

export interface ExportedArchive {
  path: string;
  bytes: number;
  sha256: string;
  files: number;
}

/**
 * Writes one file with everything of a session, after checking every checksum. The manifest comes first, so that
 * an import knows what to expect; the file appears under its name only when it is whole.
 * @throws E_SESSION_CORRUPT, E_USAGE when the file exists, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function exportSession(
  session: SessionFolder,
  options: ExportOptions = {},
): Promise<ExportedArchive> {
  const path = resolve(options.output ?? `${session.id}${archiveSuffix}`);
  if (!options.overwrite && existsSync(path)) throw exists(path);
  requireIntact(await verifySession(session));
  const files = archivedFiles(session, options.derived ?? false);
  const partial = join(dirname(path), `.${session.id}.${randomBytes(4).toString('hex')}.part`);
  try {
    await pack(session, files, partial);
    await flushToDisk(partial);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    const neededBytes = files.reduce((sum, file) => sum + statSync(join(session.folder, file)).size, 0);
    throw asStorageFailure(error, { path: dirname(path), doing: `write ${path}`, neededBytes });
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return { path, bytes: statSync(path).size, sha256: hash.digest('hex'), files: files.length };
}

function exists(path: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${path} exists already`,
    why: 'An export does not replace a file unless told to.',
    fix: 'Give another path with --output, or add --overwrite.',
  });
}

function archivedFiles({ id, folder }: SessionFolder, derived: boolean): string[] {
  const { data } = readManifest(folder, id);
  const files = [manifestName, manifestHashName];
  if (existsSync(join(folder, userFileName))) files.push(userFileName);
  files.push(...keptFiles(data).map(({ path }) => path));
  if (derived && existsSync(join(folder, 'derived'))) {
    const found = readdirSync(join(folder, 'derived'), { recursive: true, encoding: 'utf8' });
    files.push(
      ...found.map((name) => `derived/${name}`).filter((name) => statSync(join(folder, name)).isFile()),
    );
  }
  return files;
}

async function pack({ id, folder }: SessionFolder, files: string[], target: string): Promise<void> {
  const { create } = await import('tar');
  const archive = create(
    // Owner, group and times are this machine's business; Parquet is compressed already.
    {
      cwd: folder,
      prefix: id,
      portable: true,
      noMtime: true,
      gzip: { level: 6 },
      noDirRecurse: true,
      strict: true,
    },
    files,
  );
  await pipeline(archive, createWriteStream(target, { flags: 'wx' }));
}
