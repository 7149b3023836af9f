import type { Batch, BulkWriter, Workbench } from '../../model/workbench.js';
import { maxNameLength } from '../trace-tables.js';
import { bulkTables, type EventKind, eventKinds, type Kind, kinds, type NsysTables } from './tables.js';
import { type EventsRead, type EventTarget, takeEvents } from './take-events.js';
import { interrupted } from '../interrupted.js';
import { type DecodedBatch, outputColumns } from './sqlite-bulk.js';
import { leafPages, readRows, type SqliteFile } from './sqlite-file.js';
import { type Lane, mainThreadLane, workerLane } from './sqlite-lanes.js';

/** Bytes per request to a lane: small enough that a few in flight do not matter. */
const requestBytes = 2 ** 20;
/** Below this size one thread finishes before a worker has started. */
const workersFromBytes = 24 * 2 ** 20;
/** Offset between the lanes' codes of shapes and texts, large enough that they cannot overlap. */
const laneCodes = 2 ** 32;

export interface LoadOptions {
  /** Threads to read with; default: two workers, or only this thread if the file is small. */
  lanes?: (file: SqliteFile) => Lane[];
  /** Keep the events in memory instead of in tables of the workbench, except ranges. */
  inMemory?: boolean;
  progress?: (share: number) => void;
  signal?: AbortSignal;
}

interface Request {
  kind: Kind;
  pages: Uint32Array;
}

/**
 * Reads the event tables into the workbench, as tables nsys_<kind>.
 * @throws E_TRACE_FILE, E_INTERRUPTED
 */
export async function loadSqlite(
  file: SqliteFile,
  workbench: Workbench,
  options: LoadOptions = {},
): Promise<NsysTables> {
  const requests: Request[] = [];
  const present = kinds.filter((kind) => file.tables.has(bulkTables[kind].table));
  for (const kind of present) {
    const leaves = leafPages(file, file.tables.get(bulkTables[kind].table)!.rootPage);
    const pages = Math.max(1, Math.floor(requestBytes / file.pageSize));
    for (let from = 0; from < leaves.length; from += pages)
      requests.push({ kind, pages: leaves.slice(from, from + pages) });
  }
  const bytes = requests.reduce((sum, { pages }) => sum + pages.length * file.pageSize, 0);
  const lanes =
    options.lanes?.(file) ??
    (bytes < workersFromBytes ? [mainThreadLane(file)] : [workerLane(file.path), workerLane(file.path)]);
  try {
    const batches: BatchesInMemory = { kernel: [], graph: [], memcpy: [], memset: [], api: [] };
    const writers = await createTables(workbench, present, options.inMemory ? batches : null);
    const texts = await readAll(requests, lanes, writers, options);
    for (const { rows, shapes } of Object.values(writers)) {
      rows?.close();
      shapes?.close();
    }
    for (const [lane, list] of texts.entries()) await workbench.createNames(`nsys_texts_${lane}`, list);
    await createStrings(file, workbench);
    return describeTables(workbench, present, lanes.length, options.inMemory ? batches : null);
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
  }
}

interface Writers {
  /** Null when they are in memory. */
  rows: BulkWriter | null;
  shapes: BulkWriter | null;
  /** By request number, which is file order. */
  batches: (Batch | undefined)[] | null;
}

type BatchesInMemory = Record<EventKind, (Batch | undefined)[]>;

async function createTables(
  workbench: Workbench,
  present: Kind[],
  batches: BatchesInMemory | null,
): Promise<Partial<Record<Kind, Writers>>> {
  const writers: Partial<Record<Kind, Writers>> = {};
  for (const kind of present) {
    const { perRow, shape } = bulkTables[kind];
    const extra = kind === 'nvtx' ? ['text'] : ['shape'];
    const bufferedBatches = kind === 'nvtx' ? null : (batches?.[kind] ?? null);
    writers[kind] = {
      batches: bufferedBatches,
      rows: bufferedBatches
        ? null
        : await workbench.createTable(`nsys_${kind}`, [...outputColumns(perRow), ...extra]),
      shapes:
        shape.length > 0
          ? await workbench.createTable(`nsys_${kind}_shape`, [...outputColumns(shape), 'code'])
          : null,
    };
  }
  return writers;
}

/**
 * Keeps every lane two requests ahead.
 * @returns the texts of each lane, in code order
 */
async function readAll(
  requests: Request[],
  lanes: Lane[],
  writers: Partial<Record<Kind, Writers>>,
  { progress, signal }: LoadOptions,
): Promise<string[][]> {
  let next = 0;
  let done = 0;
  const texts = lanes.map((): string[] => []);
  const readWithLane = async (lane: Lane, index: number): Promise<void> => {
    while (next < requests.length) {
      if (signal?.aborted) throw interrupted();
      const number = next++;
      const { kind, pages } = requests[number]!;
      const batch = await lane.decode(kind, pages);
      storeBatch(writers[kind]!, batch, index * laneCodes, number);
      for (const text of batch.texts) texts[index]!.push(text);
      progress?.(++done / requests.length);
    }
  };
  await Promise.all(lanes.flatMap((lane, index) => [readWithLane(lane, index), readWithLane(lane, index)]));
  return texts;
}

