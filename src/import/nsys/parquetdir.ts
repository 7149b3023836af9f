import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../model/errors.js';
import type { Workbench } from '../../model/workbench.js';
import { maxNameLength } from '../trace-tables.js';
import { damagedCapture } from './damage.js';
import type { ReadTable } from './facts.js';
import type { ReadMeans } from './network-metrics.js';
import { globalColumns } from './sqlite-bulk.js';
import type { SqliteValue } from './sqlite-record.js';
import {
  bulkTables,
  checkColumns,
  type EventKind,
  identifying,
  type Kind,
  kinds,
  type NsysTables,
} from './tables.js';
import { takeEvents } from './take-events.js';

/** SQL over one table of the folder, `<table>.parquet`; null if the file is absent or empty. */
function parquetTable(folder: string, table: string): string | null {
  const path = join(folder, `${table}.parquet`);
  return existsSync(path) && statSync(path).size > 0 ? `read_parquet('${path.replaceAll("'", "''")}')` : null;
}

/** @throws E_TRACE_FILE if it is not a folder of an nsys export */
function checkParquetdir(folder: string): void {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (error) {
    throw damagedCapture(folder, messageOf(error), error);
  }
  if (!files.some((name) => name.endsWith('.parquet')))
    throw damagedCapture(folder, 'The folder has no Parquet files.');
  if (!files.includes('StringIds.parquet'))
    throw damagedCapture(folder, 'The folder has no StringIds.parquet, which every nsys export has.');
}

/**
 * Reads small tables of the folder.
 * @throws E_TRACE_FILE if it is not a folder of an nsys export, or a table is truncated
 */
export function parquetReader(folder: string, workbench: Workbench): ReadTable {
  checkParquetdir(folder);
  return async (table, columns) => {
    const source = parquetTable(folder, table);
    if (!source) return [];
    const types = await columnsOf(workbench, folder, table, source);
    // As text, because times since 1970 exceed 2^53.
    const list = columns.map((name, index) =>
      types.has(name) ? `CAST("${name}" AS VARCHAR) AS c${index}` : `NULL AS c${index}`,
    );
    const sql = `SELECT ${list.join(', ')} FROM ${source}`;
    const rows = await unlessTruncated(folder, table, () =>
      workbench.query<Record<string, string | null>>(sql),
    );
    return rows.map((row) =>
      columns.map((name, index) => valueOf(row[`c${index}`] ?? null, types.get(name))),
    );
  };
}

/** Like parquetReader, for tables with samples. */
export function parquetMeans(folder: string, workbench: Workbench): ReadMeans {
  return async (table, { time, keys, value }, binNs) => {
    const source = parquetTable(folder, table);
    if (!source) return [];
    const key = keys.map((name) => `"${name}"`).join(', ');
    const sql = `SELECT ("${time}" - "${time}" % ${binNs})::DOUBLE AS time, concat_ws(' ', ${key}) AS key, avg("${value}")::DOUBLE AS mean FROM ${source}
      WHERE "${time}" IS NOT NULL AND "${value}" IS NOT NULL GROUP BY ALL`;
    return unlessTruncated(folder, table, () =>
      workbench.query<{ time: number; key: string; mean: number }>(sql),
    );
  };
}

function valueOf(text: string | null, type: string | undefined): SqliteValue {
  if (text === null || type === undefined || type === 'VARCHAR') return text;
  if (type === 'DOUBLE' || type === 'FLOAT') return Number(text);
  if (!type.endsWith('INT') && !type.endsWith('INTEGER')) return null;
  return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
}

/**
 * The tables in place: nothing is copied.
 * @throws E_TRACE_FILE if a file is truncated or not Parquet
 */
