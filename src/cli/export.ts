import { once } from 'node:events';
import { existsSync, readdirSync, statSync, lstatSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import type { TextExport } from '../export/exporter.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import { examples } from './examples.js';
import { print, notify, warn } from './output.js';
import { makeFolder } from '../model/atomic-write.js';

const textFormats: Record<string, () => Promise<TextExport>> = {
  'chrome-trace': async () => (await import('../export/chrome-trace.js')).chromeTrace,
  speedscope: async () => (await import('../export/speedscope.js')).speedscope,
  openmetrics: async () => (await import('../export/openmetrics.js')).openMetrics,
};
const jsonFormats: ReadonlySet<string> = new Set(['chrome-trace', 'speedscope']);
const folderFormats = ['csv', 'parquet'];
const formats = [...Object.keys(textFormats), ...folderFormats];
/** Other names of formats. */
const formatAliases: Record<string, string> = { perfetto: 'chrome-trace', chrome: 'chrome-trace' };
const suffixes: Record<string, string> = {
  'chrome-trace': '.trace.json',
  speedscope: '.speedscope.json',
  openmetrics: '.metrics.txt',
  csv: '-csv',
  parquet: '-parquet',
};

export function define(command: Command): void {
  command
    .argument('[session]', 'id prefix, name, @last or @last~1')
    .option('-s, --session <selector>', 'same as the argument', '@last')
    .option('--format <format>', `${formats.join(', ')}; perfetto is chrome-trace`, 'chrome-trace')
    .option(
      '-o, --output <path>',
      'file; for csv and parquet a new or empty folder (default: <session>.trace.json or similar, or stdout if it is not a terminal)',
    )
    .option('--execution <id>', 'export only this execution of the session')
    .addHelpText(
      'after',
      examples(
        ['inferscope export @last', 'write a trace of the newest session, to open at ui.perfetto.dev'],
        ['inferscope export --session llama-b1 --format csv --output tables/', 'write one file per table'],
      ),
    )
    .action(exportCommand);
}

interface ExportOptions {
  session: string;
  format: string;
  output?: string;
  execution?: string;
}

async function exportCommand(selector: string | undefined, options: ExportOptions): Promise<void> {
  const format = formatAliases[options.format] ?? options.format;
  if (!formats.includes(format)) throw unknownFormat(format);
  const isFolder = folderFormats.includes(format);
  const { openSession } = await import('../session/open.js');
  const opened = await openSession(selector ?? options.session);
  const defaultName = `${opened.user.name ?? opened.id}${suffixes[format]}`;
  const path = options.output ?? (isFolder || process.stdout.isTTY ? defaultName : null);
  const target = path === null ? null : resolve(path);
  if (isFolder) checkNewFolder(target!, format);
  else if (target !== null) checkFile(target, format);
  if (options.execution !== undefined) requireExecution(opened, options.execution, format);
  const { withExecution, restrictToExecution } = await import('../export/one-execution.js');
  const session = options.execution === undefined ? opened : withExecution(opened, options.execution);
  const database = await session.connect();
  try {
    if (options.execution !== undefined) await restrictToExecution(database, options.execution);
    if (isFolder) await writeFolder(session, database, format, target!);
    else await writeText(session, database, format, target);
  } finally {
    await database.close();
  }
  if (target === null) return;
  notify(
    `${format} of ${session.id} written${format === 'chrome-trace' ? ': open it at ui.perfetto.dev' : ''}`,
  );
  print(target);
}

async function writeText(
  session: Session,
  database: SessionDatabase,
  format: string,
  target: string | null,
): Promise<void> {
  await requireRows(database, format, session.id);
  const { inChunks } = await import('../export/exporter.js');
  const { safeJson } = await import('../render/safe-text.js');
  const chunks = inChunks((await textFormats[format]!())(session, database, warn));
  const text = jsonFormats.has(format) ? mapChunks(chunks, safeJson) : chunks;
  if (target === null) await writeToStdout(text);
  else await writeToFile(text, target);
}

function unknownFormat(format: string): InferscopeError {
  return usage(
    `--format ${format} is not one of the formats`,
    `It is one of: ${formats.join(', ')}, perfetto.`,
    'inferscope export --format perfetto --output trace.json',
  );
}

function requireExecution({ id, manifest }: Session, execution: string, format: string): void {
  const ids = manifest.executions.map(({ execution_id }) => execution_id);
  if (!ids.includes(execution))
    throw usage(
      `session ${id} has no execution ${execution}`,
      `Executions: ${ids.join(', ')}.`,
      `inferscope export ${id} --execution ${ids[0] ?? ''}`,
    );
  if (format === 'parquet')
    throw usage(
      '--execution does not work with parquet',
      "parquet copies the session's files, which contain all executions.",
      `inferscope export ${id} --format csv --execution ${execution}`,
    );
}

function checkNewFolder(folder: string, format: string): void {
  const fix = `inferscope export --format ${format} --output tables/`;
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory())
    throw usage(`--output ${folder} is a file`, `${format} writes one file per table.`, fix);
  if (readdirSync(folder).length > 0) {
    throw usage(
      `--output ${folder} is not empty`,
      'Files of another export would mix with those of this session.',
      'Choose a new or empty folder.',
    );
  }
}

