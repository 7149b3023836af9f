import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { tensorBytes, writeOnnx, type OnnxGraph } from './onnx-file.js';
import { systemErrorCode } from '../../model/errors.js';
import { asStorageFailure, diskFull, freeBytes } from '../../vocabulary/storage-failure.js';
import { isAlive } from '../../model/alive.js';

/** Written last into a model's folder. A folder without it, or one that differs from it, is not used. */
const markerName = 'complete.json';
const markerSchema = z.object({
  files: z.array(z.object({ name: z.string(), bytes: z.number(), sha256: z.string(), mtime_ms: z.number() })),
});
type Marker = z.infer<typeof markerSchema>;

const buildingPrefix = '.building-';

export interface WriteProgress {
  doneBytes: number;
  totalBytes: number;
}

/**
 * Returns the folder of a written model, writing it first if the cache lacks it or has a damaged one. It is written
 * under a temporary name, flushed and renamed: a crash leaves no partial model, and of two concurrent writers the
 * second uses the first one's model. The graph is built only when it must be written.
 * @param key names the folder and changes with everything that changes the files
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function cachedModel(
  cacheDir: string,
  key: string,
  graph: () => OnnxGraph,
  onProgress?: (progress: WriteProgress) => void,
): Promise<string> {
  const folder = join(cacheDir, key);
  if (await isComplete(folder)) return folder;
  const building = join(
    cacheDir,
    `${buildingPrefix}${hostname()}-${process.pid}-${createHash('sha256').update(`${key}${process.hrtime.bigint()}`).digest('hex').slice(0, 8)}`,
  );
  try {
    await mkdir(cacheDir, { recursive: true });
    await removeAbandoned(cacheDir);
    const built = graph();
    checkSpace(cacheDir, built);
    await mkdir(building);
    await writeModel(building, built, onProgress);
    await moveInto(building, folder);
  } catch (error) {
    // Reports the first error, even if cleaning up fails too.
    await rm(building, { recursive: true, force: true }).catch(() => undefined);
    throw asStorageFailure(error, { path: cacheDir, doing: 'write the model', home: true });
  }
  return folder;
}

async function writeModel(
  building: string,
  graph: OnnxGraph,
  onProgress?: (progress: WriteProgress) => void,
): Promise<void> {
  const written = await writeOnnx(building, 'model.onnx', graph, (doneBytes, totalBytes) =>
    onProgress?.({ doneBytes, totalBytes }),
  );
  const files = [];
  for (const file of written) {
    const { mtimeMs } = await stat(join(building, file.name));
    files.push({ ...file, mtime_ms: mtimeMs });
  }
  const marker: Marker = { files };
  const handle = await open(join(building, markerName), 'w');
  try {
    await handle.writeFile(JSON.stringify(marker, null, 2));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Moves a damaged folder at the target aside; keeps a complete one that another process put there first. */
async function moveInto(building: string, folder: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await rename(building, folder);
      return;
    } catch (error) {
      const code = systemErrorCode(error);
      if ((code !== 'ENOTEMPTY' && code !== 'EEXIST') || attempt === 3) throw error;
    }
    if (await isComplete(folder)) {
      await rm(building, { recursive: true, force: true });
      return;
    }
    const damagedFolder = `${building}-damaged`;
    await rename(folder, damagedFolder).catch((error: unknown) => {
      if (systemErrorCode(error) !== 'ENOENT') throw error;
    });
    await rm(damagedFolder, { recursive: true, force: true });
  }
}

/**
 * Sizes must match. Contents are hashed again only if a file's modification time changed, as git does for its index,
 * because hashing 100 GB would take longer than writing it.
 */
async function isComplete(folder: string): Promise<boolean> {
  let marker: Marker;
  try {
    marker = markerSchema.parse(JSON.parse(await readFile(join(folder, markerName), 'utf8')));
    for (const file of marker.files) {
      const path = join(folder, file.name);
      const { size, mtimeMs } = await stat(path);
      if (size !== file.bytes) return false;
      if (mtimeMs !== file.mtime_ms && (await sha256(path)) !== file.sha256) return false;
    }
    return true;
  } catch (error) {
    // No folder, no marker, an invalid marker, or a missing file: not complete.
    const code = systemErrorCode(error);
    if (code === null || code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

/**
 * Removes files of writers that died on this host. Processes of another host cannot be checked, so their files are kept
 * for a day.
 */
async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(buildingPrefix)) continue;
    const path = join(cacheDir, name);
    const [, host, pid] = /^\.building-(.+)-(\d+)-[0-9a-f]{8}(?:-damaged)?$/.exec(name) ?? [];
    const isLocal = host === hostname() && pid !== undefined;
    const age_ms = await stat(path).then(
      (entry) => Date.now() - entry.mtimeMs,
      () => 0,
    );
    if (isLocal ? !isAlive(Number(pid)) : age_ms > 24 * 3600 * 1000)
      await rm(path, { recursive: true, force: true });
  }
}

function checkSpace(cacheDir: string, graph: OnnxGraph): void {
  const neededBytes = graph.tensors.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
  const free = freeBytes(cacheDir);
  if (free !== null && free < neededBytes * 1.01)
    throw diskFull({
      path: cacheDir,
      doing: 'write the model',
      neededBytes,
      fix: 'Free some space, set INFERSCOPE_HOME to a larger disk, take --dtype int4 or a smaller model.',
    });
}
