import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Importer } from '../../import/importer.js';
import { nvidiaSmiDmonImporter } from '../../import/nvidia-smi/dmon.js';
import { nvidiaSmiQueryImporter } from '../../import/nvidia-smi/query.js';
import { monitorDocumentSchema } from '../../model/documents/monitor.js';
import type { Row } from '../../model/tables.js';
import { importSession } from '../../session/archive-import.js';
import { createSession } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { sessionOf } from '../test-session.js';
import { analyzeMonitor } from './monitor.js';

const home = testHome();
const second = 1e9;

const telemetryRow = (t: number, metric: string, value: number, scope = 'gpu0'): Row<'telemetry'> => ({
  t_ns: Math.round(t * second),
  scope,
  metric,
  value,
});
const usedRow = (t: number, gib: number): Row<'memory'> => ({
  t_ns: Math.round(t * second),
  device: 0,
  kind: 'used',
  bytes: gib * 2 ** 30,
});

/** 4 s at 10 Hz: busy 1 s, idle 1 s, busy 0.2 s, idle 0.3 s (too short to count), busy; capped from 3.0 to 3.5 s. */
function exampleRows() {
  const telemetry: Row<'telemetry'>[] = [telemetryRow(0, 'memory_total_bytes', 80 * 2 ** 30)];
  const memory: Row<'memory'>[] = [];
  for (let tick = 0; tick <= 40; tick++) {
    const t = tick / 10;
    const idle = (tick >= 10 && tick < 20) || (tick >= 22 && tick < 25);
    const capped = tick >= 30 && tick < 35;
    const busy = tick < 20 || tick >= 25 ? 100 : 80;
    telemetry.push(
      telemetryRow(t, 'utilization_percent', idle ? 0 : busy),
      telemetryRow(t, 'throttle_bits', idle ? 1 : capped ? 4 : 0),
      telemetryRow(t, 'sm_clock_mhz', idle ? 345 : capped ? 1485 : 1980),
      telemetryRow(t, 'power_w', idle ? 80 : capped ? 700 : 500),
      telemetryRow(t, 'power_limit_enforced_w', 700),
      telemetryRow(t, 'energy_j', 1000 + 300 * t),
    );
    memory.push(usedRow(t, tick < 20 ? 10 : 14), {
      ...usedRow(t, tick < 20 ? 9 : 13),
      kind: 'process',
      pid: 4242,
    });
  }
  return { telemetry, memory };
}

