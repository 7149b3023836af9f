import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, readdirSync, statSync } from 'node:fs';
import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { Artifact, ManifestData } from '../model/manifest.js';
import { removeAbandoned, scratchName } from '../model/scratch.js';
import type { SessionFolder } from './folders.js';
import { flushToDisk } from './digest.js';
import {
  savedFiles,
  manifestHashName,
  manifestName,
  rawLeftOut,
  readManifest,
  writeManifest,
} from './manifest-file.js';
import { createScratchFolder } from './scratch-folder.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { makeFolder } from '../model/atomic-write.js';
import { userFileName } from './user-file.js';
import { requireIntact, verifySession } from './verify.js';

const archiveSuffix = '.inferscope.tar.gz';
/** Prefix of the temporary file next to the archive. */
const partPrefix = '.inferscope-part';

interface ExportOptions {
  /** File to write; default: <id>.inferscope.tar.gz in the current folder. */
  output?: string;
  /** Includes derived/ (reports, caches). */
  derived?: boolean;
  overwrite?: boolean;
  /** Includes the profilers' raw files, which may contain the program's whole environment. */
  raw?: boolean;
}

/**
 * Artifacts saved exactly as their profiler wrote them, which may contain secrets: an nsys report has every environment variable of the
 * profiled program, tokens included; the others have range names, file paths and arguments of the program. They are left out unless --raw
 * is given. Tables and logs are redacted.
 */
const rawReportKinds = new Set([
  'nsys-rep',
  'nsys-sqlite',
  'nsys-parquetdir',
  'ncu-rep',
  'ncu-csv',
  'kineto',
  'cublas-log',
  'cublaslt-log',
  'nvidia-smi-query',
  'nvidia-smi-dmon',
  // A server's log may contain prompts.
  'vllm-log',
]);

interface ExportedArchive {
  /** Raw reports left out, or included with `raw`: paths in the session. */
  raw_reports: string[];
  path: string;
  bytes: number;
  sha256: string;
  files: number;
}

/**
 * Writes all files of a session into one archive, after checking every checksum. The manifest comes first, so that an import knows the
 * expected files; the archive gets its name only when it is complete.
 * @throws E_SESSION_CORRUPT, E_USAGE when the file exists, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function exportSession(
  session: SessionFolder,
  options: ExportOptions = {},
): Promise<ExportedArchive> {
  const path = resolve(options.output ?? `${session.id}${archiveSuffix}`);
  if (!options.overwrite && existsSync(path)) throw alreadyExists(path);
  requireIntact(await verifySession(session));
  const manifest = readManifest(session.folder, session.id);
  const isRaw = ({ kind }: Artifact) => rawReportKinds.has(kind);
  const raw_reports = manifest.data.artifacts.filter(isRaw).map((artifact) => artifact.path);
  const withoutRaw = raw_reports.length > 0 && !options.raw;
  const artifacts = withoutRaw
    ? manifest.data.artifacts.filter((artifact) => !isRaw(artifact))
    : manifest.data.artifacts;
  const files = archivedFiles(session, { ...manifest.data, artifacts }, options.derived ?? false);
  makeFolder(dirname(resolve(path)));
  removeAbandoned(dirname(path), partPrefix);
  const partial = join(dirname(path), scratchName(partPrefix));
  const staging = withoutRaw ? createScratchFolder() : null;
  try {
    if (staging) {
      await writeManifest(
        staging.path,
        { ...manifest.data, artifacts },
        [...manifest.issues, rawLeftOutIssue(raw_reports)],
        manifest.toolVersion,
      );
      await linkFiles(session.folder, staging.path, files);
    }
    await pack(session.id, staging?.path ?? session.folder, files, partial);
    await flushToDisk(partial);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    const neededBytes = files.reduce((sum, file) => sum + statSync(join(session.folder, file)).size, 0);
    throw asStorageFailure(error, { path: dirname(path), doing: `write ${path}`, neededBytes });
  } finally {
    staging?.remove();
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return { path, bytes: statSync(path).size, sha256: hash.digest('hex'), files: files.length, raw_reports };
}

function alreadyExists(path: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${path} already exists`,
    why: 'An export does not overwrite a file.',
    fix: 'Choose another path with --output, or add --overwrite.',
  });
}

function rawLeftOutIssue(paths: string[]): Issue {
  const text = `The imported archive has no raw reports: ${paths.join(', ')}.`;
  return { code: rawLeftOut, severity: 'info', text, count: paths.length };
}

/** Fills the staging folder with its own manifest and links to the session's other files, which the archive follows. */
async function linkFiles(folder: string, staging: string, files: string[]): Promise<void> {
  for (const file of files) {
    if (file === manifestName || file === manifestHashName) continue;
    await mkdir(dirname(join(staging, file)), { recursive: true });
    await symlink(join(folder, file), join(staging, file));
  }
}

function archivedFiles({ folder }: SessionFolder, data: ManifestData, derived: boolean): string[] {
  const files = [manifestName, manifestHashName];
  if (existsSync(join(folder, userFileName))) files.push(userFileName);
  files.push(...savedFiles(data).map(({ path }) => path));
  if (derived && existsSync(join(folder, 'derived'))) {
    const names = readdirSync(join(folder, 'derived'), { recursive: true, encoding: 'utf8' });
    files.push(
      ...names.map((name) => `derived/${name}`).filter((name) => statSync(join(folder, name)).isFile()),
    );
  }
  return files;
}

async function pack(id: string, folder: string, files: string[], target: string): Promise<void> {
  const { create } = await import('tar');
  const archive = create(
    // Owner, group and times of this machine are left out; Parquet is compressed already.
    {
      cwd: folder,
      prefix: id,
      portable: true,
      noMtime: true,
      gzip: { level: 6 },
      noDirRecurse: true,
      follow: true,
      strict: true,
    },
    files,
  );
  await pipeline(archive, createWriteStream(target, { flags: 'wx' }));
}
