import { statSync } from 'node:fs';
import { InferscopeError } from '../../model/errors.js';
import {
  noKernelsIssue,
  type CaptureFacts,
  type ImportContext,
  type Importer,
  type ImportOutcome,
} from '../importer.js';
import type { ImportTarget } from '../../model/workbench.js';
import { attribute } from '../attribution/attribute.js';
import { saveCollectiveCalls } from './collectives.js';
import { trailingBytes } from '../capture-issues.js';
import { damagedCapture, unlessDamaged } from './damage.js';
import { readCollectionIssues, readNsysFacts, nsysSecrets, type ReadTable } from './facts.js';
import { saveNetworkMetrics, type ReadMeans } from './network-metrics.js';
import { openParquetdir, parquetMeans, parquetReader } from './parquetdir.js';
import { openSqlite, readRows, type SqliteFile } from './sqlite-file.js';
import { loadSqlite } from './sqlite-load.js';
import { bulkTables, checkColumns, identifying, type NsysTables } from './tables.js';
import { dropTraceTables } from '../trace-tables.js';
import { saveThreadDelays } from './thread-delays.js';
import { createTrace } from './trace.js';
import { readTraceInMemory } from './trace-in-memory.js';

/** Share of the import time; the rest is attribution's. */
const readShare = 0.4;

/** Limit for a sqlite file: 13 M events, 60 bytes each in memory. */
const maxInMemoryBytes = 768 * 2 ** 20;
/** Limit on events of a parquetdir. */
const maxInMemoryEvents = 13_000_000;

/** `nsys export --type sqlite`. */
export const nsysSqliteImporter = {
  name: 'nsys-sqlite',
  sniff: (head) => head.startsWith('SQLite format 3\0'),
  facts: (path) => withSqlite(path, (file) => readNsysFacts(path, readerOf(file))),
  secrets: (path) => withSqlite(path, (file) => nsysSecrets(readerOf(file))),
  load: (path, target, context) =>
    unlessDamaged(path, () =>
      withSqlite(path, async (file) => {
        const read = readerOf(file);
        const facts = await readNsysFacts(path, read);
        const tables = await loadSqlite(file, target.workbench, {
          inMemory: statSync(path).size <= maxInMemoryBytes,
          ...(context.progress && { progress: (share: number) => context.progress!(share * readShare) }),
          ...(context.signal && { signal: context.signal }),
        });
        const readIssues = await readCollectionIssues(read);
        if (file.trailing > 0) readIssues.push(trailingBytes(file.trailing));
        return importTables(path, { tables, read, means: meansOf(file) }, facts, readIssues, target, context);
      }),
    ),
} satisfies Importer;

/** `nsys export --type parquetdir`: a folder with one Parquet file per table. */
export const nsysParquetdirImporter: Importer = {
  name: 'nsys-parquetdir',
  sniff: (names) => /^StringIds\.parquet$/m.test(names),
  facts: async (path, workbench) => readNsysFacts(path, parquetReader(path, workbench)),
  secrets: async (path, workbench) => nsysSecrets(parquetReader(path, workbench)),
  load: (path, target, context) =>
    unlessDamaged(path, async () => {
      const { workbench } = target;
      const read = parquetReader(path, workbench);
      const facts = await readNsysFacts(path, read);
      const tables = await openParquetdir(path, workbench);
      const source = { tables, read, means: parquetMeans(path, workbench) };
      return importTables(path, source, facts, await readCollectionIssues(read), target, context);
    }),
};

/** An nsys report, which only nsys can read: it is exported (src/capture/tools) and the export is read. */
export const nsysRepImporter: Importer = {
  name: 'nsys-rep',
  sniff: (_head, fileName) => fileName.endsWith('.nsys-rep') || fileName.endsWith('.qdrep'),
  facts: (path) => Promise.reject(notExported(path)),
  load: (path) => Promise.reject(notExported(path)),
};

function notExported(path: string): InferscopeError {
  return new InferscopeError('E_TOOL_MISSING', {
    what: `cannot read ${path} without nsys`,
    why: 'Only nsys can read its reports, and nsys was not found.',
    fix: `On a machine with nsys: nsys export --type parquetdir ${path}; then import the folder that it writes.`,
  });
}

