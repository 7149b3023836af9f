import { DuckDBInstance } from '@duckdb/node-api';
import Database from 'libsql';
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { captures } from './capture-files.js';
import { inferscope, createSetup } from './run-cli.js';

const setup = createSetup();

/** Rows and device time in the profiler's file, counted without inferscope's importers. */
interface Oracle {
  kernels: number;
  copies: number;
  api_calls: number;
  ops: number;
  kernelNs: number;
}

function sqliteOracle(): Oracle {
  const database = new Database(captures.sqlite, { readonly: true });
  const queryNumber = (sql: string) => Number(Object.values(database.prepare(sql).get() as object)[0]);
  const count = (table: string) => queryNumber(`SELECT count(*) FROM CUPTI_ACTIVITY_KIND_${table}`);
  const oracle = {
    kernels: count('KERNEL'),
    copies: count('MEMCPY') + count('MEMSET'),
    api_calls: count('RUNTIME'),
    ops: 0,
    kernelNs: queryNumber('SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL'),
  };
  database.close();
  return oracle;
}

function kinetoOracle(): Oracle {
  const { traceEvents } = JSON.parse(gunzipSync(readFileSync(captures.kineto)).toString()) as {
    traceEvents: { ph: string; cat?: string; dur: number }[];
  };
  const eventsOf = (...cats: string[]) =>
    traceEvents.filter(({ ph, cat }) => ph === 'X' && cats.includes(cat!));
  return {
    kernels: eventsOf('kernel').length,
    copies: eventsOf('gpu_memcpy', 'gpu_memset').length,
    api_calls: eventsOf('cuda_runtime', 'cuda_driver').length,
    ops: eventsOf('cpu_op', 'python_function').length,
    kernelNs: eventsOf('kernel').reduce((sum, { dur }) => sum + Math.round(dur * 1000), 0),
  };
}

interface Event {
  ph: string;
  name: string;
  cat?: string;
  pid: number;
  tid: number;
  ts: number;
  dur: number;
  id?: number;
  bp?: string;
  args?: Record<string, unknown>;
}

interface Speedscope {
  $schema: string;
  shared: { frames: { name: string }[] };
  profiles: {
    type: string;
    name: string;
    unit: string;
    startValue: number;
    endValue: number;
    events: { type: string; frame: number; at: number }[];
  }[];
}

