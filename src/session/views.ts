import type { DuckDBConnection } from '@duckdb/node-api';
import { tableNames, tables, type TableName } from '../model/tables.js';
import { restrictTo, quote } from './database.js';

/** The Parquet files of a session, as plain data that can be sent to another process. */
export interface SessionTables {
  id: string;
  /** Absolute paths of the Parquet files of each table. */
  files: Record<string, string[]>;
  /** Classes that the user gave to kernels without a known one, by short name. */
  kernelClasses?: Record<string, string>;
  /** If set, each host name is replaced by its salted hash, so that rows of one host still join. */
  hostSalt?: string;
}

/**
 * Sessions with at most this many rows are read into memory, which takes some megabytes. A query over a view opens the file, reads its
 * schema and decodes its pages each time, which is most of the cost of an analysis of a small session.
 */
const inMemoryRows = 20_000;

/** Whether tables with this many rows in total are read into memory. */
export const isReadIntoMemory = (rows: number): boolean => rows <= inMemoryRows;

/**
 * Creates a typed view for every table of the schema: missing tables are empty, columns missing in the files are null, and columns of a
 * newer inferscope are left out. Afterwards the connection can read only these files.
 * @param options `withSessionId` adds a session_id column first; `rows` of all tables: few are read into memory
 */
export async function createViews(
  connection: DuckDBConnection,
  sessions: SessionTables[],
  options: { withSessionId: boolean; rows?: number },
): Promise<void> {
  await createOpenViews(connection, sessions, options);
  await restrictTo(
    connection,
    sessions.flatMap((session) => tableNames.flatMap((table) => session.files[table] ?? [])),
  );
}

/** Creates the same views for our own statements, which write files. */
export async function createOpenViews(
  connection: DuckDBConnection,
  sessions: SessionTables[],
  { withSessionId, rows = Number.POSITIVE_INFINITY }: { withSessionId: boolean; rows?: number },
): Promise<void> {
  const inMemory = isReadIntoMemory(rows);
  const statements: string[] = [];
  for (const table of tableNames) {
    const parts: string[] = [];
    for (const session of sessions) {
      const files = session.files[table] ?? [];
      if (files.length > 0)
        parts.push(await selectFiles(connection, table, session, files, { withSessionId, inMemory }));
    }
    if (parts.length === 0 && inMemory)
      statements.push(`CREATE TABLE "${table}" (${emptyColumns(table, withSessionId)})`);
    else {
      if (parts.length === 0) parts.push(emptySelect(table, withSessionId));
      statements.push(`CREATE ${inMemory ? 'TABLE' : 'VIEW'} "${table}" AS ${parts.join(' UNION ALL ')}`);
    }
  }
  // One call for all: one statement at a time takes 1.5x as long.
  await connection.run(statements.join(';\n'));
}

async function selectFiles(
  connection: DuckDBConnection,
  table: TableName,
  { id, hostSalt, kernelClasses }: SessionTables,
  files: string[],
  { withSessionId, inMemory }: { withSessionId: boolean; inMemory: boolean },
): Promise<string> {
  const { oneSchema, byCapture } = await readCommonProperties(connection, inMemory ? [] : files);
  const options = [
    ...(files.length > 1 && !oneSchema ? [', union_by_name = true'] : []),
    ...(byCapture ? [', filename = true'] : []),
  ];
  const source = `read_parquet([${files.map(quote).join(', ')}]${options.join('')})`;
  const description = await connection.runAndReadAll(`DESCRIBE SELECT * FROM ${source}`);
  const typeByColumn = new Map(description.getRowsJson().map((row) => [String(row[0]), String(row[1])]));
  const constants = inMemory ? new Map<string, string>() : await readConstantColumns(connection, files);
  const columns = Object.entries(tables[table].columns).map(([name, { type }]) => {
    if (!typeByColumn.has(name)) return `CAST(NULL AS ${type}) AS "${name}"`;
    if (name === 'capture_id' && byCapture) return 'parse_filename(filename, true) AS capture_id';
    if (table === 'kernels' && name === 'class' && kernelClasses) return givenClassSql(kernelClasses);
    const constant = constants.get(name);
    if (constant !== undefined && (name !== 'host' || constant === 'NULL'))
      return `CAST(${constant} AS ${type}) AS "${name}"`;
    if (name === 'host' && hostSalt !== undefined)
      return `'host-' || substr(md5(host || ${quote(hostSalt)}), 1, 6) AS host`;
    // A cast, even to the same type, would prevent filter pushdown.
    return typeByColumn.get(name) === type ? `"${name}"` : `CAST("${name}" AS ${type}) AS "${name}"`;
  });
  if (withSessionId) columns.unshift(`${quote(id)} AS session_id`);
  return `SELECT ${columns.join(', ')} FROM ${source}`;
}