async function importTables(
  path: string,
  { tables, read, means }: { tables: NsysTables; read: ReadTable; means: ReadMeans },
  facts: CaptureFacts,
  readIssues: ImportOutcome['issues'],
  { workbench, sink }: ImportTarget,
  context: ImportContext,
): Promise<ImportOutcome> {
  const zero = context.zero.realtime_ns;
  const captureZero = facts.realtime_zero_ns;
  const hasBothClocks = zero !== null && captureZero !== null;
  const offset_ns = hasBothClocks ? Number(captureZero - zero) : 0;
  const events = Object.values(tables.counts).reduce((sum, count) => sum + count, 0);
  const inTables = Object.entries(tables.rows).some(([kind, rows]) => kind !== 'nvtx' && rows !== null);
  const {
    issues: lostIssues,
    trace,
    kernels,
    severalRanks,
  } = inTables && (events === 0 || events > maxInMemoryEvents)
    ? { ...(await createTrace(workbench, tables, offset_ns, context.rank)), trace: null }
    : await readTraceInMemory(workbench, tables, offset_ns, context);
  if (kernels.read > 0 && kernels.valid === 0)
    throw damagedCapture(path, `None of its ${kernels.read} kernels has valid start and end times.`);
  const issues = [...readIssues, ...lostIssues];
  const { progress } = context;
  const attributed = await attribute(
    workbench,
    {
      ...context,
      ...(progress && { progress: (share: number) => progress(readShare + share * (1 - readShare)) }),
    },
    trace,
  );
  await dropTraceTables(workbench);
  if (context.collectives || severalRanks) await saveCollectiveCalls(read, workbench, context, offset_ns);
  await saveNetworkMetrics(read, means, sink, context, offset_ns);
  await saveThreadDelays(read, { workbench, sink }, context, offset_ns);
  if (kernels.read === 0 && !attributed.issues.some(({ code }) => code === noKernelsIssue)) {
    const text = 'nsys recorded no kernels: no process that it traced launched any.';
    issues.push({ code: noKernelsIssue, severity: 'info', text });
  }
  return {
    clock: {
      name: 'Nsight Systems session, ns',
      resolution_ns: 1,
      // Alone it is the session's own clock; with other captures, nsys's error to the wall clock is unknown.
      error_bound_ns: zero === null || zero === captureZero ? 0 : null,
    },
    issues: [...issues, ...attributed.issues],
  };
}

async function withSqlite<T>(path: string, use: (file: SqliteFile) => Promise<T>): Promise<T> {
  const file = openSqlite(path);
  try {
    const eventTables = [
      ...Object.values(bulkTables).map(({ table }) => table),
      'META_DATA_EXPORT',
      'EXPORT_META_DATA',
    ];
    if (!file.tables.has('StringIds') || !eventTables.some((table) => file.tables.has(table)))
      throw damagedCapture(path, 'It is a SQLite database, but not an nsys export: the tables differ.');
    for (const { table, columns } of identifying)
      checkColumns(path, table, columns, file.tables.get(table)?.columns);
    return await use(file);
  } finally {
    file.close();
  }
}

function readerOf(file: SqliteFile): ReadTable {
  return (table, columns) => Promise.resolve([...readRows(file, table, columns)]);
}

const meansOf =
  (file: SqliteFile): ReadMeans =>
  (table, { time, keys, value }, binNs) => {
    const sums = new Map<string, { time: number; key: string; sum: number; n: number }>();
    for (const [sampleNs, sampleValue, ...keyValues] of readRows(file, table, [time, value, ...keys])) {
      if (sampleNs === null || sampleValue === null) continue;
      const from = Number(sampleNs) - (Number(sampleNs) % binNs);
      const key = keyValues.join(' ');
      const row = sums.get(`${from} ${key}`) ?? { time: from, key, sum: 0, n: 0 };
      row.sum += Number(sampleValue);
      row.n++;
      sums.set(`${from} ${key}`, row);
    }
    return Promise.resolve([...sums.values()].map(({ sum, n, ...row }) => ({ ...row, mean: sum / n })));
  };