function storeBatch(
  writer: Writers,
  { rows, columns, shapes }: DecodedBatch,
  offset: number,
  number: number,
): void {
  for (const name of ['shape', 'text']) {
    const codes = columns[name];
    if (codes && offset > 0) for (let r = 0; r < rows; r++) codes[r]! += offset;
  }
  if (writer.batches) writer.batches[number] = { rows, columns };
  else writer.rows!.append(columns, rows);
  const code = Float64Array.from({ length: shapes.rows }, (_, r) => offset + shapes.first + r);
  writer.shapes?.append({ ...shapes.columns, code }, shapes.rows);
}

/**
 * Strings that can be a name. StringIds has the program's whole environment as one value, with NUL between its lines; a
 * name never contains NUL.
 */
async function createStrings(file: SqliteFile, workbench: Workbench): Promise<void> {
  const ids: number[] = [];
  const values: string[] = [];
  const seenIds = new Set<number>();
  for (const [id, value] of readRows(file, 'StringIds', ['id', 'value'])) {
    if (typeof id !== 'number' || typeof value !== 'string' || value.includes('\0') || seenIds.has(id))
      continue;
    seenIds.add(id);
    ids.push(id);
    values.push(value.slice(0, maxNameLength));
  }
  const table = await workbench.createTable('nsys_string_ids', ['id', 'code']);
  table.append(
    { id: Float64Array.from(ids), code: Float64Array.from({ length: ids.length }, (_, i) => i) },
    ids.length,
  );
  table.close();
  await workbench.createNames('nsys_string_texts', values);
}

function describeTables(
  workbench: Workbench,
  present: Kind[],
  lanes: number,
  batches: BatchesInMemory | null,
): NsysTables {
  const nullable = (names: readonly string[]) =>
    names.map((name) => `CASE WHEN isnan("${name}") THEN NULL ELSE "${name}" END AS "${name}"`).join(', ');
  const texts = Array.from(
    { length: lanes },
    (_, lane) => `SELECT code + ${lane * laneCodes} AS code, text FROM nsys_texts_${lane}`,
  ).join(' UNION ALL ');
  const rows: Partial<Record<Kind, string>> = {};
  const shapes: Partial<Record<Kind, string>> = {};
  for (const kind of present) {
    const { perRow, shape } = bulkTables[kind];
    if (kind === 'nvtx') {
      rows[kind] = `(SELECT ${nullable(outputColumns(perRow))}, texts.text
        FROM nsys_nvtx AS event LEFT JOIN (${texts}) AS texts ON texts.code = event.text)`;
      continue;
    }
    if (!batches) rows[kind] = `(SELECT ${nullable(outputColumns(perRow))}, shape FROM nsys_${kind})`;
    shapes[kind] = `(SELECT ${nullable(outputColumns(shape))}, code AS shape FROM nsys_${kind}_shape)`;
  }
  const noTables = Object.fromEntries(kinds.map((kind) => [kind, null])) as Record<Kind, null>;
  const tableNames = [
    ...present.flatMap((kind) => [`nsys_${kind}`, ...(kind === 'nvtx' ? [] : [`nsys_${kind}_shape`])]),
    ...Array.from({ length: lanes }, (_, lane) => `nsys_texts_${lane}`),
    'nsys_string_ids',
    'nsys_string_texts',
  ];
  const counts: Record<EventKind, number> = { kernel: 0, graph: 0, memcpy: 0, memset: 0, api: 0 };
  for (const kind of eventKinds) for (const batch of batches?.[kind] ?? []) counts[kind] += batch?.rows ?? 0;
  return {
    read: (kind, target) =>
      batches
        ? takeBatches(batches[kind], target)
        : Promise.reject(new Error(`rows of ${kind} are in a table, not in memory`)),
    counts,
    rows: { ...noTables, ...rows },
    shapes: { ...noTables, ...shapes },
    combine: () => Promise.resolve(),
    strings:
      '(SELECT CAST(id AS BIGINT) AS id, text AS value FROM nsys_string_ids JOIN nsys_string_texts USING (code))',
    drop: async () => {
      for (const table of tableNames) await workbench.run(`DROP TABLE IF EXISTS ${table}`);
    },
  };
}

/** Each batch is released once it has been taken. */
// oxlint-disable-next-line require-await
async function takeBatches(batches: (Batch | undefined)[], target: EventTarget): Promise<EventsRead> {
  const { take, result } = takeEvents(target);
  for (let number = 0; number < batches.length; number++) {
    const batch = batches[number];
    batches[number] = undefined;
    if (batch) take(batch);
  }
  return result();
}
