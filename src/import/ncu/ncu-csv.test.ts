import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { SharedState } from '../importer.js';
import { ncuCsvImporter } from './ncu-csv.js';
import { ncuReportImporter } from './ncu-report.js';
import { stageNameReader } from '../stage-names.js';
import { nvtxRanges, phaseOf } from './nvtx-path.js';
import { baseUnit, counterValue } from './units.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-ncu-'));
afterAll(() => rmSync(folder, { recursive: true }));
const fixture = (name: string) => join('test/fixtures/ncu-2025.3.1-h200', name);
const context = {
  execution_id: 'counters',
  capture_id: 'ncu',
  host: 'h',
  zero: { realtime_ns: null, monotonic_ns: null },
};

/** Rows of files that are imported together. */
async function load(...paths: string[]): Promise<Row<'counters'>[]> {
  const rows: Row<'counters'>[] = [];
  const append = (_table: string, row: Row<'counters'>) => void rows.push(row);
  const shared = new SharedState();
  for (const [i, path] of paths.entries()) {
    const capture_id = i === 0 ? 'ncu' : ['ncu', i + 1].join('-');
    await ncuCsvImporter.load(
      path,
      { sink: { append: append as never } },
      { ...context, capture_id, shared },
    );
  }
  return rows;
}

/** metric -> row, one map per profiled launch in profiling order. */
function byLaunch(rows: Row<'counters'>[]): Map<string, Row<'counters'>>[] {
  const launches = new Map<string, Map<string, Row<'counters'>>>();
  for (const row of rows) {
    const key = `${row.pid} ${row.kernel_name} ${row.launch_ordinal}`;
    if (!launches.has(key)) launches.set(key, new Map());
    launches.get(key)!.set(row.metric!, row);
  }
  return [...launches.values()];
}

