import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { InferscopeError } from '../model/errors.js';
import { startError, startProcess } from '../model/process-start.js';
import { createScratchFolder } from './scratch-folder.js';
import type { DerivedTables } from './made-tables.js';
import type { RemoteSession } from './remote.js';
import type { SqlColumn, SqlDefinitions, SqlMessage, SqlRequest, SqlValue } from './sql-message.js';
import { formatBytes, formatSetting } from '../vocabulary/format.js';
import type { SessionTables } from './views.js';

interface SqlLimits {
  timeoutS: number;
  maxRows: number;
  memoryLimitBytes: number;
}

export const defaultSqlLimits: SqlLimits = { timeoutS: 30, maxRows: 100_000, memoryLimitBytes: 2 ** 30 };

/** Maximum text of a result; larger ones belong in a file. */
const maxResultBytes = 256 * 2 ** 20;

export interface SqlResult {
  columns: SqlColumn[];
  rows: SqlValue[][];
  /** True when the query has more rows than maxRows. */
  truncated: boolean;
}

/**
 * Runs one SELECT over the sessions' tables in a child process; each view starts with a session_id column.
 * @param childEntry the built sql-child.js
 * @param sessions local sessions, or one in S3
 * @param derived tables in addition to those of the sessions
 * @throws E_SQL_STATEMENT, E_SQL_QUERY, E_SQL_LIMIT (time, memory, size of the result), E_SESSION_CORRUPT, E_PROCESS_START
 */
export async function runSql(
  childEntry: string,
  sessions: SessionTables[] | RemoteSession,
  sql: string,
  limits: SqlLimits,
  derived: DerivedTables = noTables,
): Promise<SqlResult> {
  const spill = createScratchFolder();
  try {
    const request = {
      ...limits,
      sql,
      ...(Array.isArray(sessions) ? { sessions, remote: null } : { sessions: [], remote: sessions }),
      derivedNames: derived.names,
      maxBytes: maxResultBytes,
      spillFolder: spill.path,
    };
    return await runInChild(childEntry, request, derived);
  } finally {
    spill.remove();
  }
}

const noTables: DerivedTables = { names: [], make: async () => [] };

const work = 'runs the query';

async function runInChild(entry: string, request: SqlRequest, derived: DerivedTables): Promise<SqlResult> {
  // The child needs nothing from our environment, which a query could read.
  const child = await startProcess(work, entry, (mark) =>
    spawn(process.execPath, ['--max-old-space-size=1024', entry], {
      env: { PATH: process.env['PATH'] ?? '', TZ: 'UTC', ...mark },
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
  );
  let timedOut = false;
  let overBytes = 0;
  const allowedBytes = processLimitBytes(request.memoryLimitBytes);
  const watch = setInterval(() => {
    const bytes = anonymousBytes(child.pid);
    if (bytes === null || bytes <= allowedBytes) return;
    overBytes = bytes;
    child.kill('SIGKILL');
  }, watchMs);
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, request.timeoutS * 1000);
  const exit = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const stderrChunks: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => stderrChunks.push(chunk));
  // A child that exits early closes the pipe; its exit is reported below.
  child.stdin.on('error', () => {});
  const send = (message: SqlRequest | SqlDefinitions) => child.stdin.write(`${JSON.stringify(message)}\n`);
  send(request);

  try {
    const result: SqlResult = { columns: [], rows: [], truncated: false };
    let started = false;
    let finished = false;
    for await (const line of createInterface({ input: child.stdout, crlfDelay: Infinity })) {
      const message = parseMessage(line);
      // Killed in the middle of a line: the exit below gives the reason.
      if (message === null) break;
      started = true;
      if (message.type === 'needs') send(await derived.make(message.names));
      if (message.type === 'error') throw new InferscopeError(message.code, message.parts);
      if (message.type === 'columns') result.columns = message.columns;
      if (message.type === 'rows') for (const row of message.rows) result.rows.push(row as SqlValue[]);
      if (message.type === 'end') {
        if (message.cut === 'bytes') throw tooLarge();
        result.truncated = message.cut === 'rows';
        finished = true;
      }
    }
    const [exitCode, signal] = await exit;
    if (overBytes > 0) throw tooMuchMemory(`its process held ${formatBytes(overBytes)}`, request);
    if (timedOut) throw tooSlow(request.timeoutS);
    const stderr = Buffer.concat(stderrChunks).toString('utf8');
    // A process killed for its memory exits by a signal.
    if (!started && signal === null) throw startError(work, entry, { exitCode, stderr });
    if (!finished) throw endedEarly(stderr, signal);
    return result;
  } finally {
    clearInterval(watch);
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}

/** Polling interval: lists and other values outside DuckDB's limit grow by about a hundred MB in this time. */
const watchMs = 50;

/** Limit of the process: memory outside DuckDB's limit (Node, vectors, Parquet pages) is normally less than half of it plus 512 MiB. */
function processLimitBytes(memoryLimitBytes: number): number {
  return 1.5 * memoryLimitBytes + 512 * 2 ** 20;
}

/** Memory of a process that is not backed by a file. Null if it has exited, or without /proc. */
function anonymousBytes(pid: number | undefined): number | null {
  try {
    const kb = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return kb === undefined ? null : Number(kb) * 1024;
  } catch {
    return null;
  }
}

function parseMessage(line: string): SqlMessage | null {
  try {
    return JSON.parse(line) as SqlMessage;
  } catch {
    return null;
  }
}

function tooSlow(seconds: number): InferscopeError {
  return new InferscopeError('E_SQL_LIMIT', {
    what: `sql: the query was stopped after ${formatSetting(seconds, 's')}`,
    why: 'It reached its time limit.',
    fix: `Aggregate or filter more, or raise it: --timeout ${seconds * 10}s`,
  });
}

function tooMuchMemory(
  why: string,
  { memoryLimitBytes }: Pick<SqlLimits, 'memoryLimitBytes'>,
): InferscopeError {
  return new InferscopeError('E_SQL_LIMIT', {
    what: 'sql: the query exceeded its memory limit',
    why: `${why}; the limit is ${formatBytes(memoryLimitBytes)} and what Node and DuckDB need around it.`,
    fix: `Select fewer columns, aggregate before joining, or raise it: --memory-limit ${formatBytes(4 * memoryLimitBytes).replace(' ', '')}`,
  });
}

function tooLarge(): InferscopeError {
  return new InferscopeError('E_SQL_LIMIT', {
    what: `sql: the result is larger than ${formatBytes(maxResultBytes)}`,
    why: 'Larger results are not printed.',
    fix: 'Select fewer columns or rows; the Parquet files themselves are in the session folder (inferscope session show).',
  });
}

function endedEarly(stderr: string, signal: NodeJS.Signals | null): InferscopeError {
  return new InferscopeError('E_SQL_LIMIT', {
    what: `sql: the query process exited early${signal ? ` (${signal})` : ''}`,
    why:
      stderr.trim().split('\n').slice(-3).join('\n') ||
      'The system killed it, probably because of its memory use.',
    fix: 'Select fewer columns, aggregate before joining, or lower --memory-limit so that DuckDB spills earlier.',
  });
}
