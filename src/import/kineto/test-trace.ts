import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { testFolder } from '../../session/test-folder.js';
import type { ImportContext } from '../importer.js';
import { fillTraceTables, kinetoImporter, type KinetoOptions } from './importer.js';

export const fixtures = 'test/fixtures/kineto-torch2.11-h200';
export const tinyTrace = join(fixtures, 'kineto-tiny.json.gz');
export const readTrace = (path: string) =>
  JSON.parse(gunzipSync(readFileSync(path)).toString()) as { traceEvents: Record<string, unknown>[] };

export async function fillTables(path: string, options: KinetoOptions = {}, zero?: bigint) {
  const session = await createSession({
    kind: 'import',
    label: 'kineto',
    home: homeFolders({ INFERSCOPE_HOME: join(testFolder(), 'home') }),
  });
  const facts = await kinetoImporter.facts(path);
  const context: ImportContext = {
    execution_id: 'run',
    capture_id: 'c0',
    host: 'h200',
    zero: { realtime_ns: zero ?? facts.realtime_zero_ns, monotonic_ns: null },
  };
  const issues = await fillTraceTables(path, session.workbench, context, options);
  return { facts, issues, query: <T extends object>(sql: string) => session.workbench.query<T>(sql) };
}

export function writeTrace(content: string | Uint8Array, name = 'trace.json'): string {
  const folder = testFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

export const kernelJson = (suffix: string) =>
  `{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1694039968955744.519, "dur": 1.0005, "args": {"correlation": 5}}${suffix}`;