describe.each([
  ['nsys', captures.sqlite, sqliteOracle],
  ['kineto', captures.kineto, kinetoOracle],
] as const)('%s', (name, file, oracleOf) => {
  const oracle = oracleOf();
  const exportedTables = (['kernels', 'copies', 'api_calls', 'ops'] as const).filter(
    (table) => oracle[table] > 0,
  );

  beforeAll(() => {
    const result = inferscope(setup, ['import', '--quiet', file, '--name', name]);
    expect(result.status, result.stderr).toBe(0);
  });

  function exportText(format: string): string {
    const result = inferscope(setup, ['export', '--session', name, '--format', format]);
    expect(result.status, result.stderr).toBe(0);
    return result.stdout;
  }
  function exportFolder(format: string): string {
    const folder = join(setup.scratch, `${name}-${format}`);
    const result = inferscope(setup, ['export', '--session', name, '--format', format, '--output', folder]);
    expect([result.status, result.stdout], result.stderr).toEqual([0, `${folder}\n`]);
    return folder;
  }

  test('chrome-trace follows the trace event format and loses no row', () => {
    const { traceEvents } = JSON.parse(exportText('chrome-trace')) as { traceEvents: Event[] };
    expect(traceEvents.filter((event) => !isValidEvent(event))).toEqual([]);
    const spans = traceEvents.filter(({ ph }) => ph === 'X');
    for (const table of exportedTables) {
      expect(spans.filter(({ cat }) => cat === table).length, table).toBe(oracle[table]);
    }
    const ns = spans
      .filter(({ cat }) => cat === 'kernels')
      .reduce((sum, { dur }) => sum + Math.round(dur * 1000), 0);
    expect(ns).toBe(oracle.kernelNs);
    const ids = (ph: string) => traceEvents.filter((event) => event.ph === ph).map(({ id }) => id!);
    expect(new Set(ids('s')).size).toBe(ids('s').length);
    expect(ids('f').toSorted((a, b) => a - b)).toEqual(ids('s').toSorted((a, b) => a - b));
    expect(ids('s').length).toBeGreaterThan(0);
    expectNoPartialOverlap(spans);
  });

  test('speedscope follows its schema and the rules of its importer', () => {
    const file = JSON.parse(exportText('speedscope')) as Speedscope;
    expect(file.$schema).toBe('https://www.speedscope.app/file-format-schema.json');
    for (const frame of file.shared.frames) expect(frame.name).toBeTypeOf('string');
    expect(file.profiles.length).toBeGreaterThan(1);
    const names: string[] = [];
    for (const profile of file.profiles) {
      expect([profile.type, profile.unit]).toEqual(['evented', 'nanoseconds']);
      expect(profile.name.length).toBeGreaterThan(0);
      const open: number[] = [];
      let last = profile.startValue;
      for (const { type, frame, at: time } of profile.events) {
        if (time < last) throw new Error(`${profile.name}: ${time} comes after ${last}`);
        last = time;
        if (type === 'O') {
          const opened = file.shared.frames[frame];
          if (!opened) throw new Error(`${profile.name}: no frame ${frame}`);
          if (profile.name.includes(', stream ')) names.push(opened.name);
          open.push(frame);
        } else if (type !== 'C' || open.pop() !== frame) {
          // speedscope rejects a file with "Tried to leave frame … while frame … was at the top".
          throw new Error(
            `${profile.name}: ${type} at ${time} closes frame ${frame}, which is not the innermost one`,
          );
        }
      }
      expect(open).toEqual([]);
      expect(last).toBeLessThanOrEqual(profile.endValue);
    }
    expect(names.length).toBeGreaterThanOrEqual(oracle.kernels + oracle.copies);
  });

  test('csv and parquet: DuckDB reads every table with all its rows, and both are equal', async () => {
    const [csv, parquet] = [exportFolder('csv'), exportFolder('parquet')];
    const database = await (await DuckDBInstance.create(':memory:')).connect();
    const queryNumber = async (sql: string) => Number((await (await database.run(sql)).getRowsJS())[0]![0]);
    const tables = readdirSync(csv).map((path) => path.replace(/\.csv$/, ''));
    expect(tables).toEqual(expect.arrayContaining([...exportedTables, 'stages', 'gaps']));
    for (const table of tables) {
      const fromCsv = `read_csv('${join(csv, `${table}.csv`)}', header = true, all_varchar = true)`;
      const fromParquet = `read_parquet('${join(parquet, table, '*.parquet')}', union_by_name = true)`;
      const rows = await queryNumber(`SELECT count(*) FROM ${fromCsv}`);
      expect(rows, table).toBe(await queryNumber(`SELECT count(*) FROM ${fromParquet}`));
      if (table in oracle) expect(rows, table).toBe(oracle[table as keyof Oracle]);
      // Same columns in the same order, and the same cells: an empty unquoted field is null in both.
      const columnsOf = async (from: string) =>
        (await (await database.run(`DESCRIBE FROM ${from}`)).getRowsJS()).map(([column]) => String(column));
      const columns = await columnsOf(fromCsv);
      expect(await columnsOf(fromParquet)).toEqual(columns);
      const compared = columns.filter(
        (column) => !column.startsWith('api_') && /_(ns|id)$|^name$|^bytes$/.test(column),
      );
      const list = compared.map((column) => `CAST("${column}" AS VARCHAR)`).join(', ');
      const differing = `(SELECT ${list} FROM ${fromCsv} EXCEPT ALL SELECT ${list} FROM ${fromParquet})`;
      expect(await queryNumber(`SELECT count(*) FROM ${differing}`), table).toBe(0);
    }
    const kernelNs = `SELECT sum(dur_ns) FROM read_parquet('${join(parquet, 'kernels', '*.parquet')}')`;
    expect(await queryNumber(kernelNs)).toBe(oracle.kernelNs);
    database.closeSync();
  });

  test('openmetrics has contiguous families, with names, labels and types of the text format', () => {
    const text = exportText('openmetrics');
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    const closed = new Set<string>();
    const series = new Set<string>();
    let family = '';
    let kernelSeconds = 0;
    const types = new Map<string, string>();
    for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
      const description = /^# (TYPE|UNIT|HELP) ([a-z_:][a-z0-9_:]*) (.+)$/.exec(line);
      if (description) {
        const [, field, owner = '', value = ''] = description;
        if (owner !== family) {
          expect(closed, 'a family is not continued after another').not.toContain(owner);
          closed.add(family);
          family = owner;
        }
        if (field === 'TYPE') types.set(owner, value);
        // The name ends with the unit.
        if (field === 'UNIT') expect(owner.endsWith(`_${value}`)).toBe(true);
        continue;
      }
      const sample =
        /^([a-z_:][a-z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?[0-9.e+-]+|NaN)$/.exec(line);
      expect(sample, line).not.toBeNull();
      const [, metric = '', labels = '', value = ''] = sample!;
      expect(series).not.toContain(`${metric}{${labels}}`);
      series.add(`${metric}{${labels}}`);
      expect(Number.isFinite(Number(value))).toBe(true);
      expect(types.get(family), family).toMatch(/^(summary|gauge|info)$/);
      const suffix = metric.slice(family.length);
      expect(metric.startsWith(family)).toBe(true);
      if (types.get(family) === 'gauge') expect(suffix).toBe('');
      else if (types.get(family) === 'info') expect([suffix, value]).toEqual(['_info', '1']);
      else expect(['', '_sum', '_count']).toContain(suffix);
      const quantile = /quantile="([^"]+)"/.exec(labels);
      expect(quantile !== null).toBe(types.get(family) === 'summary' && suffix === '');
      if (quantile) expect(Number(quantile[1])).toBeLessThanOrEqual(1);
      if (metric === 'inferscope_kernel_seconds_sum') kernelSeconds += Number(value);
    }
    // Sums exclude the warm-up, so they are at most those of the file.
    expect(kernelSeconds).toBeGreaterThan(0);
    expect(kernelSeconds * 1e9).toBeLessThanOrEqual(oracle.kernelNs + 1);
  });
});

