import type { DuckDBConnection } from '@duckdb/node-api';
import { InferscopeError } from '../model/errors.js';

/** Table functions that only compute; all others read files or settings, or change something (enable_logging). */
const allowedTableFunctions = new Set([
  'generate_series',
  'json_each',
  'json_tree',
  'range',
  'repeat',
  'repeat_row',
  'summary',
  'unnest',
]);

/** Scalar functions with side effects, or that reveal facts of this machine. */
const refusedFunctions = new Set([
  'current_setting',
  'currval',
  'getenv',
  'nextval',
  'setseed',
  'sleep_ms',
  'write_log',
]);

/**
 * Accepts one SELECT (WITH, FROM-first, VALUES, DESCRIBE and SUMMARIZE are SELECTs in DuckDB) without side effects. Works on DuckDB's own
 * syntax tree, which exists only for SELECTs.
 * @returns names of the tables that it reads, and of its own CTEs
 * @throws E_SQL_STATEMENT, E_SQL_QUERY for text that does not parse
 */
export async function checkStatement(connection: DuckDBConnection, sql: string): Promise<Set<string>> {
  const reader = await connection.runAndReadAll('SELECT json_serialize_sql($1::VARCHAR)', [sql]);
  const tree = JSON.parse(String(reader.getRowsJson()[0]?.[0])) as SerializedSql;
  if (tree.error) {
    if (tree.error_type === 'not implemented') {
      throw notAllowed(
        'only SELECT statements are allowed',
        'Sessions are saved as measured; sql only reads them.',
      );
    }
    throw queryFailed(tree.error_message ?? 'it does not parse');
  }
  const count = tree.statements?.length ?? 0;
  if (count !== 1) throw notAllowed('give exactly one statement', `The text has ${count}.`);
  const tables = new Set<string>();
  collectTables(tree.statements, tables);
  return tables;
}

interface SerializedSql {
  error: boolean;
  error_type?: string;
  error_message?: string;
  statements?: unknown[];
}

function collectTables(node: unknown, tables: Set<string>): void {
  if (Array.isArray(node)) {
    for (const child of node) collectTables(child, tables);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const {
    type,
    class: kind,
    function: call,
    function_name: name,
    table_name: table,
  } = node as Record<string, unknown>;
  if (type === 'BASE_TABLE') tables.add(String(table).toLowerCase());
  if (type === 'TABLE_FUNCTION') {
    const functionName = String(
      (call as Record<string, unknown> | undefined)?.['function_name'],
    ).toLowerCase();
    if (!allowedTableFunctions.has(functionName)) throw refusedCall(functionName);
  }
  if (kind === 'FUNCTION' && refusedFunctions.has(String(name).toLowerCase()))
    throw refusedCall(String(name));
  for (const child of Object.values(node)) collectTables(child, tables);
}

function refusedCall(name: string): InferscopeError {
  return notAllowed(
    `${name}() is not available`,
    'Only the tables of the chosen sessions can be read, no files and no settings.',
  );
}

function notAllowed(what: string, why: string): InferscopeError {
  return new InferscopeError('E_SQL_STATEMENT', {
    what: `sql: ${what}`,
    why,
    fix: 'For example: inferscope sql "SELECT class, sum(dur_ns)/1e6 AS ms FROM ops GROUP BY class"',
  });
}

/** DuckDB's own tables, which no query may read. */
const internalSuggestion = /^Did you mean "(?:duckdb_|pg_|sqlite_|information_schema).*\n?/m;

/** DuckDB's message, which has the position and often the nearest valid name. */
export function queryFailed(fullMessage: string): InferscopeError {
  const message = fullMessage.replace(internalSuggestion, '');
  return new InferscopeError('E_SQL_QUERY', {
    what: `sql: ${message.split('\n')[0] ?? message}`,
    why: message.split('\n').slice(1).join('\n').trim() || 'DuckDB rejects the query.',
    fix: 'inferscope sql --schema lists the tables and their columns.',
  });
}
