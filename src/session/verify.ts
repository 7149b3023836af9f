import { readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { InferscopeError, systemErrorCode } from '../model/errors.js';
import type { ManifestData } from '../model/manifest.js';
import type { SessionFolder } from './folders.js';
import { digestFile } from './digest.js';
import { savedFiles, manifestHashName, manifestName, readManifest } from './manifest-file.js';
import { corrupt } from './session-problem.js';
import { userFileName } from './user-file.js';
import { plural } from '../vocabulary/format.js';

interface VerifiedFile {
  path: string;
  state: 'ok' | 'damaged' | 'missing' | 'unknown';
  /** What was expected and found; null for an intact file. */
  detail: string | null;
}

interface Verification {
  id: string;
  ok: boolean;
  files: VerifiedFile[];
}

/**
 * Recomputes every checksum. Damage is a result and not an exception, so that all damaged files are listed.
 * @throws E_SESSION_NEWER: the rules of another version are unknown
 */
export async function verifySession({ id, folder }: SessionFolder): Promise<Verification> {
  const files: VerifiedFile[] = [];
  const data = readListedFiles(folder, id, files);
  for (const file of data ? savedFiles(data) : []) files.push(await verifyFile(folder, file));
  // Without a manifest the expected files are unknown.
  if (data) files.push(...unknownFiles(folder, new Set(savedFiles(data).map(({ path }) => path))));
  return { id, ok: files.every(({ state }) => state === 'ok'), files };
}

function readListedFiles(folder: string, id: string, files: VerifiedFile[]): ManifestData | null {
  try {
    const { data } = readManifest(folder, id);
    files.push({ path: manifestName, state: 'ok', detail: null });
    return data;
  } catch (error) {
    if (!(error instanceof InferscopeError) || error.code !== 'E_SESSION_CORRUPT') throw error;
    const missing = systemErrorCode(error.cause) === 'ENOENT';
    files.push({
      path: manifestName,
      state: missing ? 'missing' : 'damaged',
      detail: `${error.message}. ${error.parts.why}`,
    });
    return null;
  }
}

async function verifyFile(
  folder: string,
  file: { path: string; bytes: number; sha256: string },
): Promise<VerifiedFile> {
  try {
    const digest = await digestFile(join(folder, file.path));
    if (digest.sha256 === file.sha256) return { path: file.path, state: 'ok', detail: null };
    const detail = `expected ${plural(file.bytes, 'byte')}, sha256 ${file.sha256}; found ${plural(digest.bytes, 'byte')}, sha256 ${digest.sha256}`;
    return { path: file.path, state: 'damaged', detail };
  } catch (error) {
    const missing = systemErrorCode(error) === 'ENOENT';
    return {
      path: file.path,
      state: missing ? 'missing' : 'damaged',
      detail: `cannot be read: ${systemErrorCode(error)}`,
    };
  }
}

/** Files that are not in the manifest. user.json and derived/ belong to the user and have no checksums. */
function unknownFiles(folder: string, listedPaths: Set<string>): VerifiedFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !listedPaths.has(path) && !isOutsideChecksums(path))
    .sort()
    .map((path) => ({ path, state: 'unknown', detail: 'not in the manifest' }));
}

function isOutsideChecksums(path: string): boolean {
  return (
    path === manifestName ||
    path === manifestHashName ||
    path === userFileName ||
    path.startsWith(`${userFileName}.`) ||
    path.startsWith(`.${userFileName}.`) ||
    path.startsWith('derived/')
  );
}

/** Throws the first damage, for callers that need an intact session. @throws E_SESSION_CORRUPT */
export function requireIntact(verification: Verification): void {
  const damagedFiles = verification.files.filter(({ state }) => state !== 'ok');
  const [first] = damagedFiles;
  if (!first) return;
  throw corrupt(
    verification.id,
    `${first.path} is ${first.state}${damagedFiles.length > 1 ? `, and ${damagedFiles.length - 1} more` : ''}`,
    first.detail ?? '',
  );
}
