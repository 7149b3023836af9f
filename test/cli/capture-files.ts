import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import Database from 'libsql';
import { packageRoot } from '../../src/model/installation.js';

const fixtures = join(packageRoot(), 'test', 'fixtures');
const nsys = join(fixtures, 'nsys-2025.3.1-h200');

/** Captures from the fixtures, one of each format. */
export const captures = {
  sqlite: join(nsys, 'tiny-nsys.sqlite'),
  graph: join(nsys, 'tiny-graph.sqlite'),
  parquetdir: join(nsys, 'tiny-nsys.parquetdir'),
  kineto: join(fixtures, 'kineto-torch2.11-h200', 'kineto-tiny.json.gz'),
  ncuRaw: join(fixtures, 'ncu-2025.3.1-h200', 'ncu-kernels.raw.csv'),
  ncuDetails: join(fixtures, 'ncu-2025.3.1-h200', 'ncu-kernels.details.csv'),
  cublas: join(fixtures, 'cublas-cuda13.0-h200', 'cublas.log'),
  cublaslt: join(fixtures, 'cublas-cuda13.0-h200', 'cublaslt.log'),
  inspector: join(fixtures, 'nccl-inspector-from-docs'),
  dmon: join(fixtures, 'nvidia-smi-580-h200', 'nvidia-smi-dmon-TD.txt'),
  query: join(fixtures, 'nvidia-smi-580-h200', 'nvidia-smi-query.csv'),
};

/** A changed copy of a SQLite capture. */
export function changedSqlite(folder: string, name: string, sql: string, from = captures.sqlite): string {
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

/** A changed copy of the Kineto capture. */
export function changedKineto(folder: string, name: string, change: (trace: Trace) => void): string {
  mkdirSync(folder, { recursive: true });
  const trace = JSON.parse(gunzipSync(readFileSync(captures.kineto)).toString()) as Trace;
  change(trace);
  const text = JSON.stringify(trace);
  const path = join(folder, name);
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}

/** All files in a folder and its subfolders. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
