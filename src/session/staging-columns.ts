import type { DuckDBDataChunk, DuckDBType } from '@duckdb/node-api';
import type * as DuckDB from '@duckdb/node-api';
import type { Column, ColumnType } from '../model/columns.js';
import { badValue, checkCaptureId } from './staged-file.js';

/** DuckDB's chunk size: one call into the library per chunk. */
const chunkRows = 2048;

/**
 * Text columns with few distinct values are staged as codes of one dictionary: passing a string to DuckDB costs about 0.2 µs, more than the
 * rest of the row.
 */
const codedColumns = new Set(
  (
    'execution_id capture_id host class kind src_kind dst_kind api op_type provider scope metric unit point source ' +
    'cause dtype compute_type layout status raw_name'
  ).split(' '),
);

const noNumbers = new Float64Array(0);

interface StagedColumn {
  name: string;
  type: ColumnType;
  coded: boolean;
  /** Numbers and flags are doubles with NaN for null: DuckDB's null mask costs a BigInt operation per value here. */
  numbers: Float64Array;
  texts: (string | null)[];
}

export interface ChunkBuffer {
  /** Columns of the staging table, for CREATE TABLE. */
  definition: string;
  append(row: Record<string, unknown>): void;
  flush(): void;
  rows(): number;
  /** In order of their first row. */
  captureIds(): string[];
}

/** Collects rows of one table and passes them on in chunks. */
export function createChunkBuffer(
  table: string,
  schema: [string, Column][],
  dictionary: Map<string, number>,
  duckdb: typeof DuckDB,
  emit: (chunk: DuckDBDataChunk) => void,
): ChunkBuffer {
  const columns: StagedColumn[] = schema.map(([name, { type }]) => ({
    name,
    type,
    coded: type === 'VARCHAR' && codedColumns.has(name),
    numbers: noNumbers,
    texts: [],
  }));
  const types: DuckDBType[] = columns.map((column) => (isText(column) ? duckdb.VARCHAR : duckdb.DOUBLE));
  const captures = new Set<string>();
  let lastCapture: string | null = null;
  let filled = 0;
  let flushed = 0;

  /** Allocates on first use: most tables of a session have no rows. */
  function makeRoom(): void {
    for (const column of columns) if (!isText(column)) column.numbers = new Float64Array(chunkRows);
  }

  function flush(): void {
    if (filled === 0) return;
    const chunk = duckdb.DuckDBDataChunk.create(types, filled);
    for (let c = 0; c < columns.length; c++) {
      const column = columns[c] as StagedColumn;
      const vector = chunk.getColumnVector(c) as {
        setItem(row: number, value: unknown): void;
        flush(): void;
      };
      const values = isText(column) ? column.texts : column.numbers;
      for (let i = 0; i < filled; i++) vector.setItem(i, values[i]);
      vector.flush();
    }
    emit(chunk);
    flushed += filled;
    filled = 0;
  }

  function append(row: Record<string, unknown>): void {
    if (filled === 0 && flushed === 0) makeRoom();
    const captureId = row['capture_id'];
    if (lastCapture === null || captureId !== lastCapture) {
      checkCaptureId(table, captureId);
      captures.add(captureId);
      lastCapture = captureId;
    }
    for (let c = 0; c < columns.length; c++) {
      const column = columns[c] as StagedColumn;
      const value = row[column.name];
      if (column.type !== 'VARCHAR') column.numbers[filled] = numberOf(table, column, value);
      else if (column.coded) column.numbers[filled] = codeOf(dictionary, table, column, value);
      else column.texts[filled] = textOf(table, column, value);
    }
    if (++filled === chunkRows) flush();
  }

  return {
    definition: columns
      .map((column) => `"${column.name}" ${isText(column) ? 'VARCHAR' : 'DOUBLE'}`)
      .join(', '),
    append,
    flush,
    rows: () => flushed + filled,
    captureIds: () => [...captures],
  };
}

function isText(column: StagedColumn): boolean {
  return column.type === 'VARCHAR' && !column.coded;
}

function numberOf(table: string, column: StagedColumn, value: unknown): number {
  if (value === null || value === undefined) return Number.NaN;
  if (column.type === 'BOOLEAN') {
    if (typeof value === 'boolean') return value ? 1 : 0;
  } else if (typeof value === 'number' && inRange(column.type, value)) {
    return value;
  }
  throw badValue(table, column.name, value);
}

function inRange(type: ColumnType, value: number): boolean {
  if (type === 'DOUBLE') return Number.isFinite(value);
  const limit = type === 'INTEGER' ? 2 ** 31 - 1 : Number.MAX_SAFE_INTEGER;
  return value >= -limit && value <= limit;
}

/** 0 is null; DuckDB's lists start at 1. */
function codeOf(
  dictionary: Map<string, number>,
  table: string,
  column: StagedColumn,
  value: unknown,
): number {
  const text = textOf(table, column, value);
  if (text === null) return 0;
  let code = dictionary.get(text);
  if (code === undefined) {
    code = dictionary.size + 1;
    dictionary.set(text, code);
  }
  return code;
}

function textOf(table: string, column: StagedColumn, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string') throw badValue(table, column.name, value);
  // DuckDB's C interface ends a string at the first NUL.
  return value.includes('\0') ? value.replaceAll('\0', '\u2400') : value;
}

/** SQL from the staged column to the schema's type. Fractions of a nanosecond are rounded. */
export function parquetExpression(name: string, type: ColumnType): string {
  if (type === 'VARCHAR') {
    // A NULL index gives NULL.
    return codedColumns.has(name)
      ? `getvariable('dictionary')[CAST(nullif("${name}", 0) AS INTEGER)]`
      : `"${name}"`;
  }
  const value = type === 'BOOLEAN' ? `"${name}" <> 0` : `CAST("${name}" AS ${type})`;
  return `CASE WHEN isnan("${name}") THEN NULL ELSE ${value} END`;
}
