import { createHash, type Hash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { createGunzip } from 'node:zlib';
import { InferscopeError, messageOf, systemErrorCode } from '../model/errors.js';
import { createArchiveGuard, refusedArchive } from './archive-guard.js';
import { sessionFolders } from './folders.js';
import { ensureWritable, homeFolders, type Home } from './home.js';
import { flushToDisk } from './digest.js';
import { rawLeftOut, readManifest, type ManifestFile } from './manifest-file.js';
import { openFolder } from './open.js';
import { asStorageFailure, diskFull, freeBytes } from '../vocabulary/storage-failure.js';
import { createTemporaryFolder, publish, removeStaleFolders } from './temporary-folder.js';
import { changeUser, readUser } from './user-file.js';
import { requireIntact, verifySession } from './verify.js';
import { formatBytes } from '../vocabulary/format.js';

export interface ImportedSession {
  id: string;
  /** already_here: a session with this id and the same content exists, perhaps with raw reports that the archive lacks; nothing changed. */
  outcome: 'imported' | 'already_here';
  /** Name that was dropped because another session has it. */
  droppedName: string | null;
}

/**
 * Imports an exported session. It is unpacked under a temporary name and becomes visible only after every checksum is verified; on failure
 * nothing is left.
 * @param findDamage reports damaged pages of the tables, which correct checksums do not exclude
 * @throws E_SESSION_ARCHIVE (truncated, not an archive, unsafe entries, another session with that id), E_SESSION_CORRUPT, E_SESSION_NEWER,
 * E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function importSession(
  archive: string,
  home: Home = homeFolders(),
  findDamage: (tables: readonly string[]) => Promise<string | null> = async () => null,
): Promise<ImportedSession> {
  requireFile(archive);
  ensureWritable(home);
  removeStaleFolders(home);
  const temporary = await createTemporaryFolder(home);
  try {
    const id = await unpack(archive, temporary.path);
    const manifest = readManifest(temporary.path, id);
    requireIntact(await verifySession({ id, folder: temporary.path }));
    await openFolder({ id, folder: temporary.path });
    const tables = Object.values(manifest.data.tables).flat();
    const damageFound = await findDamage(tables.map(({ path }) => join(temporary.path, path)));
    if (damageFound !== null) throw refusedArchive(archive, 'a table in it is damaged', damageFound);
    const droppedName = await dropTakenName(temporary.path, id, home);
    if (existsSync(join(home.sessions, id)) || !(await publish(temporary.path, home, id))) {
      requireSame(id, manifest, home);
      return { id, outcome: 'already_here', droppedName: null };
    }
    return { id, outcome: 'imported', droppedName };
  } catch (error) {
    throw asStorageFailure(error, { path: home.sessions, doing: `unpack ${archive}`, home: true });
  } finally {
    temporary.release();
    await rm(temporary.path, { recursive: true, force: true });
  }
}

function requireFile(archive: string): void {
  const stats = statSync(archive, { throwIfNoEntry: false });
  if (stats?.isFile()) return;
  throw new InferscopeError('E_SESSION_ARCHIVE', {
    what: `${archive} is not a file`,
    why: stats ? 'It is a folder or something else that is not a file.' : 'It does not exist.',
    fix: 'Give a file written by inferscope session export.',
  });
}

/** tar pads its last record with zeros: 10 KiB by default, rarely more than a MiB. */
const paddingLimitBytes = 2 ** 20;

/**
 * Writes each entry synchronously while it is parsed, since the guard must read the manifest before it checks the next entry.
 * @returns the session id of the archive
 */
async function unpack(archive: string, folder: string): Promise<string> {
  const { Parser } = await import('tar');
  const guard = createArchiveGuard(archive);
  const folders = new Set<string>();
  const open = new Set<UnpackedFile>();
  // The first failure is the cause; after it the parser gets no more data.
  let failure: unknown = null;
  const attempt = (action: () => void): void => {
    try {
      if (failure === null) action();
    } catch (error) {
      failure = error;
    }
  };
  const parser = new Parser({
    strict: true,
    onReadEntry: (entry) => {
      let file: UnpackedFile | null = null;
      attempt(() => {
        const path = guard.admit({ path: entry.path, type: entry.type, size: entry.size });
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        folders.add(dirname(join(folder, path)));
        file = createFile(folder, path, guard.isManifest(path));
        open.add(file);
      });
      entry.on('data', (chunk: Buffer) => attempt(() => file?.write(chunk)));
      entry.on('end', () => {
        attempt(() => {
          if (!file) return;
          guard.checkWritten(file.path, file.hash.digest('hex'), Buffer.concat(file.buffers));
          if (guard.isManifest(file.path)) requireSpace(archive, folder, guard.expectedBytes());
        });
        if (file) open.delete(file);
        file?.close();
      });
    },
  });
  parser.on('error', (error: unknown) => {
    failure ??= error;
  });
  let ended = false;
  parser.on('eof', () => {
    ended = true;
  });
  let paddingBytes = 0;
  try {
    await pipeline(createReadStream(archive), createGunzip(), async (source: AsyncIterable<Buffer>) => {
      for await (const chunk of source) {
        // After the archive's end the parser would buffer all data.
        if (ended) paddingBytes += chunk.length;
        else parser.write(chunk);
        if (paddingBytes > paddingLimitBytes)
          failure ??= refusedArchive(
            archive,
            'it has data after its end',
            `More than ${formatBytes(paddingLimitBytes)} follow the last file.`,
          );
        if (failure !== null) throw failure;
      }
      parser.end();
    });
  } catch (error) {
    failure ??= error;
  } finally {
    for (const file of open) file.close();
  }
  if (failure) throw asArchiveError(archive, failure);
  for (const createdFolder of folders) await flushToDisk(createdFolder);
  return guard.finish();
}

interface UnpackedFile {
  path: string;
  hash: Hash;
  /** The content, if the guard wants to read it. */
  buffers: Buffer[];
  write(chunk: Buffer): void;
  close(): void;
}

function createFile(folder: string, path: string, keep: boolean): UnpackedFile {
  const descriptor = openSync(join(folder, path), 'wx');
  const hash = createHash('sha256');
  const buffers: Buffer[] = [];
  return {
    path,
    hash,
    buffers,
    write(chunk) {
      hash.update(chunk);
      if (keep) buffers.push(chunk);
      for (let offset = 0; offset < chunk.length;) offset += writeSync(descriptor, chunk, offset);
    },
    close() {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/** Checked before the files are written: an archive that does not fit fails at its manifest. */
function requireSpace(archive: string, folder: string, neededBytes: number): void {
  if (neededBytes > (freeBytes(folder) ?? Infinity))
    throw diskFull({ path: folder, doing: `unpack ${archive}`, neededBytes, home: true });
}

/** Converts errors of zlib and tar to ours. */
function asArchiveError(archive: string, error: unknown): unknown {
  const code = systemErrorCode(error) ?? '';
  if (!code.startsWith('Z_') && !code.startsWith('TAR_')) return error;
  const cutOff = code === 'Z_BUF_ERROR' || /[Tt]runcated|unexpected end/.test(messageOf(error));
  return refusedArchive(
    archive,
    cutOff ? 'it is truncated' : 'it is damaged, or not a session archive at all',
    `Reading it stopped with: ${messageOf(error)}.`,
    error,
  );
}

/** Removes the name of the unpacked session if a session here has it. @returns the removed name */
async function dropTakenName(folder: string, id: string, home: Home): Promise<string | null> {
  const { name } = readUser(folder).user;
  if (name === null) return null;
  const isUsed = sessionFolders(home).some(
    (sessionFolder) => sessionFolder.id !== id && readUser(sessionFolder.folder).user.name === name,
  );
  if (!isUsed) return null;
  await changeUser(folder, (user) => ({ ...user, name: null }));
  return name;
}

/** Whether the archive was exported without raw reports and otherwise equals the saved session. */
function isSameWithoutRaw(stored: ManifestFile, imported: ManifestFile): boolean {
  if (!imported.issues.some(({ code }) => code === rawLeftOut)) return false;
  const importedPaths = new Set(imported.data.artifacts.map(({ path }) => path));
  const artifacts = stored.data.artifacts.filter(({ path }) => importedPaths.has(path));
  return isDeepStrictEqual({ ...stored.data, artifacts }, imported.data);
}

function requireSame(id: string, imported: ManifestFile, home: Home): void {
  const stored = readManifest(join(home.sessions, id), id);
  if (stored.sha256 === imported.sha256 || isSameWithoutRaw(stored, imported)) return;
  throw new InferscopeError('E_SESSION_ARCHIVE', {
    what: `another session ${id} already exists`,
    why: `Its content differs from the archive's (manifest ${stored.sha256.slice(0, 12)}… here, ${imported.sha256.slice(0, 12)}… in the archive).`,
    fix: `To replace it: inferscope session export ${id}, session delete ${id}, then import again.`,
  });
}