describe('a recording made by hand', () => {
  test('idle periods, throttling with its clock drop, power, energy, memory', async () => {
    const session = await sessionOf(home, exampleRows(), { kind: 'monitor', roofline: null });
    const document = await analyzeMonitor(session);
    expect(monitorDocumentSchema.parse(document)).toEqual(document);
    const { data } = document;
    expect(data.duration_s.value).toBe(4);
    expect(data.sample_hz.value).toBe(10);
    const [gpu] = data.devices;
    expect(gpu!.idle).toMatchObject({
      share: { value: 0.25 },
      count: 1,
      longest_ms: 1000,
      periods: [{ start_ns: second, dur_ns: second }],
    });
    expect(gpu!.throttling.share.value).toBeCloseTo(0.125, 12);
    expect(gpu!.throttling.reasons).toEqual([
      { reason: 'sw_power_cap', label: 'power cap', share: expect.closeTo(0.125, 12) },
    ]);
    expect(gpu!.throttling.periods).toEqual([
      {
        start_ns: 3 * second,
        dur_ns: 0.5 * second,
        reasons: ['sw_power_cap'],
        clock_mhz: 1485,
        clock_drop: 0.25,
      },
    ]);
    expect(gpu!.clock.usual_mhz.value).toBe(1980);
    // Busy: 0–1, 2–2.2, 2.5–4 s, of which 0.5 s were capped.
    expect(gpu!.clock.dropped_share.value).toBeCloseTo(0.5 / 2.7, 12);
    expect(gpu!.power.limit_w.value).toBe(700);
    expect(gpu!.power.near_limit_share.value).toBeCloseTo(0.125, 12);
    expect(gpu!.power.capped_share.value).toBeCloseTo(0.125, 12);
    expect(gpu!.power.energy_j).toMatchObject({ value: 1200, source: 'energy counter, last − first sample' });
    expect(gpu!.memory).toMatchObject({
      total_bytes: { value: 80 * 2 ** 30 },
      first_bytes: { value: 10 * 2 ** 30 },
      peak_bytes: { value: 14 * 2 ** 30 },
      growth_bytes: { value: 4 * 2 ** 30 },
    });
    expect(gpu!.processes).toEqual([
      { pid: 4242, name: null, here: null, peak_bytes: 13 * 2 ** 30, last_bytes: 13 * 2 ** 30 },
    ]);
    const utilization = gpu!.metrics.find(({ metric }) => metric === 'utilization_percent');
    // 1.0 + 1.5 s at 100 %, 0.2 s at 80 %, of 4 s
    expect(utilization!.mean).toBeCloseTo((2.5 * 100 + 0.2 * 80) / 4, 9);
    expect(utilization).toMatchObject({ n: 41, min: 0, max: 100, first: 100, last: 100 });
    expect(gpu!.headline).toBe(
      'GPU 0: 67 % busy on average, idle for 25 % of the time in 1 period, throttled for 13 % of the time (mostly power cap, with a 25 % lower SM clock), 389 W of 700 W.',
    );
    expect(data.headlines.join(' ')).toContain('Memory in use on GPU 0 grew by 4.00 GiB');
  });

  test('uses the requested thresholds', async () => {
    const session = await sessionOf(home, exampleRows(), { kind: 'monitor', roofline: null });
    const { data } = await analyzeMonitor(session, { idlePercent: 90, idleMs: 100 });
    expect(data.session).toEqual({ ...data.session, name: null, status: 'complete' });
    expect(data.thresholds).toMatchObject({ idle_percent: 90, idle_ms: 100 });
    // 80 % now counts as idle: one period from 1.0 to 2.5 s.
    expect(data.devices[0]!.idle).toMatchObject({ count: 1, longest_ms: 1500 });
  });

  test('without energy counter and power limit: integrates power, and gives reasons for missing figures', async () => {
    const telemetry = [0, 1, 2, 3].map((t) => telemetryRow(t, 'power_w', 100 + 100 * t, 'gpu1'));
    const { data } = await analyzeMonitor(await sessionOf(home, { telemetry }, { roofline: null }));
    const [gpu] = data.devices;
    expect(gpu!.scope).toBe('gpu1');
    // 1 s of 100 W, 200 W and 300 W, which is also the mean times 3 s.
    expect(gpu!.power.energy_j).toMatchObject({
      value: 600,
      source: expect.stringContaining('integral of power (1 s mean) over time'),
    });
    expect(gpu!.power.limit_w).toMatchObject({ value: null, reason: { code: 'no_power_limit' } });
    expect(gpu!.idle.share).toMatchObject({ value: null, reason: { code: 'no_utilization' } });
    expect(gpu!.throttling.share).toMatchObject({ value: null, reason: { code: 'no_throttle_reasons' } });
    expect(gpu!.memory.peak_bytes.value).toBeNull();
  });

  test('without throttle reasons in the log, throttling is unknown and not "never"', async () => {
    const telemetry = [0, 1, 2, 3].flatMap((t) => [
      telemetryRow(t, 'utilization_percent', 0),
      telemetryRow(t, 'fan_speed_percent', 0),
    ]);
    const deviceOfRows = async (rows: Row<'telemetry'>[]) =>
      (await analyzeMonitor(await sessionOf(home, { telemetry: rows }, { roofline: null }))).data.devices[0]!;
    expect((await deviceOfRows(telemetry)).throttling).toMatchObject({
      share: { value: null, reason: { code: 'no_throttle_reasons' } },
      periods: [],
    });
    const violations = [0, 1, 2, 3].map((t) => telemetryRow(t, 'power_violation_percent', 0));
    expect((await deviceOfRows([...telemetry, ...violations])).throttling.share).toMatchObject({ value: 0 });
  });

  test('a pause of the recorder is a gap: a sample covers at most three usual periods', async () => {
    const seconds = [0, 0.1, 0.2, 0.3, 0.4, 10, 10.1, 10.2];
    const telemetry = seconds.map((t) => telemetryRow(t, 'utilization_percent', 0));
    const { data } = await analyzeMonitor(await sessionOf(home, { telemetry }, { roofline: null }));
    // 0 to 0.4 s and 0.3 s more. The period from 10 to 10.2 s is too short.
    expect(data.devices[0]!.idle.periods).toEqual([{ start_ns: 0, dur_ns: expect.closeTo(0.7e9, -3) }]);
    expect(data.devices[0]!.idle.share.value).toBeCloseTo(0.7 / 0.9, 9);
  });

  test('a recording of the host alone has no devices', async () => {
    const telemetry = [0, 1, 2].map((t) => telemetryRow(t, 'utilization_percent', 50, 'host'));
    const { data } = await analyzeMonitor(await sessionOf(home, { telemetry }, { roofline: null }));
    expect(data.devices).toEqual([]);
    expect(data.host.metrics).toMatchObject([{ scope: 'host', mean: 50, n: 3 }]);
    await expect(analyzeMonitor(await sessionOf(home, {}, { roofline: null }))).rejects.toMatchObject({
      code: 'E_USAGE',
    });
  });
});

