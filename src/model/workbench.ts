import type { TableName, TableSink } from './tables.js';

/**
 * Columns of many rows at once. Numbers and flags are doubles with NaN for null (exact to 2^53); texts are codes of
 * a table of names, never strings: handing a string to the database costs more than the rest of a row together.
 */
export type Columns = Record<string, Float64Array>;

/** Rows of a result, in its order; columns are as the query names them. Valid until the next batch is asked for. */
export interface Batch {
  rows: number;
  columns: Columns;
}

/** What makes something of the rows of a result, batch by batch in their order, on whichever thread reads them. */
export interface RowTaker<R> {
  take(batch: Batch): void;
  /** After the last one. */
  taken(): R;
}

/** Rows of files alone; every column must be numeric or boolean. */
export interface FileScan<T> {
  sql: string;
  /** At least so many: fewer are an error. A thread of its own reads many. */
  rows: number;
  /** What the taker is made of. Large arrays lie in memory that threads share; the rest is copied. */
  input: T;
}

/** A table being filled in bulk. */
export interface BulkWriter {
  /** The first `rows` values of each column of the table; columns left out are null. Copied at once. */
  append(columns: Columns, rows: number): void;
  /** Must be called before the table is queried. */
  close(): void;
}

/** How a column is made of what is given row by row. */
export interface KeptColumn {
  /** Text columns: the values are indexes into this list. */
  texts?: readonly string[];
  /** The array it is made of; without it the one of its own name. Columns of one array are encoded once. */
  from?: string;
  /** What it has at each value of that array, whole numbers from 0 on; NaN is null. Not of flags. */
  values?: Float64Array;
}

/**
 * Rows of a table that lies in memory, asked for part by part on whichever thread encodes them. What comes back is a
 * part of an array, or one that the next call fills again.
 */
export interface NumberSource {
  /** Rows `from` … `from + count`; NaN is null. Integers only where the column is one. */
  numbers(from: number, count: number): Float64Array;
}

/** As NumberSource, of indexes into a column's values or texts; −1 is null. */
export interface CodeSource {
  codes(from: number, count: number): Int32Array;
}

/** A column that is the same in every row is that value. Columns of one source are encoded once. */
export type HeldColumn =
  | string
  | number
  | null
  | { source: NumberSource }
  | { source: CodeSource; values?: Float64Array; texts?: readonly string[] };
export type HeldColumns = Record<string, HeldColumn>;

/**
 * Some columns of a table that lies in memory. They are made of `input` on each thread that encodes a part of them; so
 * the large arrays of `input` lie in memory that threads share, and must not change any more; the rest is copied.
 */
export interface HeldPart<T> {
  /** What other threads know `columns` by. */
  name: string;
  input: T;
  columns: (input: T) => HeldColumns;
}

/** A table that lies in memory, given some columns at a time. */
export interface HeldWriter {
  /** Columns that are known now: a large table's are encoded by another thread from now on. */
  add<T>(part: HeldPart<T>): void;
  /** No more columns come: what was not given is null. */
  close(): void;
}

/** A table of the model being written into its file, without the database. */
export interface KeptWriter {
  /**
   * The first `rows` values of each array that columns are made of; NaN is null. Integers only where the column is one.
   * Copied at once; settles when there is room for more.
   */
  append(columns: Columns, rows: number): Promise<void>;
  /** No more rows come. The file may be finished later: see Workbench.written. */
  close(): Promise<void>;
}

/**
 * A scratch database that trace importers load, sort, join and aggregate in, so that a trace is never held in
 * JavaScript: it keeps to a memory limit and spills to the session's own folder. SQL is DuckDB's. Implemented by
 * src/session/, which alone knows DuckDB. Several captures of a session use one workbench: prefix or drop tables.
 */
export interface Workbench {
  /** Runs statements in order. */
  run(sql: string): Promise<void>;
  /** All rows of a small result as objects; integers must be below 2^53. */
  query<T extends object>(sql: string): Promise<T[]>;
  /** Streams a large result; every column must be numeric or boolean. */
  scan(sql: string): AsyncIterable<Batch>;
  /**
   * Gives the rows of files to a taker, from now on. @param taker the one that the built scan-worker.js has: a thread
   * makes its own
   */
  scanFiles<T, R>(files: FileScan<T>, taker: (input: T) => RowTaker<R>): Promise<R>;
  /** Creates a table of DOUBLE columns (cast where they are read) and fills it. */
  createTable(name: string, columns: readonly string[]): Promise<BulkWriter>;
  /** Creates a table (code BIGINT, text VARCHAR), code = index in `texts`. */
  createNames(name: string, texts: Iterable<string>): Promise<void>;
  /**
   * Writes rows of the model's table `table` into the session; of several tables at the same time. `select` gives columns by name, in any order and of
   * any numeric type; those it leaves out are null. `constants` are the same in every row (execution_id, …).
   * @returns rows written
   */
  keep<T extends TableName>(
    table: T,
    captureId: string,
    select: string,
    constants: Record<string, string | number | null>,
  ): Promise<number>;
  /**
   * As `keep`, for rows that are in JavaScript. `columns` are announced by name; columns of the table that are neither
   * here nor constants are null.
   */
  keepColumns<T extends TableName>(
    table: T,
    captureId: string,
    columns: Record<string, KeptColumn>,
    constants: Record<string, string | number | null>,
  ): Promise<KeptWriter>;
  /** As `keep`, of a table that is held. */
  keepHeld<T extends TableName>(
    table: T,
    captureId: string,
    rows: number,
    constants: Record<string, string | number | null>,
  ): Promise<HeldWriter>;
  /** SQL of the rows that were kept of these captures, after `written`; null where there are none. */
  keptRows(table: TableName, captureIds: readonly string[]): string | null;
  /**
   * Helps to encode what is held, and settles when every table that was closed is on disk. @throws what went wrong with one
   */
  written(): Promise<void>;
  /** Fewer threads also bound the memory further: sorts and joins take some for each. */
  limit(limits: {
    threads?: number;
    memory_bytes?: number;
    /** What was let go of returns to the system at once, not seconds later; costs time. */
    return_pages?: boolean;
  }): Promise<void>;
}

/** Where an importer puts what it reads. */
export interface ImportTarget {
  sink: TableSink;
  workbench: Workbench;
  /** A folder for files of its own; removed at the end. */
  scratch: string;
}
