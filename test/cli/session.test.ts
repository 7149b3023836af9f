import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, expect, test } from 'vitest';
import type { z } from 'zod';
import {
  sessionDeleteDocumentSchema,
  sessionExportDocumentSchema,
  sessionImportDocumentSchema,
  sessionListDocumentSchema,
  sessionShowDocumentSchema,
  sessionUserDocumentSchema,
  sessionVerifyDocumentSchema,
} from '../../src/model/documents/session.js';
import { homeFolders, type Home } from '../../src/session/home.js';
import { digestOf } from '../../src/session/digest.js';
import { testFolder } from '../../src/session/test-folder.js';
import { saveSession } from '../../src/session/test-session.js';
import { cli } from './run-cli.js';

const scratch = testFolder();
let home: Home;
let ids: string[];

beforeAll(async () => {
  home = homeFolders({ INFERSCOPE_HOME: join(scratch, 'home') });
  ids = [];
  for (const day of [1, 2, 3]) {
    const saved = await saveSession(home, {
      createdAt: new Date(Date.UTC(2026, 10, day)),
      label: `run ${day}`,
    });
    ids.push(saved.id);
  }
});

function runSession(args: string[], root: string = home.root) {
  const inherited = { ...process.env };
  delete inherited['FORCE_COLOR'];
  return spawnSync(process.execPath, [cli, 'session', ...args], {
    encoding: 'utf8',
    cwd: scratch,
    env: { ...inherited, INFERSCOPE_HOME: root },
  });
}

/** Runs with --json: stdout must be one document of the published schema and stderr empty. */
function runJson<T extends z.ZodType>(schema: T, args: string[], root?: string): z.infer<T> {
  const { status, stdout, stderr } = runSession([...args, '--json'], root);
  expect([status, stderr]).toEqual([0, '']);
  return schema.parse(JSON.parse(stdout));
}

const subcommands = ['list', 'show', 'rename', 'tag', 'note', 'delete', 'export', 'import', 'verify'];

test.each(subcommands)('session %s --help has two examples and fits 80 columns', (verb) => {
  const { status, stdout } = runSession([verb, '--help']);
  expect(status).toBe(0);
  expect(stdout.match(/^ {2}\$ inferscope session /gm)).toHaveLength(2);
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('list prints the newest last, in 80 columns, without color in a pipe', () => {
  const { stdout } = runSession(['list']);
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(/^ *SESSION +SIZE +HEADLINE · TITLE$/);
  expect(lines.slice(1).map((line) => line.trim().split(' ')[0])).toEqual(ids);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  expect(stdout).not.toContain('\u001B[');
  const { data } = runJson(sessionListDocumentSchema, ['list', '--limit', '2']);
  expect(data.sessions.map(({ id }) => id)).toEqual(ids.slice(1));
});

test('rename, tag, note, show and list agree', () => {
  const [first = ''] = ids;
  expect(runJson(sessionUserDocumentSchema, ['rename', first, 'base']).data).toMatchObject({
    id: first,
    user: { name: 'base' },
  });
  runJson(sessionUserDocumentSchema, ['tag', 'base', 'h100', 'a']);
  runJson(sessionUserDocumentSchema, ['tag', 'base', 'a', '--remove']);
  runJson(sessionUserDocumentSchema, ['note', 'base', 'fans', 'at', 'full speed']);
  const { data } = runJson(sessionShowDocumentSchema, ['show', 'base']);
  expect(data.user).toMatchObject({ name: 'base', tags: ['h100'], notes: [{ text: 'fans at full speed' }] });
  expect(data.manifest.id).toBe(first);
  expect(runJson(sessionListDocumentSchema, ['list', '--tag', 'h100']).data.sessions).toMatchObject([
    { id: first, name: 'base' },
  ]);

  const { stdout } = runSession(['show', 'base']);
  for (const text of [
    first,
    'base',
    'h100',
    'fans at full speed',
    'onnxruntime 1.30.0',
    'ops',
    'record.jsonl',
  ]) {
    expect(stdout).toContain(text);
  }
  // The folder's path is one word, so it may be longer than the terminal is wide.
  for (const line of stdout.split('\n'))
    if (!line.includes(home.root)) expect(line.length).toBeLessThanOrEqual(80);
});

test('usage errors exit with 2, and have three parts on stderr, and with --json an error document on stdout', () => {
  const cases: [string[], string][] = [
    [['show', 'nothing-like-it'], 'E_SESSION_NOT_FOUND'],
    [['show', '202611'], 'E_SESSION_AMBIGUOUS'],
    [['rename', '@last', 'base'], 'E_SESSION_NAME'],
    [['rename', '@last'], 'E_USAGE'],
    [['list', '--limit', 'few'], 'E_USAGE'],
    [['list', '--unknown-flag'], 'E_USAGE'],
    [['delete', '@last'], 'E_USAGE'],
  ];
  for (const [args, code] of cases) {
    const { status, stdout, stderr } = runSession([...args, '--json']);
    expect([args, status]).toEqual([args, 2]);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'inferscope/error/1.0',
      data: { code, exit_code: 2 },
    });
    expect(stderr.trimEnd().split('\n').length).toBeGreaterThanOrEqual(3);
    expect(stderr).toContain(code);
  }
  expect(runJson(sessionListDocumentSchema, ['list']).data.sessions).toHaveLength(3);
});

