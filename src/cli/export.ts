import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
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
import { print, talk, warn } from './output.js';

const textFormats: Record<string, () => Promise<TextExport>> = {
  'chrome-trace': async () => (await import('../export/chrome-trace.js')).chromeTrace,
  speedscope: async () => (await import('../export/speedscope.js')).speedscope,
  openmetrics: async () => (await import('../export/openmetrics.js')).openMetrics,
};
const folderFormats = ['csv', 'parquet'];
const formats = [...Object.keys(textFormats), ...folderFormats];

export function define(command: Command): void {
  command
    .argument('[session]', 'id or its unique beginning, name, @last, @last~1')
    .option('-s, --session <selector>', 'the same', '@last')
    .option('--format <format>', formats.join(', '))
    .option(
      '-o, --output <path>',
      'write it there instead of stdout; csv and parquet need a new or empty folder',
    )
    .addHelpText(
      'after',
      examples(
        ['inferscope export --format chrome-trace --output trace.json', 'open it at ui.perfetto.dev'],
        ['inferscope export --session llama-b1 --format csv --output tables/', 'one file a table'],
      ),
    )
    .action(
      async (
        selector: string | undefined,
        options: { session: string; format?: string; output?: string },
      ) => {
        const { format, output } = options;
        if (format === undefined || !formats.includes(format)) throw badFormat(format);
        const target = output === undefined ? null : resolve(output);
        if (folderFormats.includes(format)) checkNewFolder(target, format);
        else if (target !== null) checkFile(target, format);
        const { openSession } = await import('../session/open.js');
        const session = await openSession(selector ?? options.session);
        const database = await session.connect();
        try {
          if (folderFormats.includes(format)) await writeFolder(session, database, format, target!);
          else {
            await requireRows(database, format, session.id);
            const { inChunks } = await import('../export/exporter.js');
            const text = inChunks((await textFormats[format]!())(session, database, warn));
            if (target === null) await toStdout(text);
            else await toFile(text, target);
          }
        } finally {
          await database.close();
        }
        if (target !== null) {
          talk(`${format} of ${session.id} written`);
          print(target);
        }
      },
    );
}

function badFormat(format: string | undefined): InferscopeError {
  return usage(
    format === undefined ? 'export needs a --format' : `--format ${format} is not one of the formats`,
    `It is one of: ${formats.join(', ')}.`,
    'inferscope export --format chrome-trace --output trace.json',
  );
}

function checkNewFolder(folder: string | null, format: string): void {
  const fix = `inferscope export --format ${format} --output tables/`;
  if (folder === null)
    throw usage(
      `${format} needs --output <folder>`,
      'It is one file a table or more, which stdout cannot hold.',
      fix,
    );
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory())
    throw usage(`--output ${folder} is a file`, `${format} is one file a table or more.`, fix);
  if (readdirSync(folder).length > 0) {
    throw usage(
      `--output ${folder} is not empty`,
      'Files of another export between these would be taken for this session’s.',
      'Give a new or an empty folder.',
    );
  }
}

function checkFile(path: string, format: string): void {
  if (!existsSync(path) || !statSync(path).isDirectory()) return;
  throw usage(
    `--output ${path} is a folder`,
    `${format} is one file.`,
    `Type for example: --output ${join(path, format === 'openmetrics' ? 'metrics.txt' : 'trace.json')}`,
  );
}

function usage(what: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why, fix });
}

/** An empty timeline would look like a fault of the viewer. */
async function requireRows(database: SessionDatabase, format: string, id: string): Promise<void> {
  const { tablesWithRows } = await import('../export/csv.js');
  const found = await tablesWithRows(database);
  const needed: Record<string, string[]> = {
    'chrome-trace': ['stages', 'ops', 'gaps', 'api_calls', 'kernels', 'copies', 'telemetry', 'memory'],
    speedscope: ['stages', 'ops', 'kernels', 'copies'],
  };
  const tables = needed[format];
  if (!tables || found.some((table) => tables.includes(table))) return;
  throw usage(
    `session ${id} has nothing that ${format} can show`,
    `It needs one of ${tables.join(', ')}; the session has ${found.join(', ') || 'no rows at all'}.`,
    `Choose another session (inferscope session list), or --format csv.`,
  );
}

async function toStdout(text: AsyncIterable<string>): Promise<void> {
  for await (const chunk of text) {
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
  }
}

/** Whole or not at all; a pipe or device that the user names is written as it is. */
async function toFile(text: AsyncIterable<string>, path: string): Promise<void> {
  const special = existsSync(path) && !statSync(path).isFile();
  const temporary = special ? path : `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    (await import('../session/home.js')).makeFolder(dirname(path));
    await writeChunks(text, temporary);
    if (!special) await rename(temporary, path);
  } catch (error) {
    if (!special) await rm(temporary, { force: true }).catch(() => {});
    throw await asFailure(error, path);
  }
}

/** Whole or not at all. */
async function writeFolder(
  session: Session,
  database: SessionDatabase,
  format: string,
  folder: string,
): Promise<void> {
  const temporary = `${folder}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    (await import('../session/home.js')).makeFolder(temporary);
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
  const { asStorageFailure } = await import('../session/storage-failure.js');
  return asStorageFailure(error, { path, doing: 'write the export' });
}
