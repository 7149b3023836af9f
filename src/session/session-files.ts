import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, extname, join, sep } from 'node:path';
import { inLanes } from '../model/lanes.js';
import type { Artifact, TableFile } from '../model/manifest.js';
import type { TableName } from '../model/tables.js';
import type { ImportTarget } from '../model/workbench.js';
import { copyWithDigest, type Digest, digestFile, flushToDisk, writeDurably } from './digest.js';
import type { StagedFile } from './staged-file.js';
import { createStaging } from './staging.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';

interface ArtifactPlace {
  /** Kind of artifact: record, ort-trace, log, config, stdout, … */
  kind: string;
  /** The capture that it belongs to; null for the whole session. */
  captureId: string | null;
  /** File name in the session; default: the source's name. */
  name?: string;
}

/** Writes files of a new session, or of a new capture of an existing one. */
export interface SessionFiles extends ImportTarget {
  /** A folder for output of tools; addArtifact moves files from here without copying. Removed at the end. */
  scratch: string;
  /** Rows appended to a table through the sink so far. */
  rows(table: TableName): number;
  /** Drops all rows of a capture after its import failed. Its artifacts stay. */
  forget(captureId: string): void;
  /**
   * Saves a file unchanged. Large files are streamed.
   * @param source a path, or the content itself
   * @throws E_DISK_FULL, E_HOME_UNWRITABLE
   */
  addArtifact(source: string | Uint8Array, place: ArtifactPlace): Promise<Artifact>;
}

/** Files written to disk at the same time; each is flushed. */
const filesAtOnce = 8;

interface OpenSessionFiles extends SessionFiles {
  /** Writes the Parquet files. @returns manifest entries of all files, which are flushed to disk */
  close(): Promise<{ tables: Record<string, TableFile[]>; artifacts: Artifact[] }>;
  /** Closes the staging database without saving anything. */
  discard(): Promise<void>;
}

/** @param usedPaths artifact paths that the session already has */
export async function openSessionFiles(
  folder: string,
  usedPaths: Iterable<string> = [],
): Promise<OpenSessionFiles> {
  const scratch = join(folder, 'scratch');
  const spill = join(folder, 'spill');
  await mkdir(scratch);
  const staging = await createStaging({ folder, spillFolder: spill });
  const artifacts: Artifact[] = [];
  const forgotten = new Set<string>();
  const paths = new Set(usedPaths);

  async function addArtifact(source: string | Uint8Array, place: ArtifactPlace): Promise<Artifact> {
    const name = place.name ?? (typeof source === 'string' ? basename(source) : place.kind);
    const path = freePath(paths, `artifacts/${place.captureId ?? 'session'}`, name);
    const target = join(folder, path);
    try {
      await mkdir(join(target, '..'), { recursive: true });
      const digest = await putFile(source, target, scratch);
      await flushToDisk(target);
      const artifact = { path, ...digest, capture_id: place.captureId, kind: place.kind };
      artifacts.push(artifact);
      return artifact;
    } catch (error) {
      const neededBytes = typeof source === 'string' ? await sizeOf(source) : source.byteLength;
      throw asStorageFailure(error, {
        path: target,
        doing: `save the file ${name}`,
        neededBytes,
        home: true,
      });
    }
  }

  return {
    sink: {
      append(table, row) {
        try {
          staging.sink.append(table, row);
        } catch (error) {
          throw asStorageFailure(error, {
            path: spill,
            doing: `save rows of the table ${table}`,
            home: true,
          });
        }
      },
    },
    workbench: staging.workbench,
    scratch,
    rows: (table) => staging.rows(table),
    forget: (captureId) => forgotten.add(captureId),
    addArtifact,
    async close() {
      try {
        const written = await staging.writeParquet(forgotten);
        const tables = await flushTables(folder, written);
        await staging.close();
        const keptPaths = new Set(written.map(({ path }) => path));
        for (const { path } of staging.workbench.stagedFiles())
          if (!keptPaths.has(path)) await rm(join(folder, path));
        await rm(scratch, { recursive: true, force: true });
        await rm(spill, { recursive: true, force: true });
        for (const artifactFolder of new Set(artifacts.map(({ path }) => join(folder, path, '..'))))
          await flushToDisk(artifactFolder);
        for (const top of ['tables', 'artifacts', '.']) {
          if (existsSync(join(folder, top))) await flushToDisk(join(folder, top));
        }
        return { tables, artifacts };
      } catch (error) {
        throw asStorageFailure(error, { path: folder, doing: "write the session's tables", home: true });
      }
    },
    discard: () => staging.close(),
  };
}

/** Flushes the written files of the tables and their folders to disk. @returns their entries in the manifest */
async function flushTables(
  folder: string,
  written: readonly StagedFile[],
): Promise<Record<string, TableFile[]>> {
  const digests: Digest[] = [];
  await inLanes(written, filesAtOnce, async ({ path, digest: known }, index) => {
    digests[index] = known ?? (await digestFile(join(folder, path)));
    await flushToDisk(join(folder, path));
  });
  const tables: Record<string, TableFile[]> = {};
  for (const [index, { table, path, capture_id, rows }] of written.entries())
    (tables[table] ??= []).push({ path, ...digests[index]!, capture_id, rows });
  for (const table of Object.keys(tables)) await flushToDisk(join(folder, 'tables', table));
  return tables;
}

/** Moves a file from the scratch folder, copies other files, writes bytes. */
async function putFile(source: string | Uint8Array, target: string, scratch: string) {
  if (typeof source !== 'string') return writeDurably(target, source);
  if (!source.startsWith(scratch + sep)) return copyWithDigest(source, target);
  await rename(source, target);
  return digestFile(target);
}

/** The first unused of record.jsonl, record-2.jsonl, … */
function freePath(usedPaths: Set<string>, folder: string, name: string): string {
  const safe = name.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '') || 'file';
  const extension = extname(safe);
  const stem = safe.slice(0, safe.length - extension.length);
  let path = `${folder}/${safe}`;
  for (let n = 2; usedPaths.has(path); n++) path = `${folder}/${stem}-${n}${extension}`;
  usedPaths.add(path);
  return path;
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}