/** Whether an event has the fields that the Trace Event Format requires for its phase. */
function isValidEvent({ ph, name, pid, tid, ts, dur, bp, args }: Event): boolean {
  if (typeof name !== 'string' || !Number.isInteger(pid)) return false;
  if (ph === 'M') return /^(process|thread)_(name|sort_index|labels)$/.test(name);
  if (typeof ts !== 'number') return false;
  const values = Object.values(args ?? {});
  switch (ph) {
    case 'X':
      return Number.isInteger(tid) && dur >= 0;
    case 'C':
      return values.length > 0 && values.every((value) => typeof value === 'number');
    case 's':
      return Number.isInteger(tid);
    case 'f':
      // Perfetto needs this to bind the end of a flow to the slice around it.
      return Number.isInteger(tid) && bp === 'e';
    default:
      return false;
  }
}

/** Expects that spans of a track are nested, because Perfetto drops a slice that ends after its parent. */
function expectNoPartialOverlap(spans: readonly Event[]): void {
  const tracks = new Map<string, [from: number, to: number][]>();
  for (const { pid, tid, ts, dur } of spans) {
    const key = `${pid}/${tid}`;
    const from = Math.round(ts * 1000);
    if (!tracks.has(key)) tracks.set(key, []);
    tracks.get(key)!.push([from, from + Math.round(dur * 1000)]);
  }
  for (const [track, trackSpans] of tracks) {
    const open: number[] = [];
    for (const [from, to] of trackSpans.toSorted((a, b) => a[0] - b[0] || b[1] - a[1])) {
      while (open.length > 0 && open.at(-1)! <= from) open.pop();
      if (open.length > 0 && to > open.at(-1)!) throw new Error(`${track}: overlap at ${from} ns`);
      open.push(to);
    }
  }
}

test('names with a character that reverses the text direction are escaped in JSON, and keep their value', () => {
  const capture = join(setup.scratch, 'hostile.sqlite');
  copyFileSync(captures.sqlite, capture);
  const database = new Database(capture);
  database.exec(
    `UPDATE StringIds SET value = value || char(8238) WHERE id IN (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)`,
  );
  database.close();
  expect(inferscope(setup, ['import', '--quiet', capture, '--name', 'hostile']).status).toBe(0);
  for (const format of ['perfetto', 'speedscope']) {
    const { stdout, status } = inferscope(setup, ['export', 'hostile', '--format', format]);
    expect(status, format).toBe(0);
    expect(stdout, format).not.toContain('\u202e');
    expect(JSON.stringify(JSON.parse(stdout)), format).toContain('\u202e');
  }
});