test('an exported session can be imported into another home; a second import has no effect, and a truncated archive saves nothing', () => {
  const exported = runJson(sessionExportDocumentSchema, ['export', 'base']).data;
  expect(exported.path).toBe(join(scratch, `${ids[0]}.inferscope.tar.gz`));
  expect(digestOf(readFileSync(exported.path))).toEqual({ bytes: exported.bytes, sha256: exported.sha256 });
  const otherHome = join(scratch, 'other');
  const imported = runJson(sessionImportDocumentSchema, ['import', exported.path], otherHome).data;
  expect(imported).toEqual({ id: ids[0], outcome: 'imported', dropped_name: null });
  expect(runJson(sessionImportDocumentSchema, ['import', exported.path], otherHome).data.outcome).toBe(
    'already_here',
  );
  expect(runJson(sessionShowDocumentSchema, ['show', 'base'], otherHome).data.user.tags).toEqual(['h100']);

  truncateSync(exported.path, Math.floor(exported.bytes / 2));
  const third = join(scratch, 'third');
  const cut = runSession(['import', exported.path], third);
  expect(cut.status).toBe(5);
  expect(cut.stderr).toContain('E_SESSION_ARCHIVE');
  expect(runJson(sessionListDocumentSchema, ['list'], third).data.sessions).toEqual([]);
});

test('an archive with valid checksums but a damaged Parquet page is rejected, and nothing is saved', () => {
  const root = join(scratch, 'damaged');
  cpSync(home.root, root, { recursive: true });
  const folder = join(root, 'sessions', ids[0]!);
  const manifestPath = join(folder, 'session.json');
  const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as {
    data: { tables: Record<string, { path: string; bytes: number; sha256: string }[]> };
  };
  const table = Object.values(manifest.data.tables).flat()[0]!;
  const bytes = readFileSync(join(folder, table.path));
  // Damages the pages after the magic number, not the footer.
  bytes.fill(0xff, 4, bytes.length - bytes.readUInt32LE(bytes.length - 8) - 8);
  writeFileSync(join(folder, table.path), bytes);
  table.sha256 = digestOf(bytes).sha256;
  writeFileSync(manifestPath, JSON.stringify(manifest));
  writeFileSync(`${manifestPath}.sha256`, `${digestOf(readFileSync(manifestPath)).sha256}  session.json\n`);
  const archive = join(scratch, 'damaged.tar.gz');
  expect(runSession(['export', ids[0]!, '--output', archive], root).status).toBe(0);
  const otherHome = join(scratch, 'other-home');
  const { status, stderr } = runSession(['import', archive], otherHome);
  expect([status, stderr.includes('(E_SESSION_ARCHIVE)')], stderr).toEqual([5, true]);
  expect(readdirSync(join(otherHome, 'sessions'))).toEqual([]);
});

test('verify reports every damaged, missing and unknown file, and exits with 5; delete removes a broken session', () => {
  expect(runJson(sessionVerifyDocumentSchema, ['verify', '--all']).data.sessions.map(({ ok }) => ok)).toEqual(
    [true, true, true],
  );
  const folder = join(home.sessions, ids[2] ?? '');
  const table = join(folder, 'tables/ops/c0.parquet');
  const bytes = readFileSync(table);
  bytes[100] = (bytes[100] ?? 0) ^ 1;
  writeFileSync(table, bytes);
  rmSync(join(folder, 'artifacts/c0/record.jsonl'));
  writeFileSync(join(folder, 'stray'), '');

  const text = runSession(['verify', ids[2] ?? '']);
  expect(text.status).toBe(5);
  expect(text.stderr).toContain('E_SESSION_CORRUPT');
  for (const line of [
    /damaged +tables\/ops\/c0\.parquet/,
    /missing +artifacts\/c0\/record\.jsonl/,
    /unknown +stray/,
  ]) {
    expect(text.stdout).toMatch(line);
  }
  const document = sessionVerifyDocumentSchema.parse(
    JSON.parse(runSession(['verify', ids[2] ?? '', '--json']).stdout),
  );
  expect(document.issues).toMatchObject([{ code: 'E_SESSION_CORRUPT', severity: 'error', count: 3 }]);

  expect(runSession(['show', ids[2] ?? '']).status).toBe(5);
  expect(runSession(['list']).stdout).toContain('broken E_SESSION_CORRUPT');
  expect(runJson(sessionDeleteDocumentSchema, ['delete', '@last', '--yes']).data.deleted).toEqual([ids[2]]);
  expect(existsSync(folder)).toBe(false);
  expect(runJson(sessionVerifyDocumentSchema, ['verify', '--all']).data.sessions).toHaveLength(2);
});

test('a session of a newer version gives E_SESSION_NEWER, and list still prints the others', () => {
  const root = join(scratch, 'newer');
  const folder = join(root, 'sessions', ids[0] ?? '');
  cpSync(home.sessions, join(root, 'sessions'), { recursive: true });
  const text = readFileSync(join(folder, 'session.json'), 'utf8').replace(
    'inferscope/session/1.1',
    'inferscope/session/2.0',
  );
  writeFileSync(join(folder, 'session.json'), text);
  for (const args of [['show'], ['verify'], ['export', '-o', 'newer.tar.gz']]) {
    const { status, stderr } = runSession([...args, ids[0] ?? ''], root);
    expect([args, status]).toEqual([args, 5]);
    expect(stderr).toContain('E_SESSION_NEWER');
    expect(stderr).toContain('Update inferscope');
  }
  const listed = runJson(sessionListDocumentSchema, ['list'], root).data.sessions;
  for (const { id, broken } of listed)
    expect(broken?.code ?? null, id).toBe(id === ids[0] ? 'E_SESSION_NEWER' : null);
});
