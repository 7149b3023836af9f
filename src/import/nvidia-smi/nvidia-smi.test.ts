import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { Importer } from '../importer.js';
import { nvidiaSmiDmonImporter } from './dmon.js';
import { nvidiaSmiQueryImporter } from './query.js';
import { metricOf } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-smi-'));
afterAll(() => rmSync(folder, { recursive: true }));
const fixture = (name: string) => join('test/fixtures/nvidia-smi-580-h200', name);
const writeLog = (text: string) => {
  const path = join(folder, 'log');
  writeFileSync(path, text);
  return path;
};

async function load(
  importer: Importer,
  path: string,
  zero: bigint | null = null,
): Promise<{
  rows: Row<'telemetry'>[];
  memory: Row<'memory'>[];
  issues: Issue[];
  valuesOf: (metric: string, scope?: string) => number[];
}> {
  const rows: Row<'telemetry'>[] = [];
  const memory: Row<'memory'>[] = [];
  const append = (table: string, row: Row<'telemetry'> & Row<'memory'>) =>
    void (table === 'memory' ? memory : rows).push(row);
  const { issues } = await importer.load(path, { sink: { append: append as never } } as never, {
    execution_id: 'clean',
    capture_id: 'smi',
    host: 'h',
    zero: { realtime_ns: zero, monotonic_ns: null },
  });
  const valuesOf = (name: string, scope = 'gpu0') =>
    rows.filter((row) => row.metric === name && row.scope === scope).map((row) => row.value!);
  return { rows, memory, issues, valuesOf };
}

const column = (name: string, i: number) =>
  readFileSync(fixture(name), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => Number(line.trim().split(/\s+/)[i]));

