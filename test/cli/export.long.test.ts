import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { inferscope, createSetup, tinyProfileArgs, sqlRows } from './run-cli.js';

const setup = createSetup();

/** Expects a usage error of three lines on stderr and nothing on stdout. */
function expectUsageError(...args: string[]): { what: string; why: string; fix: string } {
  const { status, stdout, stderr } = inferscope(setup, ['export', ...args]);
  const [what = '', why = '', fix = '', ...rest] = stderr.trimEnd().split('\n');
  expect([status, stdout, rest], stderr).toEqual([2, '', []]);
  expect(what).toContain('(E_USAGE)');
  for (const part of [why, fix]) expect(part).toMatch(/^ {2}\S/);
  return { what, why, fix };
}

beforeAll(() => {
  const result = inferscope(setup, tinyProfileArgs(setup));
  expect(result.status, result.stderr).toBe(0);
});

/** A number from the session's tables, read with `inferscope sql` instead of `export`. */
const queryNumber = (query: string) => Number(sqlRows(setup, '@last', query)[0]![0]);

test('chrome-trace is the same on stdout and in a file, and has every operator to the nanosecond', () => {
  const { stdout, status } = inferscope(setup, ['export', '--format', 'chrome-trace']);
  expect(status).toBe(0);
  const path = join(setup.scratch, 'deep', 'trace.json');
  const result = inferscope(setup, ['export', '--format', 'chrome-trace', '--output', path]);
  expect([result.status, result.stdout]).toEqual([0, `${path}\n`]);
  expect(readFileSync(path, 'utf8')).toBe(stdout);
  const { traceEvents } = JSON.parse(stdout) as { traceEvents: { cat?: string; dur: number }[] };
  const ops = traceEvents.filter((event) => event.cat === 'ops');
  expect(ops).toHaveLength(queryNumber('SELECT count(*) FROM ops'));
  const ns = ops.reduce((sum, event) => sum + Math.round(event.dur * 1000), 0);
  expect(ns).toBe(queryNumber('SELECT sum(dur_ns) FROM ops'));
});

test('perfetto is the same as chrome-trace, the default; each execution starts at zero, and --execution selects one', () => {
  interface Event {
    ph: string;
    pid: number;
    ts: number;
    cat?: string;
  }
  const events = (...args: string[]) =>
    (
      JSON.parse(inferscope(setup, ['export', ...args]).stdout) as { traceEvents: Event[] }
    ).traceEvents.filter(({ ph }) => ph !== 'M');
  const all = events();
  expect(events('--format', 'perfetto')).toEqual(all);
  const pids = new Set(all.map(({ pid }) => pid));
  expect(pids.size).toBe(2);
  for (const pid of pids)
    expect(Math.min(...all.filter((event) => event.pid === pid).map(({ ts }) => ts))).toBe(0);
  const clean = events('--execution', 'clean');
  expect(new Set(clean.map(({ pid }) => pid)).size).toBe(1);
  expect(clean.filter(({ cat }) => cat === 'stages').length).toBe(
    queryNumber("SELECT count(*) FROM stages WHERE execution_id = 'clean'"),
  );
});

test('a folder has a default name', () => {
  const result = inferscope(setup, ['export', '--format', 'csv']);
  expect([result.status, result.stdout]).toEqual([0, expect.stringMatching(/-csv\n$/)]);
  expect(readdirSync(result.stdout.trim())).toContain('stages.csv');
});

test('speedscope has a profile per execution, and openmetrics counts the timed repeats', () => {
  const file = JSON.parse(inferscope(setup, ['export', '--format', 'speedscope']).stdout) as {
    profiles: { name: string; events: { type: string }[] }[];
  };
  expect(file.profiles.map(({ name }) => name.split(',')[0])).toEqual(['clean', 'profiled']);
  for (const { events } of file.profiles) {
    expect(events.filter(({ type }) => type === 'O')).toHaveLength(events.length / 2);
  }
  const { stdout } = inferscope(setup, ['export', '--format', 'openmetrics']);
  expect(stdout).toMatch(/\n# EOF\n$/);
  const count = /^inferscope_ttft_seconds_count\{execution="clean"\} (\d+)$/m.exec(stdout);
  expect(Number(count?.[1])).toBe(
    queryNumber("SELECT count(*) FROM iterations WHERE execution_id = 'clean' AND NOT warmup"),
  );
});

test('csv writes one file per table and leaves no other files', () => {
  const folder = join(setup.scratch, 'tables');
  expect(inferscope(setup, ['export', '--format', 'csv', '--output', folder]).status).toBe(0);
  expect(readdirSync(folder)).toContain('ops.csv');
  const lines = readFileSync(join(folder, 'stages.csv'), 'utf8').trimEnd().split('\n');
  expect(lines.length - 1).toBe(queryNumber('SELECT count(*) FROM stages'));
  expect(readdirSync(setup.scratch).filter((name) => name.includes('.tmp'))).toEqual([]);
  expect(expectUsageError('--format', 'csv', '--output', folder).what).toContain('not empty');
});

test('usage errors have three parts, before anything is written', () => {
  const unknownFormat = expectUsageError('--format', 'xml');
  expect([unknownFormat.what, unknownFormat.why]).toEqual([
    expect.stringContaining('xml'),
    expect.stringContaining('chrome-trace, speedscope, openmetrics, csv'),
  ]);
  expect(expectUsageError('--execution', 'none').why).toContain('clean, profiled');
  expect(expectUsageError('--format', 'parquet', '--execution', 'clean').fix).toContain('csv');
  mkdirSync(join(setup.scratch, 'folder'));
  expect(expectUsageError('--format', 'speedscope', '--output', 'folder').what).toContain('folder');
  writeFileSync(join(setup.scratch, 'file'), 'x');
  expect(expectUsageError('--format', 'csv', '--output', 'file').what).toContain('is a file');
  expect(existsSync(join(setup.scratch, 'folder', 'trace.json'))).toBe(false);
});

test('an export that cannot be written is an error and leaves nothing', () => {
  const result = inferscope(setup, [
    'export',
    '--format',
    'openmetrics',
    '--output',
    '/proc/none/metrics.txt',
  ]);
  expect([result.status, result.stderr.includes('E_HOME_UNWRITABLE')]).toEqual([3, true]);
  const full = inferscope(setup, ['export', '--format', 'openmetrics', '--output', '/dev/full']);
  expect([full.status, full.stderr.includes('E_DISK_FULL')]).toEqual([3, true]);
});

test('--help has two examples', () => {
  const { stdout } = inferscope(setup, ['export', '--help']);
  expect(stdout.match(/^ {2}\$ inferscope export /gm)).toHaveLength(2);
});
