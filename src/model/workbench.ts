import type { TableName, TableSink } from './tables.js';

/**
 * Columns of many rows. Numbers and flags are doubles with NaN for null (exact to 2^53); texts are codes of a table of names, never
 * strings: passing a string to the database costs more than the rest of a row.
 */
export type Columns = Record<string, Float64Array>;

/** Rows of a result in order; columns have the query's names. Valid until the next batch is requested. */
export interface Batch {
  rows: number;
  columns: Columns;
}

/** Processes the rows of a result batch by batch in order, on the thread that reads them. */
export interface RowTaker<R> {
  take(batch: Batch): void;
  /** The result, after the last batch. */
  result(): R;
}

/** A query that reads only files; every column must be numeric or boolean. */
export interface FileScan<T> {
  sql: string;
  /** Minimum number of rows: fewer are an error. Many are read by another thread. */
  rows: number;
  /** Input of the taker. Large arrays are in shared memory; the rest is copied. */
  input: T;
}

/** A table that is filled in bulk. */
export interface BulkWriter {
  /** Appends the first `rows` values of each column; missing columns are null. Copied at once. */
  append(columns: Columns, rows: number): void;
  /** Must be called before the table is queried. */
  close(): void;
}

/** How a column is made from values given row by row. */
export interface SavedColumn {
  /** Text columns: the values are indexes into this list. */
  texts?: readonly string[];
  /** Name of the array with the values; default: the column's name. Columns of one array are encoded once. */
  from?: string;
  /** Lookup table: the column's value for each integer value of that array from 0 on; NaN is null. Not for flags. */
  values?: Float64Array;
}

/**
 * Rows of an in-memory table, read part by part on any encoding thread. The result is a part of an array, or an array that the next call
 * overwrites.
 */
export interface NumberSource {
  /** Rows `from` … `from + count`; NaN is null. Integers only if the column is an integer column. */
  numbers(from: number, count: number): Float64Array;
}

/** As NumberSource, with indexes into a column's values or texts; −1 is null. */
export interface CodeSource {
  codes(from: number, count: number): Int32Array;
}

/** A column; one that is the same in every row is given as that value. Columns of one source are encoded once. */
export type InMemoryColumn =
  | string
  | number
  | null
  | { source: NumberSource }
  | { source: CodeSource; values?: Float64Array; texts?: readonly string[] };
export type InMemoryColumns = Record<string, InMemoryColumn>;

/**
 * Some columns of an in-memory table. Each encoding thread makes them from `input`, so the large arrays of `input` are in shared memory and
 * must not change any more; the rest is copied.
 */
export interface InMemoryPart<T> {
  /** Name under which other threads know `columns`. */
  name: string;
  input: T;
  columns: (input: T) => InMemoryColumns;
}

/** An in-memory table, given some columns at a time. */
export interface InMemoryWriter {
  /** Adds columns: for a large table other threads start to encode them. */
  add<T>(part: InMemoryPart<T>): void;
  /** No more columns follow; missing ones are null. */
  close(): void;
}

/** A table of the model that is written into its file without the database. */
export interface SavedColumnsWriter {
  /**
   * Appends the first `rows` values of each array; NaN is null. Integers only for integer columns. Copied at once; resolves when there is
   * room for more.
   */
  append(columns: Columns, rows: number): Promise<void>;
  /** No more rows follow. The file may be finished later: see Workbench.written. */
  close(): Promise<void>;
}

/**
 * A scratch database in which trace importers load, sort, join and aggregate, so that a trace is never in JavaScript memory: it has a
 * memory limit and spills to the session's folder. SQL is DuckDB's. Implemented by src/session/, the only user of DuckDB. Several captures
 * of a session share one workbench: prefix or drop tables.
 */
export interface Workbench {
  /** Runs statements in order. */
  run(sql: string): Promise<void>;
  /** All rows of a small result as objects; integers must be below 2^53. */
  query<T extends object>(sql: string): Promise<T[]>;
  /** Streams a large result; every column must be numeric or boolean. */
  scan(sql: string): AsyncIterable<Batch>;
  /**
   * Passes the rows of files to a taker.
   * @param taker creates the taker; scan-worker.js must have the same one, because a reading thread creates its own
   */
  scanFiles<T, R>(files: FileScan<T>, taker: (input: T) => RowTaker<R>): Promise<R>;
  /** Creates a table of DOUBLE columns (cast when they are read) and fills it. */
  createTable(name: string, columns: readonly string[]): Promise<BulkWriter>;
  /** Creates a table (code BIGINT, text VARCHAR), code = index in `texts`. */
  createNames(name: string, texts: Iterable<string>): Promise<void>;
  /**
   * Writes rows of the model's table `table` into the session; several tables can be written at the same time. `select` has the columns by
   * name, in any order and numeric type; missing ones are null. `constants` are the same in every row (execution_id, …).
   * @returns rows written
   */
  save<T extends TableName>(
    table: T,
    captureId: string,
    select: string,
    constants: Record<string, string | number | null>,
  ): Promise<number>;
  /**
   * As `save`, for rows in JavaScript. `columns` are declared by name; columns of the table that are neither here nor constants are null.
   */
  saveColumns<T extends TableName>(
    table: T,
    captureId: string,
    columns: Record<string, SavedColumn>,
    constants: Record<string, string | number | null>,
  ): Promise<SavedColumnsWriter>;
  /** As `save`, for an in-memory table. */
  saveInMemory<T extends TableName>(
    table: T,
    captureId: string,
    rows: number,
    constants: Record<string, string | number | null>,
  ): Promise<InMemoryWriter>;
  /** SQL of the saved rows of these captures, after `written`; null if there are none. */
  savedRows(table: TableName, captureIds: readonly string[]): string | null;
  /**
   * Helps to encode in-memory tables, and resolves when every closed table is on disk.
   * @throws the error of a table
   */
  flush(): Promise<void>;
  /** Fewer threads also reduce memory: sorts and joins need some for each. */
  limit(limits: {
    threads?: number;
    memory_bytes?: number;
    /** Returns freed memory to the system at once instead of seconds later; costs time. */
    return_pages?: boolean;
  }): Promise<void>;
}

/** Where an importer writes what it reads. */
export interface ImportTarget {
  sink: TableSink;
  workbench: Workbench;
  /** A folder for the importer's own files; removed at the end. */
  scratch: string;
}