describe('dmon', () => {
  test("-o TD: each column is a series, one sample per second, on the session's clock", async () => {
    const name = 'nvidia-smi-dmon-TD.txt';
    const start = BigInt(new Date(2026, 10, 21, 4, 55, 30).getTime()) * 1_000_000n;
    const { rows, valuesOf, issues } = await load(nvidiaSmiDmonImporter, fixture(name), start);
    expect(valuesOf('power_w')).toEqual(column(name, 3));
    expect(valuesOf('sm_clock_mhz')).toEqual(column(name, 13));
    expect(valuesOf('memory_clock_mhz')).toEqual(column(name, 12));
    expect(valuesOf('utilization_percent')).toEqual(column(name, 6));
    const times = rows.filter((row) => row.metric === 'power_w').map((row) => row.t_ns! / 1e9);
    expect(times).toEqual([9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    expect(issues.map(({ code }) => code)).toEqual(['telemetry_local_time']);
    const { realtime_zero_ns: zero } = await nvidiaSmiDmonImporter.facts(fixture(name));
    expect(zero).toBe(start + 9_000_000_000n);
  });

  test('every column of -s pucvmet has one row per sample; without times one second per sample, with an issue', async () => {
    const { rows, memory, valuesOf, issues } = await load(
      nvidiaSmiDmonImporter,
      fixture('nvidia-smi-dmon-all.txt'),
    );
    expect(rows).toHaveLength(6 * 20);
    expect(memory.map(({ bytes }) => bytes)).toEqual(Array(6).fill(0));
    expect(valuesOf('bar1_used_bytes')).toEqual(Array(6).fill(2 ** 20));
    expect(valuesOf('pcie_rx_mb_per_s')).toHaveLength(6);
    expect(new Set(rows.map((row) => row.t_ns))).toEqual(new Set([0, 1, 2, 3, 4, 5].map((s) => s * 1e9)));
    expect(issues).toEqual([expect.objectContaining({ code: 'telemetry_undated', severity: 'warning' })]);
  });

  test('two GPUs, "-", repeated headers, midnight, a truncated line', async () => {
    const { rows, valuesOf, issues } = await load(
      nvidiaSmiDmonImporter,
      writeLog(
        [
          '#Time         gpu    pwr  mtemp',
          '#HH:MM:SS     Idx      W      C',
          ' 23:59:59       0     79      -',
          ' 23:59:59       1     80      -',
          '#Time         gpu    pwr  mtemp',
          '#HH:MM:SS     Idx      W      C',
          ' 00:00:01       0     81      -',
          ' 00:00:01       1     82      -',
          ' 00:00:02       0',
        ].join('\n'),
      ),
    );
    expect(valuesOf('power_w')).toEqual([79, 81]);
    expect(valuesOf('power_w', 'gpu1')).toEqual([80, 82]);
    expect(rows.map((row) => row.t_ns! / 1e9)).toEqual([0, 0, 2, 2]);
    expect(issues.map(({ code, count }) => [code, count])).toEqual([
      ['telemetry_missing', 2],
      ['telemetry_undated', undefined],
      ['telemetry_cut_off', 1],
    ]);
  });
});

describe('--query-gpu', () => {
  const name = 'nvidia-smi-query.csv';
  const lines = readFileSync(fixture(name), 'utf8').trim().split('\n').slice(1);

  test('values and times equal the CSV', async () => {
    const { rows, valuesOf, issues } = await load(nvidiaSmiQueryImporter, fixture(name));
    expect(valuesOf('power_w')).toEqual(lines.map((line) => Number.parseFloat(line.split(', ')[7]!)));
    expect(valuesOf('sm_clock_mhz')).toEqual(lines.map((line) => Number.parseFloat(line.split(', ')[8]!)));
    expect(new Set(valuesOf('memory_total_bytes'))).toEqual(new Set([143_771 * 2 ** 20]));
    expect(valuesOf('throttle_bits')[0]).toBe(1);
    const millis = (line: string) => Date.parse(line.split(', ')[0]!.replaceAll('/', '-').replace(' ', 'T'));
    expect(rows.filter((row) => row.metric === 'power_w').map((row) => row.t_ns! / 1e6)).toEqual(
      lines.map((line) => millis(line) - millis(lines[0]!)),
    );
    expect(issues.map(({ code }) => code)).toEqual(['telemetry_local_time']);
    expect((await nvidiaSmiQueryImporter.facts(fixture(name))).hardware).toEqual({ gpu_name: 'NVIDIA H200' });
  });

  test('nounits, [N/A], two GPUs without an index, no timestamp', async () => {
    const { rows, memory, valuesOf, issues } = await load(
      nvidiaSmiQueryImporter,
      writeLog(
        [
          'uuid, utilization.gpu [%], memory.used [MiB], fan.speed [%], clocks_event_reasons.sw_power_cap, pstate',
          'GPU-a, 10, 5, [N/A], Not Active, P0',
          'GPU-b, 20, 6, [N/A], Active, P8',
          'GPU-a, 30, 7, [N/A], Not Active, P0',
          'GPU-b, 40, 8, [N/A], Active, P8',
        ].join('\n'),
      ),
    );
    expect(valuesOf('utilization_percent', 'gpu1')).toEqual([20, 40]);
    expect(memory.map(({ device, kind, bytes }) => [device, kind, bytes! / 2 ** 20])).toEqual([
      [0, 'used', 5],
      [1, 'used', 6],
      [0, 'used', 7],
      [1, 'used', 8],
    ]);
    expect(valuesOf('clocks_event_reasons_sw_power_cap', 'gpu1')).toEqual([1, 1]);
    expect(valuesOf('pstate', 'gpu1')).toEqual([8, 8]);
    expect(rows.some((row) => JSON.stringify(row).includes('GPU-'))).toBe(false);
    expect(valuesOf('fan_speed_percent')).toEqual([]);
    expect(new Set(rows.map((row) => row.t_ns))).toEqual(new Set([0, 1e9]));
    expect(issues.map(({ code }) => code)).toEqual(['telemetry_missing', 'telemetry_undated']);
  });

  test('distinguishes GPUs by line order alone', async () => {
    const line = (s: number, watts: number) => `2026/11/21 04:55:0${s}.000, ${watts} W`;
    const { valuesOf } = await load(
      nvidiaSmiQueryImporter,
      writeLog(['timestamp, power.draw [W]', line(1, 1), line(1, 2), line(2, 3), line(2, 4)].join('\n')),
    );
    expect(valuesOf('power_w')).toEqual([1, 3]);
    expect(valuesOf('power_w', 'gpu1')).toEqual([2, 4]);
  });
});

test('each importer recognizes only its format', () => {
  const heads = ['nvidia-smi-dmon-TD.txt', 'nvidia-smi-dmon-all.txt', 'nvidia-smi-query.csv'].map((name) =>
    readFileSync(fixture(name), 'latin1'),
  );
  expect(heads.map((head) => nvidiaSmiDmonImporter.sniff(head))).toEqual([true, true, false]);
  expect(heads.map((head) => nvidiaSmiQueryImporter.sniff(head))).toEqual([false, false, true]);
  expect(nvidiaSmiQueryImporter.sniff('model, batch, latency\n')).toBe(false);
});

test('unknown columns keep their name, with the unit', () => {
  expect(metricOf('encoder.stats.averageLatency', '')).toEqual({
    name: 'encoder_stats_averagelatency',
    factor: 1,
  });
  expect(metricOf('protected_memory.used', 'MiB')).toEqual({
    name: 'protected_memory_used_bytes',
    factor: 2 ** 20,
  });
});

test('a header without lines is an error', async () => {
  const dmon = '# gpu    pwr\n# Idx      W\n';
  await expect(load(nvidiaSmiDmonImporter, writeLog(dmon))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  const query = 'timestamp, power.draw [W]\n';
  await expect(load(nvidiaSmiQueryImporter, writeLog(query))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
});

test('drops and counts impossible values', async () => {
  const dmon =
    '# gpu    pwr  gtemp     sm   pclk\n# Idx      W      C      %    MHz\n  0    -79    -31    101   1980\n  0     80     31     50   9e9\n  0 99999999     31     60   345\n';
  const { valuesOf, issues } = await load(nvidiaSmiDmonImporter, writeLog(dmon));
  expect(valuesOf('power_w')).toEqual([80]);
  expect(valuesOf('temperature_c')).toEqual([-31, 31, 31]);
  expect(valuesOf('utilization_percent')).toEqual([50, 60]);
  expect(issues.find(({ code }) => code === 'telemetry_impossible')).toMatchObject({ count: 4 });
});

test('counts text in number columns and out-of-order lines', async () => {
  const head = '#Date Time gpu pwr sm\n#YYYYMMDD HH:MM:SS Idx W %\n';
  const line = (s: number, watts: string) => ` 20261121 04:55:0${s} 0 ${watts} 5\n`;
  const log = head + line(1, '80') + line(2, 'nan') + line(3, '-') + line(4, '1e308');
  const { valuesOf, issues } = await load(nvidiaSmiDmonImporter, writeLog(log + log.slice(head.length)));
  expect(valuesOf('power_w')).toEqual([80, 80]);
  const counts = Object.fromEntries(issues.map(({ code, count }) => [code, count]));
  expect(counts).toMatchObject({
    telemetry_unreadable: 2,
    telemetry_impossible: 2,
    telemetry_out_of_order: 3,
  });
});
