import type { Command } from 'commander';
import { resolve } from 'node:path';
import process from 'node:process';
import { document } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { ScopeOptions } from '../facts/trace/scope.js';
import { childEntry } from '../model/installation.js';
import { nearest, nearestNames } from '../model/nearest.js';
import type { Session } from '../session/open.js';
import type { SqlResult } from '../session/sql-run.js';
import { durationParser } from './durations.js';
import { examples } from './examples.js';
import { byteSizeParser, wholeNumberParser } from './numbers.js';
import { print, printData, printDocument, notify, terminalWidth } from './output.js';

interface SqlOptions {
  session?: string[];
  format: 'table' | 'csv' | 'json';
  json?: boolean;
  /** ms */
  timeout?: number;
  maxRows: number;
  memoryLimit?: number;
  schema?: string | true;
  from?: string;
  loadExtension?: string;
  rank?: number;
  device?: number;
}

export function define(command: Command): void {
  command
    .argument('[session]', 'id prefix, name, @last or @last~1 (default: the newest)')
    .argument('[query]', 'one SELECT statement; the first column of every table is session_id')
    .option('-s, --session <session>', 'same as the argument; repeatable', parseSelectors)
    .option('--from <url>', 'read one session in place: s3://bucket/prefix/SESSION, with --load-extension')
    .option('--load-extension <file>', "DuckDB's httpfs, installed by you")
    .option('--format <format>', 'table, csv or json', parseFormat, 'table')
    .option('--json', 'same as --format json')
    .option(
      '--timeout <duration>',
      'stop the query after this time (default: 30s)',
      durationParser('--timeout', { example: '60s' }),
    )
    .option(
      '--max-rows <n>',
      'limit the result to this many rows',
      wholeNumberParser('--max-rows', { min: 1, max: 1e9, example: 1000 }),
      100_000,
    )
    .option(
      '--memory-limit <size>',
      'memory of DuckDB before it spills to disk (default: 1GiB)',
      parseMemoryLimit,
    )
    .option(
      '--rank <n>',
      'rank for derived tables (default: the slowest)',
      wholeNumberParser('--rank', { min: 0, example: 0 }),
    )
    .option(
      '--device <n>',
      'device for derived tables',
      wholeNumberParser('--device', { min: 0, example: 0 }),
    )
    .option('--schema [table]', 'print all tables with their columns, or one table')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope sql llm-b1 "SELECT class, sum(dur_ns) FROM ops GROUP BY ALL"',
          'ns per operator class in one session',
        ],
        [
          'inferscope sql "SELECT kind, avg(end_ns - start_ns) FROM windows GROUP BY 1"',
          'query a derived table: measured time of every step, as in explain',
        ],
      ),
    )
    .action(async (first: string | undefined, second: string | undefined, options: SqlOptions) => {
      const outputFormat = options.json ? 'json' : options.format;
      if (options.schema !== undefined) {
        await printSchema(options.schema === true ? first : options.schema, outputFormat);
        return;
      }
      // One argument is the query; with two the first is the session.
      const [selectors, query] =
        second === undefined
          ? [options.session ?? [], first]
          : [[first!, ...(options.session ?? [])], second];
      await runQuery(query, { ...options, session: selectors }, outputFormat);
    });
}

async function runQuery(
  query: string | undefined,
  options: SqlOptions,
  outputFormat: SqlOptions['format'],
): Promise<void> {
  // A single word is a session, because a query has several words.
  if (query === undefined || /^[@~\w.-]*$/.test(query.trim())) {
    const word = query?.trim() ?? '';
    throw usage(
      word === '' ? 'sql needs a query' : `sql needs a query; "${word}" is one word`,
      'inferscope sql "SELECT * FROM stages LIMIT 5", or inferscope sql --schema',
    );
  }
  if (options.from !== undefined || options.loadExtension !== undefined) {
    await runRemote(query, options, outputFormat);
    return;
  }
  const { openSession, sessionTables } = await import('../session/open.js');
  const { runSql } = await import('../session/sql-run.js');
  const { derivedOf } = await import('../facts/derived/queries.js');
  const sessions = new Map<string, Session>();
  const chosenSessions = options.session ?? [];
  for (const selector of chosenSessions.length > 0 ? chosenSessions : ['@last']) {
    const session = await openSession(selector);
    sessions.set(session.id, session);
  }
  const opened = [...sessions.values()];
  const result = await runSql(
    childEntry('sql-child'),
    opened.map(sessionTables),
    query,
    limitsOf(options),
    derivedOf(opened, scopeOf(options)),
  );
  await show([...sessions.keys()], result, options, outputFormat);
}

const limitsOf = ({ timeout = 30_000, maxRows, memoryLimit }: SqlOptions) => ({
  timeoutS: timeout / 1000,
  maxRows,
  memoryLimitBytes: memoryLimit ?? 2 ** 30,
});

