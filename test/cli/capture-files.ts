import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import Database from 'libsql';
import { packageRoot } from '../../src/model/installation.js';

/** The path of a file in test/fixtures. */
export const fixture = (path: string): string => join(packageRoot(), 'test', 'fixtures', path);

/** Captures of the fixtures, at least one of each format. */
export const captures = {
  sqlite: fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'),
  graph: fixture('nsys-2025.3.1-h200/tiny-graph.sqlite'),
  parquetdir: fixture('nsys-2025.3.1-h200/tiny-nsys.parquetdir'),
  kineto: fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'),
  ncuRaw: fixture('ncu-2025.3.1-h200/ncu-kernels.raw.csv'),
  ncuDetails: fixture('ncu-2025.3.1-h200/ncu-kernels.details.csv'),
  cublas: fixture('cublas-cuda13.0-h200/cublas.log'),
  cublaslt: fixture('cublas-cuda13.0-h200/cublaslt.log'),
  inspector: fixture('nccl-inspector-from-docs'),
  dmon: fixture('nvidia-smi-580-h200/nvidia-smi-dmon-TD.txt'),
  query: fixture('nvidia-smi-580-h200/nvidia-smi-query.csv'),
};

/** Writes a copy of a SQLite capture that `sql` changes. @returns its path */
export function writeChangedSqlite(
  folder: string,
  name: string,
  sql: string,
  from = captures.sqlite,
): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  cpSync(from, path);
  const database = new Database(path);
  database.exec(sql);
  database.close();
  return path;
}

interface Trace {
  traceEvents: { ph: string; cat?: string; name: string; ts: number; args?: Record<string, unknown> }[];
}

/** Writes a copy of the Kineto capture that `change` changes. @returns its path */
export function writeChangedKineto(folder: string, name: string, change: (trace: Trace) => void): string {
  mkdirSync(folder, { recursive: true });
  const trace = JSON.parse(gunzipSync(readFileSync(captures.kineto)).toString()) as Trace;
  change(trace);
  const text = JSON.stringify(trace);
  const path = join(folder, name);
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}

/** Paths of all files in a folder and its subfolders. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