export async function openParquetdir(folder: string, workbench: Workbench): Promise<NsysTables> {
  checkParquetdir(folder);
  const noTables = Object.fromEntries(kinds.map((kind) => [kind, null])) as Record<Kind, string | null>;
  const rows = { ...noTables };
  const shapes = { ...noTables };
  const counts: Record<EventKind, number> = { kernel: 0, graph: 0, memcpy: 0, memset: 0, api: 0 };
  const combinations: Partial<Record<EventKind, (rows: string) => string>> = {};
  for (const kind of kinds) {
    const { table, perRow, shape } = bulkTables[kind];
    const source = parquetTable(folder, table);
    if (!source) continue;
    const columns = await columnsOf(workbench, folder, table, source);
    checkTable(folder, table, columns);
    const list = (names: readonly string[]) =>
      names.flatMap((name) => selectColumn(name, columns)).join(', ');
    if (kind === 'nvtx') {
      rows[kind] = `(SELECT ${list([...perRow, 'text'])} FROM ${source})`;
      continue;
    }
    const [total] = await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM ${source}`);
    counts[kind] = total!.n;
    // 53 bits, which fit a double, over a table's few thousand combinations: one collision in 10^9 captures.
    const presentColumns = shape.filter((name) => columns.has(name)).map((name) => `"${name}"`);
    const key = `hash(${presentColumns.join(', ') || '0'}) >> 11 AS shape`;
    rows[kind] = `(SELECT ${list(perRow)}, ${key} FROM ${source})`;
    combinations[kind] = (rows) =>
      `CREATE TABLE nsys_${kind}_shape AS SELECT DISTINCT ${list(shape)}, ${key} FROM ${source.replace(/\)$/, ', file_row_number = true)')}${rows}`;
    shapes[kind] = `nsys_${kind}_shape`;
  }
  const strings = parquetTable(folder, 'StringIds');
  if (!strings) throw damagedCapture(folder, 'StringIds.parquet is empty.');
  checkTable(folder, 'StringIds', await columnsOf(workbench, folder, 'StringIds', strings));
  return {
    rows,
    shapes,
    read: (kind, input) =>
      workbench.scanFiles({ sql: `SELECT * FROM ${rows[kind]}`, rows: counts[kind], input }, takeEvents),
    counts,
    combine: async (kind, firstRows) => {
      // A filter on literal rows is evaluated before other columns are read.
      const where = firstRows ? ` WHERE file_row_number IN (${firstRows.join(', ') || 'NULL'})` : '';
      await workbench.run(combinations[kind]!(where));
    },
    // A duplicate id must not double the kernels that use it.
    strings: `(SELECT CAST(id AS BIGINT) AS id, left(CAST(first(value) AS VARCHAR), ${maxNameLength}) AS value FROM ${strings} GROUP BY ALL)`,
    drop: async () => {
      for (const table of Object.values(shapes))
        if (table) await workbench.run(`DROP TABLE IF EXISTS ${table}`);
    },
  };
}

function checkTable(folder: string, table: string, presentColumns: ReadonlyMap<string, string>): void {
  const columns = identifying.find((entry) => entry.table === table)!.columns;
  checkColumns(folder, table, columns, [...presentColumns.keys()]);
}

async function columnsOf(
  workbench: Workbench,
  folder: string,
  table: string,
  source: string,
): Promise<Map<string, string>> {
  const described = await unlessTruncated(folder, table, () =>
    workbench.query<{ column_name: string; column_type: string }>(
      `SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM ${source})`,
    ),
  );
  return new Map(described.map((column) => [column.column_name, column.column_type]));
}

async function unlessTruncated<T>(folder: string, table: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const [first] = messageOf(error).split('\n');
    throw damagedCapture(folder, `${table}.parquet is not a complete Parquet file (${first}).`, error);
  }
}

/** The column by name, or null if this schema version lacks it; global ids are split. */
function selectColumn(name: string, columns: Map<string, string>): string[] {
  const split = globalColumns[name];
  if (!split) return [columns.has(name) ? `"${name}"` : `NULL AS "${name}"`];
  const [pid, tid] = split;
  if (!columns.has(name)) return [`NULL::BIGINT AS "${pid}"`, `NULL::BIGINT AS "${tid}"`];
  return [`("${name}" >> 24) & 16777215 AS "${pid}"`, `"${name}" & 16777215 AS "${tid}"`];
}