/** Queries a session in S3: its recorded tables and those derived of collectives. */
async function runRemote(
  query: string,
  options: SqlOptions,
  outputFormat: SqlOptions['format'],
): Promise<void> {
  const { from, loadExtension } = options;
  const url = from?.replace(/\/+$/, '');
  if (
    url === undefined ||
    loadExtension === undefined ||
    !/^s3:\/\/[^/]+\/.+/.test(url) ||
    options.session!.length > 0 ||
    options.rank !== undefined ||
    options.device !== undefined
  )
    throw usage(
      'sql --from needs one session in S3 and --load-extension, without --session, --rank and --device',
      'inferscope sql --from s3://bucket/sessions/ID --load-extension httpfs.duckdb_extension "SELECT count(*) FROM kernels"',
    );
  const { runSql } = await import('../session/sql-run.js');
  const { s3Access } = await import('../session/remote.js');
  const { derivedOfRemote } = await import('../facts/derived/queries.js');
  const remote = { url, extension: resolve(loadExtension), access: s3Access(process.env) };
  const result = await runSql(
    childEntry('sql-child'),
    remote,
    query,
    limitsOf(options),
    derivedOfRemote(url),
  );
  await show([url], result, options, outputFormat);
}

async function show(
  sessions: readonly string[],
  result: SqlResult,
  options: SqlOptions,
  outputFormat: SqlOptions['format'],
): Promise<void> {
  if (outputFormat === 'json') {
    printDocument(document('sql', '1.0', { sessions: [...sessions], ...result }));
  } else {
    const { csvText } = await import('../export/csv.js');
    const { tableText } = await import('./sql-text.js');
    if (outputFormat === 'csv') printData(csvText(result));
    else print(tableText(result, terminalWidth()));
  }
  // A table says itself that it has no rows.
  if (result.rows.length === 0)
    notify(`${outputFormat === 'table' ? 'queried' : 'no rows in'} ${sessions.join(', ')}`);
  if (result.truncated) notify(`limited to ${options.maxRows} rows (--max-rows)`);
}

const scopeOf = ({ rank, device }: SqlOptions): ScopeOptions => ({
  ...(rank === undefined ? {} : { rank }),
  ...(device === undefined ? {} : { device }),
});

async function isSession(word: string): Promise<boolean> {
  const { selectSession } = await import('../session/select.js');
  const { homeFolders } = await import('../session/home.js');
  try {
    selectSession(word, homeFolders());
    return true;
  } catch (error) {
    if (error instanceof InferscopeError) return false;
    throw error;
  }
}

async function printSchema(table: string | undefined, outputFormat: SqlOptions['format']): Promise<void> {
  const { describedTables } = await import('../session/table-schema.js');
  const all = describedTables();
  // A session before --schema is not a table: all sessions have the same tables.
  const isTable = (word: string) => all.some(({ name }) => name === word);
  const tables =
    table === undefined || (!isTable(table) && (await isSession(table)))
      ? all
      : all.filter(({ name }) => name === table);
  if (tables.length === 0) {
    const names = all.map(({ name }) => name);
    const suggestion = nearest(table ?? '', names);
    throw new InferscopeError('E_USAGE', {
      what: `unknown table "${table}"`,
      why:
        suggestion === null
          ? `All sessions have the same ${names.length} tables: ${nearestNames(names, table ?? '')}.`
          : `Did you mean ${suggestion}?`,
      fix:
        suggestion === null ? 'inferscope sql --schema lists all.' : `inferscope sql --schema ${suggestion}`,
    });
  }
  const { csvText } = await import('../export/csv.js');
  const { schemaText } = await import('./sql-text.js');
  if (outputFormat === 'json') printDocument(document('sql-schema', '1.1', { tables }));
  else if (outputFormat === 'table') print(schemaText(tables, terminalWidth()));
  else {
    const columns = ['table', 'column', 'type', 'meaning'].map((name) => ({ name, type: 'VARCHAR' }));
    const rows = tables.flatMap((table) =>
      table.columns.map(({ name, type, doc }) => [table.name, name, type, doc]),
    );
    printData(csvText({ columns, rows, truncated: false }));
  }
}

function parseSelectors(value: string, previous: string[] = []): string[] {
  return [...previous, ...value.split(',').filter((part) => part !== '')];
}

function parseFormat(text: string): SqlOptions['format'] {
  if (text === 'table' || text === 'csv' || text === 'json') return text;
  throw usage(`--format takes table, csv or json, not "${text}"`, 'inferscope sql --format csv "SELECT …"');
}

function parseMemoryLimit(text: string): number {
  const bytes = byteSizeParser('--memory-limit')(text);
  if (bytes >= 32 * 2 ** 20) return bytes;
  throw usage(
    `--memory-limit takes a size of at least 32MiB, not "${text}"`,
    'inferscope sql --memory-limit 4GiB "SELECT …"',
  );
}

function usage(what: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why: 'inferscope sql --help shows every option.', fix });
}
