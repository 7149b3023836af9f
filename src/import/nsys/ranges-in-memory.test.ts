import { expect, test } from 'vitest';
import type { Workbench } from '../../model/workbench.js';
import { createSession } from '../../session/create.js';
import { homeFolders } from '../../session/home.js';
import { testFolder } from '../../session/test-folder.js';
import { resolveRanges, readRanges } from './ranges-in-memory.js';
import type { NsysTables } from './tables.js';
import { countImpossibleRows } from './trace.js';
import { createRanges } from './trace-ranges.js';
import { createNames, createTexts, dropShapes } from './trace-shapes.js';

/** Only the NVTX events of a capture; the last column of a row is the text itself. */
const tables = {
  rows: { nvtx: 'events' },
  strings: 'strings',
  shapes: { kernel: null, graph: null, memcpy: null, memset: null, api: null, nvtx: null },
} as unknown as NsysTables;

const sqlNull = 'NULL';
const events = [
  // start, end, pid, tid, endTid, eventType, textId, domainId, text
  [500, 900, 1, 1, sqlNull, 59, sqlNull, 0, "'decode'"],
  [100, 400, 1, 1, sqlNull, 59, 5, 0, sqlNull], // 'prefill' by its id, and out of order
  [100, 900, 1, 1, sqlNull, 59, sqlNull, 0, "'whole'"], // starts with it and contains it
  [150, sqlNull, 1, 2, sqlNull, 70, sqlNull, sqlNull, "'decode'"], // never closed
  [160, 170, 1, 1, 2, 60, sqlNull, 3, "'forward'"], // of a process, in a domain
  [10, sqlNull, 1, 1, sqlNull, 75, sqlNull, 3, "'torch'"], // that domain
  [10, sqlNull, 2, 1, sqlNull, 75, sqlNull, 3, "'other'"], // the same number in another process
  [200, 300, 2, 1, sqlNull, 59, sqlNull, 3, sqlNull], // without a name
  [200, 300, 2, 1, sqlNull, 59, 6, 3, sqlNull],
  [120, sqlNull, 1, 1, sqlNull, 34, sqlNull, 0, "'a mark'"],
  [700, 600, 1, 1, sqlNull, 59, sqlNull, 0, "'ends before it starts'"],
  ['9007199254740993', sqlNull, 1, 1, sqlNull, 34, sqlNull, 0, "'no time'"],
  [sqlNull, 5, 1, 1, sqlNull, 59, sqlNull, 0, "'no begin'"],
];

async function withEvents<T>(use: (workbench: Workbench) => Promise<T>): Promise<T> {
  const home = homeFolders({ INFERSCOPE_HOME: `${testFolder()}/home` });
  const session = await createSession({ kind: 'import', label: 'ranges', home });
  try {
    await session.workbench
      .run(`CREATE TABLE events (start BIGINT, "end" BIGINT, pid BIGINT, tid BIGINT, "endTid" BIGINT,
      "eventType" INTEGER, "textId" BIGINT, "domainId" BIGINT, text VARCHAR)`);
    await session.workbench.run(
      `INSERT INTO events VALUES ${events.map((row) => `(${row.join(', ')})`).join(', ')}`,
    );
    await session.workbench.run(
      `CREATE TABLE strings AS SELECT * FROM (VALUES (5, 'prefill'), (6, 'step')) t (id, value)`,
    );
    return await use(session.workbench);
  } finally {
    await session.abandon();
  }
}

const rank = 'CASE pid WHEN 1 THEN 0 WHEN 2 THEN 1 END::BIGINT';
const value = (number: number) => (Number.isNaN(number) ? null : number);

async function namesOf(workbench: Workbench): Promise<string[]> {
  const rows = await workbench.query<{ text: string }>('SELECT text FROM trace_names ORDER BY code');
  return rows.map(({ text }) => text);
}

test('ranges in memory equal the table of ranges, in file order', async () => {
  const inMemory = await withEvents(async (workbench) => {
    const rangeRows = await readRanges(workbench, tables, 1_000);
    await createTexts(workbench, tables, 'nsys_range_texts');
    const { rows, start_ns, end_ns, shape, shapes } = await resolveRanges(workbench, rangeRows, rank);
    const names = await namesOf(workbench);
    await dropShapes(workbench);
    const remainingTables = await workbench.query(
      "SELECT 1 FROM information_schema.tables WHERE table_name LIKE 'nsys_%'",
    );
    expect(remainingTables).toEqual([]);
    expect(rangeRows.impossible).toBe(await countImpossibleRows(workbench, { nvtx: 'events' }));
    expect(rangeRows.impossible).toBe(3);
    return Array.from({ length: rows }, (_, row) => {
      const shapeValue = (column: string) => value(shapes[column]![shape[row]!]!);
      const [pid, tid, rank, processWide] = [
        shapeValue('pid'),
        shapeValue('tid'),
        shapeValue('rank'),
        shapeValue('process_wide'),
      ];
      const name = shapeValue('name');
      return [
        start_ns[row],
        value(end_ns[row]!),
        pid,
        tid,
        rank,
        processWide,
        name === null ? null : names[name],
      ];
    });
  });
  expect(inMemory).toEqual([
    [1_500, 1_900, 1, 1, 0, 0, 'decode'],
    [1_100, 1_400, 1, 1, 0, 0, 'prefill'],
    [1_100, 1_900, 1, 1, 0, 0, 'whole'],
    [1_150, null, 1, 2, 0, 0, 'decode'],
    [1_160, 1_170, 1, 1, 0, 1, 'torch:forward'],
    [1_200, 1_300, 2, 1, 1, 0, 'other:'],
    [1_200, 1_300, 2, 1, 1, 0, 'other:step'],
  ]);
  const inTable = await withEvents(async (workbench) => {
    await createRanges(workbench, tables, 1_000);
    await createNames(workbench, tables, rank);
    const rows = await workbench.query<Record<string, number | string | null>>(
      `SELECT start_ns, end_ns, pid, tid, rank, process_wide, text FROM trace_ranges LEFT JOIN trace_names ON name = code`,
    );
    await dropShapes(workbench);
    return rows.map((row) => Object.values(row));
  });
  const sorted = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
  expect(sorted(inMemory)).toEqual(sorted(inTable));
});