function checkFile(path: string, format: string): void {
  if (!existsSync(path) || !statSync(path).isDirectory()) return;
  throw usage(
    `--output ${path} is a folder`,
    `${format} writes one file.`,
    `Type for example: --output ${join(path, format === 'openmetrics' ? 'metrics.txt' : 'trace.json')}`,
  );
}

function usage(what: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix });
}

/** An empty file would look like a bug of the viewer. */
async function requireRows(database: SessionDatabase, format: string, id: string): Promise<void> {
  const { tablesWithRows } = await import('../export/csv.js');
  const tableNames = await tablesWithRows(database);
  const needed: Record<string, string[]> = {
    'chrome-trace': ['stages', 'ops', 'gaps', 'api_calls', 'kernels', 'copies', 'telemetry', 'memory'],
    speedscope: ['stages', 'ops', 'kernels', 'copies'],
    openmetrics: [
      'iterations',
      'requests',
      'metrics',
      'stages',
      'ops',
      'gaps',
      'kernels',
      'copies',
      'memory',
    ],
  };
  const tables = needed[format];
  if (!tables || tableNames.some((table) => tables.includes(table))) return;
  throw usage(
    `session ${id} has no rows that ${format} can show`,
    `It needs one of the tables ${tables.join(', ')}; the session has ${tableNames.join(', ') || 'no rows at all'}.`,
    `Choose another session (inferscope session list), or --format csv.`,
  );
}

async function* mapChunks(
  text: AsyncIterable<string>,
  map: (chunk: string) => string,
): AsyncGenerator<string> {
  for await (const chunk of text) yield map(chunk);
}

async function writeToStdout(text: AsyncIterable<string>): Promise<void> {
  for await (const chunk of text) {
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
  }
}

/** Writes a file atomically; writes to a named pipe, a device or a link directly. */
async function writeToFile(text: AsyncIterable<string>, path: string): Promise<void> {
  const special = lstatSync(path, { throwIfNoEntry: false })?.isFile() === false;
  const temporary = special ? path : `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    makeFolder(dirname(path));
    await writeChunks(text, temporary);
    if (!special) await rename(temporary, path);
  } catch (error) {
    if (!special) await rm(temporary, { force: true }).catch(() => {});
    throw await asFailure(error, path);
  }
}

/** Writes a folder atomically. */
async function writeFolder(
  session: Session,
  database: SessionDatabase,
  format: string,
  folder: string,
): Promise<void> {
  const temporary = `${folder}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    makeFolder(temporary);
    if (format === 'csv') await writeCsv(database, temporary);
    else await (await import('../export/parquet.js')).copyTables(session, temporary);
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
    throw await asFailure(error, folder);
  }
}

async function writeCsv(database: SessionDatabase, folder: string): Promise<void> {
  const { tableCsv, tablesWithRows } = await import('../export/csv.js');
  const { inChunks } = await import('../export/exporter.js');
  for (const table of await tablesWithRows(database)) {
    await writeChunks(inChunks(tableCsv(database, table)), join(folder, `${table}.csv`));
  }
}

async function writeChunks(text: AsyncIterable<string>, path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    for await (const chunk of text) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}

async function asFailure(error: unknown, path: string): Promise<unknown> {
  const { asStorageFailure } = await import('../vocabulary/storage-failure.js');
  return asStorageFailure(error, { path, doing: 'write the export' });
}