function givenClassSql(classes: Record<string, string>): string {
  const cases = Object.entries(classes).map(
    ([kernel, className]) => `WHEN ${quote(kernel)} THEN ${quote(className)}`,
  );
  return `CASE WHEN class <> 'other' THEN class ELSE CASE coalesce(short_name, name) ${cases.join(' ')} ELSE class END END AS class`;
}

/**
 * Schema and captures of the files of one table. In a job each rank has its own file, named after its capture. With one schema for all
 * files a statement need not open them to learn the columns, and a filter on the capture skips the others by name. Opening a file takes
 * DuckDB a third of a millisecond, and an explanation has 700 statements.
 */
async function readCommonProperties(
  connection: DuckDBConnection,
  files: readonly string[],
): Promise<{ oneSchema: boolean; byCapture: boolean }> {
  if (files.length < 2) return { oneSchema: false, byCapture: false };
  const list = `[${files.map(quote).join(', ')}]`;
  const rows = await connection.runAndReadAll(
    `SELECT (SELECT count(DISTINCT columns) = 1 FROM (
         SELECT string_agg(concat_ws(' ', name, type, converted_type, logical_type), ',' ORDER BY name) AS columns
         FROM parquet_schema(${list}) GROUP BY file_name)),
       (SELECT count(DISTINCT file_name) = ${files.length} AND bool_and(stats_null_count = 0
           AND stats_min_value = parse_filename(file_name, true) AND stats_max_value = stats_min_value
           AND coalesce(min_is_exact, true) AND coalesce(max_is_exact, true))
         FROM parquet_metadata(${list}) WHERE path_in_schema = 'capture_id')`,
  );
  const [[oneSchema, byCapture] = []] = rows.getRows();
  return { oneSchema: oneSchema === true, byCapture: byCapture === true };
}

/**
 * Columns with one value in every row, or null in all, by the files' statistics: SQL literal by name. As a constant in the view it makes a
 * filter or a grouping by it free; with millions of rows that is a third of a statement's time, since execution, capture, rank and device
 * are constant.
 */
async function readConstantColumns(
  connection: DuckDBConnection,
  files: readonly string[],
): Promise<Map<string, string>> {
  const rows = await connection.runAndReadAll(
    `SELECT path_in_schema, CASE WHEN bool_and(stats_null_count = num_values) THEN NULL ELSE min(stats_min_value) END
     FROM parquet_metadata([${files.map(quote).join(', ')}])
     GROUP BY path_in_schema
     HAVING bool_and(stats_null_count = num_values)
       OR (bool_and(stats_null_count = 0) AND bool_and(stats_min_value = stats_max_value) AND count(stats_min_value) = count(*)
         AND count(DISTINCT stats_min_value) = 1 AND bool_and(coalesce(min_is_exact, true) AND coalesce(max_is_exact, true)))`,
  );
  return new Map(
    rows.getRowsJson().map(([name, value]) => [String(name), value === null ? 'NULL' : quote(String(value))]),
  );
}

/** Columns of an empty table: a definition takes half the time of a query without rows. */
function emptyColumns(table: TableName, withSessionId: boolean): string {
  const columns = Object.entries(tables[table].columns).map(([name, { type }]) => `"${name}" ${type}`);
  if (withSessionId) columns.unshift('session_id VARCHAR');
  return columns.join(', ');
}

function emptySelect(table: TableName, withSessionId: boolean): string {
  const columns = Object.entries(tables[table].columns).map(
    ([name, { type }]) => `CAST(NULL AS ${type}) AS "${name}"`,
  );
  if (withSessionId) columns.unshift('CAST(NULL AS VARCHAR) AS session_id');
  return `SELECT ${columns.join(', ')} WHERE false`;
}