describe('recordings of nvidia-smi on an H200', () => {
  async function importLog(importer: Importer, name: string) {
    const path = join('test/fixtures/nvidia-smi-580-h200', name);
    const writer = await createSession({ home, label: 'smi', kind: 'import' });
    await importer.load(path, writer, {
      execution_id: 'nvidia-smi',
      capture_id: 'nvidia-smi',
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: null },
    });
    const { id } = await writer.finish({ ...summary, hardware: { gpu_name: 'NVIDIA H200' } });
    return { data: (await analyzeMonitor(await openSession(id, home))).data, path };
  }
  const cellsOf = (path: string) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => /^\s*\d/.test(line))
      .map((line) =>
        line
          .trim()
          .split(/\s+/)
          .map((cell) => Number.parseFloat(cell)),
      );

  test('reads a log of dmon -o TD', async () => {
    const { data, path } = await importLog(nvidiaSmiDmonImporter, 'nvidia-smi-dmon-TD.txt');
    const watts = cellsOf(path.trim()).map((cells) => cells[3]!);
    const [gpu] = data.devices;
    const power = gpu!.metrics.find(({ metric }) => metric === 'power_w')!;
    expect(power.n).toBe(watts.length);
    expect(power.max).toBe(Math.max(...watts));
    // The last sample covers no time.
    const covered = watts.slice(0, -1);
    expect(power.mean).toBeCloseTo(covered.reduce((a, b) => a + b) / covered.length, 9);
    expect(gpu!.name).toBe('NVIDIA H200');
    expect(data.sample_hz.value).toBeCloseTo(1, 9);
    expect(gpu!.idle.count).toBe(1);
    expect(gpu!.power.energy_j.value).toBeCloseTo(
      watts.slice(0, -1).reduce((sum, w) => sum + w, 0),
      6,
    );
  });

  test('--query-gpu: 5 Hz, always idle, and the idle bit is not throttling', async () => {
    const { data } = await importLog(nvidiaSmiQueryImporter, 'nvidia-smi-query.csv');
    const [gpu] = data.devices;
    expect(data.sample_hz.value!).toBeCloseTo(5, 0);
    expect(gpu!.throttling.share.value!).toBeLessThan(0.5);
    expect(gpu!.memory.total_bytes.value).toBe(143_771 * 2 ** 20);
    expect(data.plan.source).toBe('files');
  });
});

describe('a recording of inferscope on an H200', () => {
  test('the program slept for 3 s between two periods at the power cap', async () => {
    const { id } = await importSession('test/fixtures/monitor-0.1-h200/session.tar.gz', home);
    const { data } = await analyzeMonitor(await openSession(id, home));
    const [gpu] = data.devices;
    expect(data.plan).toMatchObject({ tool: 'NVML', driver: '580.159.04', program: { exit_code: 0 } });
    // Loading torch, and the sleep.
    expect(gpu!.idle.count).toBe(2);
    expect(gpu!.idle.periods[1]!.dur_ns / 1e9).toBeCloseTo(3, 0);
    expect(gpu!.throttling.reasons.map(({ reason }) => reason)).toEqual(['sw_power_cap']);
    // It was capped whenever it worked, so the clock drop is relative to its maximum, 1980 MHz.
    expect(gpu!.clock.usual_mhz).toMatchObject({
      value: 1980,
      source: expect.stringContaining('highest clock'),
    });
    for (const { clock_drop } of gpu!.throttling.periods) {
      expect(clock_drop!).toBeGreaterThan(0.1);
      expect(clock_drop!).toBeLessThan(0.4);
    }
    // Two sources of energy: the driver's counter, and instantaneous power over time.
    const power = gpu!.metrics.find(({ metric }) => metric === 'power_instant_w')!;
    expect(gpu!.power.energy_j).toMatchObject({ source: expect.stringContaining('counter') });
    expect(gpu!.power.energy_j.value! / (power.mean * data.duration_s.value!)).toBeCloseTo(1, 1);
    expect(gpu!.processes).toMatchObject([{ name: 'python3', here: true }]);
    expect(data.sample_hz.value).toBeCloseTo(20, 0);
  });
});
