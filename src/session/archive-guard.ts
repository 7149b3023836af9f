import { InferscopeError } from '../model/errors.js';
import { formatBytes, plural } from '../vocabulary/format.js';
import { sessionIdPattern } from './id.js';
import { manifestHashName, manifestName, requireReadable } from './manifest-file.js';
import { userFileName } from './user-file.js';

/** Maximum manifest size; thousands of captures need far less. */
const manifestLimitBytes = 64 * 2 ** 20;
const userLimitBytes = 16 * 2 ** 20;
/** Reports and caches are not in the manifest, so they have their own limit. */
const derivedLimitBytes = 2 * 2 ** 30;
const derivedLimitFiles = 10_000;

interface ArchiveEntry {
  path: string;
  type: string;
  size: number;
}

/**
 * Accepts only the files of a session: one folder named after the session, the manifest first, then files listed in the manifest with the
 * listed sizes. Links, devices, paths outside the folder and unlisted files are rejected before any byte of them is written, so that a
 * malicious archive cannot write elsewhere or fill the disk.
 */
interface ArchiveGuard {
  /** @returns path of the entry in the session folder @throws E_SESSION_ARCHIVE */
  admit(entry: ArchiveEntry): string;
  isManifest(path: string): boolean;
  checkWritten(path: string, sha256: string, content: Buffer): void;
  /** Total size of the files in the manifest; 0 before the manifest was read. */
  expectedBytes(): number;
  /** @returns the session's id @throws E_SESSION_ARCHIVE when files are missing */
  finish(): string;
}

export function refusedArchive(archive: string, what: string, why: string, cause?: unknown): InferscopeError {
  return new InferscopeError(
    'E_SESSION_ARCHIVE',
    {
      what: `${archive} cannot be imported: ${what}`,
      why,
      fix: 'Copy or export it again (inferscope session export); nothing was imported.',
    },
    { cause },
  );
}

export function createArchiveGuard(archive: string): ArchiveGuard {
  let id: string | null = null;
  let expected: Map<string, { bytes: number; sha256: string }> | null = null;
  const names = new Set<string>();
  const derived = { bytes: 0, files: 0 };
  const refuse = (what: string, why: string): InferscopeError => refusedArchive(archive, what, why);

  function limitOf(path: string): number {
    if (path === manifestName) return manifestLimitBytes;
    if (!expected) throw refuse('its manifest is not the first file', `The first file is ${path}.`);
    if (path === manifestHashName) return 1024;
    if (path === userFileName) return userLimitBytes;
    if (path.startsWith('derived/')) {
      if (++derived.files > derivedLimitFiles)
        throw refuse('it has too many files', `More than ${derivedLimitFiles} in derived/.`);
      return derivedLimitBytes - derived.bytes;
    }
    const expectedFile = expected.get(path);
    if (!expectedFile) throw refuse(`it has a file that its manifest does not list`, `The file is ${path}.`);
    return expectedFile.bytes;
  }

  return {
    admit({ path, type, size }) {
      if (type === 'Directory') {
        throw refuse(
          'it has folder entries, as written by tar',
          'A session archive has only files, the manifest first, so that every file is checked.',
        );
      }
      const [top, ...rest] = path.split('/');
      const isSafe = rest.length > 0 && rest.every((part) => part !== '' && part !== '.' && part !== '..');
      if (!top || !sessionIdPattern.test(top) || !isSafe || path.includes('\\') || path.includes('\0')) {
        throw refuse('an entry has a path outside of the session', `The entry is ${JSON.stringify(path)}.`);
      }
      if (type !== 'File' && type !== 'OldFile') {
        throw refuse(`it has a ${type}; only files are allowed`, `The entry is ${JSON.stringify(path)}.`);
      }
      id ??= top;
      const relativePath = rest.join('/');
      if (top !== id) throw refuse('it has more than one session', `${id} and ${top}.`);
      if (names.has(relativePath)) throw refuse('it has a duplicate file', `The file is ${relativePath}.`);
      names.add(relativePath);
      const limit = limitOf(relativePath);
      if (size > limit) {
        throw refuse(
          `${relativePath} is larger than stated in the manifest`,
          `It has ${formatBytes(size)}, expected at most ${formatBytes(limit)}.`,
        );
      }
      if (relativePath.startsWith('derived/')) derived.bytes += size;
      return relativePath;
    },
    isManifest: (path) => path === manifestName,
    checkWritten(path, sha256, content) {
      if (path === manifestName) expected = listedFiles(content, refuse);
      const expectedFile = expected?.get(path);
      if (expectedFile && expectedFile.sha256 !== sha256) {
        throw refuse(
          `${path} does not match its checksum`,
          `Expected sha256 ${expectedFile.sha256}, found ${sha256}.`,
        );
      }
    },
    expectedBytes: () => [...(expected?.values() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0),
    finish() {
      if (id === null || !expected) throw refuse('it is empty', 'No session.json was found.');
      const missing = [manifestHashName, ...expected.keys()].filter((path) => !names.has(path));
      if (missing.length > 0) {
        throw refuse(
          `it lacks ${plural(missing.length, 'file')}`,
          `The first is ${missing[0]}; the archive may be cut off.`,
        );
      }
      return id;
    },
  };
}

/** The files listed in a manifest that is not trusted yet: its checksum and schema are checked after unpacking. */
function listedFiles(
  content: Buffer,
  refuse: (what: string, why: string) => InferscopeError,
): Map<string, { bytes: number; sha256: string }> {
  const files = new Map<string, { bytes: number; sha256: string }>();
  try {
    const { schema, data } = JSON.parse(content.toString('utf8')) as {
      schema?: unknown;
      data?: { tables?: Record<string, unknown[]>; artifacts?: unknown[] };
    };
    requireReadable(schema, 'the archived session');
    const listed = [...Object.values(data?.tables ?? {}).flat(), ...(data?.artifacts ?? [])];
    for (const file of listed as { path: unknown; bytes: unknown; sha256: unknown }[]) {
      files.set(String(file.path), { bytes: Number(file.bytes), sha256: String(file.sha256) });
    }
  } catch (error) {
    if (error instanceof InferscopeError) throw error;
    throw refuse('its manifest is not valid', String(error));
  }
  return files;
}