function writePage(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const scaled = byLaunch(await load(fixture('ncu-tiny.raw.csv')));
const base = byLaunch(await load(fixture('ncu-tiny.raw-base.csv')));
const details = byLaunch(await load(fixture('ncu-tiny.details.csv')));

describe('raw page', () => {
  test('has one launch per kernel, with its ordinal within the name', () => {
    expect(scaled.map((m) => m.get('gpu__time_duration.sum')!.launch_ordinal)).toEqual([0, 1, 2, 0, 3, 0]);
    const first = scaled[0]!.get('gpu__time_duration.sum')!;
    expect(first).toMatchObject({
      kernel_name: 'nvjet_sm90_hsh_64x8_64x16_2x4_h_bz_TNT',
      nvtx_path: 'inferscope:decode:0:0 / inferscope:prefill:0:0',
      pid: 1007,
      tid: 1007,
      device: 0,
      context: 1,
      value: 4160,
      unit: 'ns',
    });
    expect(scaled[1]!.get('launch__grid_dim_y')!.value).toBe(2);
    expect(scaled[0]!.get('device__attribute_compute_capability_major')!.value).toBe(9);
  });

  test("auto-scaled values in base units equal ncu's page in base units", () => {
    let compared = 0;
    for (const [i, metrics] of scaled.entries()) {
      for (const [name, row] of metrics) {
        const baseRow = base[i]!.get(name)!;
        // ncu multiplies %/Kbyte by 1000 where it should divide: the scaled page's own unit is kept.
        if (name === 'derived__pct_occupancy_per_shared_mem_size') continue;
        expect([name, row.unit]).toEqual([name, baseRow.unit]);
        if (row.value === null) {
          expect(baseRow.value).toBeNull();
          continue;
        }
        // The base page is rounded to two decimals, the scaled one to six of its own unit.
        const step = row.unit === 'byte/s' || row.unit === 'hz' || row.unit === 'sector/s' ? 1e6 : 0.01;
        expect(Math.abs(row.value! - baseRow.value!), name).toBeLessThanOrEqual(
          Math.max(step, Math.abs(baseRow.value!) * 1e-6),
        );
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(10_000);
  });

  test('a value that is not a number is null, not 0; an empty one gives no row', () => {
    expect(scaled[0]!.get('derived_tempMetric4')!.value).toBeNull();
    expect(scaled[0]!.has('LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed')).toBe(false);
    expect(scaled[0]!.has('launch__func_cache_config')).toBe(false);
  });

  test('facts name the device', async () => {
    expect((await ncuCsvImporter.facts(fixture('ncu-tiny.raw.csv'))).hardware).toEqual({
      gpu_compute_capability: '9.0',
      gpu_name: 'NVIDIA H200',
      gpu_sm_count: 132,
    });
  });
});

test("the details page of the same run has the raw page's values, rounded", () => {
  let compared = 0;
  for (const [i, metrics] of details.entries()) {
    for (const [name, row] of metrics) {
      const raw = scaled[i]!.get(name);
      if (!raw || row.value === null) continue;
      expect([name, row.unit]).toEqual([name, raw.unit]);
      // Two decimals of the unit shown, at most a part in 100 (1.02 Kbyte for 1024 byte).
      expect(Math.abs(row.value! - raw.value!), name).toBeLessThanOrEqual(
        Math.max(0.00501, Math.abs(raw.value!) * 0.006),
      );
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(6 * 50);
  for (const name of [
    'gpu__time_duration.sum',
    'sm__throughput.avg.pct_of_peak_sustained_elapsed',
    'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
    'sm__warps_active.avg.pct_of_peak_sustained_active',
    'launch__registers_per_thread',
  ]) {
    expect(details[0]!.has(name), name).toBe(true);
  }
});

describe('text around a page', () => {
  const header =
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"';
  const row = (id: number, metric: string, unit: string, value: string) =>
    `"${id}","5554","python3.12","127.0.0.1","rms_norm<1, ""a"">","1","13","(512, 1, 1)","(1, 1, 1)","0","10.0","Command line profiler metrics","${metric}","${unit}","${value}"`;

  test("skips ncu's messages, the program's own lines and lone quotes", async () => {
    const path = writePage(
      'prof.csv',
      [
        '==PROF== Connected to process 5554 (/usr/bin/python3.12)',
        'loading "the model, "then',
        'a, "b',
        '"a",x"y,"z',
        '"","""',
        header,
        row(0, 'dram__bytes.sum', 'Mbyte', '1,234.5'),
        row(0, 'flop_count_hp.sum', '', 'n/a').replace(/$/, ',"a rule\nover two lines"'),
        '==WARNING== something',
        row(3, 'dram__bytes.sum', 'byte', '29696'),
        'done',
      ].join('\n'),
    );
    expect(ncuCsvImporter.sniff(readFileSync(path, 'latin1'))).toBe(true);
    const launches = byLaunch(await load(path));
    expect(launches.map((m) => m.get('dram__bytes.sum')!.value)).toEqual([1_234_500_000, 29_696]);
    expect(launches[0]!.get('dram__bytes.sum')!.kernel_name).toBe('rms_norm<1, "a">');
    expect(launches[0]!.get('flop_count_hp.sum')).toMatchObject({ value: null, unit: null });
    expect(launches[1]!.get('launch__stream_id')!.value).toBe(13);
    expect(launches[1]!.get('ncu__id')!.value).toBe(3);
  });

  test.each([
    ['cut off inside a record', `${header}\n${row(0, 'dram__bytes.sum', 'byte', '1')}\n"1","5554","pyth`],
    ['no kernel', header],
    ['another file', 'hello\nworld\n'],
  ])('%s: E_TRACE_FILE', async (_name, text) => {
    const failure = load(writePage('bad.csv', text));
    await expect(failure).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });

  test('a page twice in a file: each launch counts once, and duplicates are counted', async () => {
    for (const name of ['ncu-tiny.raw.csv', 'ncu-tiny.details.csv']) {
      const text = readFileSync(fixture(name), 'utf8');
      const path = writePage(`twice-${name}`, text + text);
      expect(await load(path)).toEqual(await load(fixture(name)));
      const { issues } = await ncuCsvImporter.load(path, { sink: { append: () => {} } }, context);
      const records = issues.find(({ code }) => code === 'ncu_repeated')?.count;
      expect(records).toBeGreaterThanOrEqual(6);
    }
  });

  test('a raw page and a details page of the same launches: each launch counts once, with the metrics of both', async () => {
    const [raw, detailsPage] = ['ncu-tiny.raw.csv', 'ncu-tiny.details.csv'].map((name) =>
      readFileSync(fixture(name), 'utf8'),
    );
    const rawFirst = writePage('raw-details.csv', `${raw!}${detailsPage!}`);
    expect(await load(rawFirst)).toEqual(await load(fixture('ncu-tiny.raw.csv')));
    const { issues } = await ncuCsvImporter.load(rawFirst, { sink: { append: () => {} } }, context);
    expect(issues.find(({ code }) => code === 'ncu_replayed')?.count).toBe(6);
    expect(issues.find(({ code }) => code === 'ncu_repeated')?.count).toBeGreaterThan(6);
    const detailsFirst = await load(writePage('details-raw.csv', `${detailsPage!}${raw!}`));
    const launches = byLaunch(detailsFirst);
    expect(launches.map((metrics) => [...metrics.keys()].sort())).toEqual(
      scaled.map((metrics, i) => [...new Set([...metrics.keys(), ...details[i]!.keys()])].sort()),
    );
    expect(launches.reduce((sum, { size }) => sum + size, 0)).toBe(detailsFirst.length);
    // Two files give the same rows as one with both pages; two pages of one kind are two reports.
    expect(await load(fixture('ncu-tiny.raw.csv'), fixture('ncu-tiny.details.csv'))).toEqual(
      await load(fixture('ncu-tiny.raw.csv')),
    );
    expect(await load(fixture('ncu-tiny.details.csv'), fixture('ncu-tiny.raw.csv'))).toEqual(detailsFirst);
    expect(await load(fixture('ncu-tiny.raw.csv'), fixture('ncu-tiny.raw-base.csv'))).toHaveLength(
      2 * (await load(fixture('ncu-tiny.raw-base.csv'))).length,
    );
    // A single launch: its details page does not continue the record of the raw page.
    const lines = raw!.trim().split('\n');
    const one = `${lines.slice(0, 3).join('\n')}\n`;
    const oneDetails = detailsPage!
      .split('\n')
      .filter((line) => line.startsWith('"ID"') || line.startsWith('"0"'))
      .join('\n');
    expect(await load(writePage('one.csv', `${one}${oneDetails}\n`))).toEqual(
      await load(writePage('one-raw.csv', one)),
    );
  });

  test('a raw page truncated between quotes is an error', async () => {
    const text = readFileSync(fixture('ncu-tiny.raw.csv'), 'utf8');
    const cut = text.slice(0, text.lastIndexOf('","'));
    await expect(load(writePage('cut.csv', `${cut}"\n`))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
    await expect(load(writePage('cut.csv', cut))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });
});

test('units are converted to base units with decimal prefixes', () => {
  expect(baseUnit('us')).toEqual({ unit: 'ns', factor: 1000 });
  expect(baseUnit('msecond')).toEqual({ unit: 'ns', factor: 1e6 });
  expect(baseUnit('Gbyte/s')).toEqual({ unit: 'byte/s', factor: 1e9 });
  expect(baseUnit('sector/ns')).toEqual({ unit: 'sector/s', factor: 1e9 });
  expect(baseUnit('cycle/nsecond')).toEqual({ unit: 'hz', factor: 1e9 });
  expect(baseUnit('Kbyte/block')).toEqual({ unit: 'byte/block', factor: 1000 });
  expect(baseUnit('%/Kbyte').unit).toBe('%/Kbyte');
  expect(counterValue('14,632 (1: 3; 2: 4)')).toBe(14_632);
  expect(counterValue('2.5e+03')).toBe(2500);
  expect(counterValue('no data')).toBeNull();
  expect(counterValue('PolicySpread')).toBeUndefined();
});

test('reads NVTX paths, and redacts tokens', () => {
  const range = (domain: string, name: string) => `"${domain}:${name}:none:none:none:none:none:none"`;
  expect(nvtxRanges(`7  ${range('<default domain>', 'decode')}  ${range('vLLM', 'a:b')} `, '')).toEqual([
    'decode',
    'vLLM:a:b',
  ]);
  expect(nvtxRanges('', '')).toEqual([]);
  const token = 'hf_abcdefghijklmnopqrstuvwx';
  expect(nvtxRanges(`7  ${range('<default domain>', `load ${token}`)} `, '').join()).not.toContain(token);
});

test.each([
  // vLLM 0.26 on an H200.
  [['execute_144_context_2(sq144sk256sqsq16640sqsk18432)_generation_0(sq0sk0sqsq0sqsk0)'], 'prefill'],
  [['warmup', 'inferscope:decode:0:3:hook:b4:t4:c280', 'layer 3'], 'decode'],
  [['warmup', 'layer 3'], 'warmup'],
  [['layer 3'], null],
  [[], null],
])('the phase of a launch inside %j is %s', (ranges, phase) => {
  const read = stageNameReader();
  expect(phaseOf(ranges, (name) => read(name).kind)).toBe(phase);
});

test('recognizes a report file, which needs ncu', async () => {
  expect(ncuReportImporter.sniff('NVR\0abc', 'x')).toBe(true);
  expect(ncuReportImporter.sniff('"ID","Process ID"', 'x.csv')).toBe(false);
  await expect(ncuReportImporter.load('r.ncu-rep')).rejects.toMatchObject({ code: 'E_TOOL_MISSING' });
});
