import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { bytes, quantity, toolJson } from './amd-json.js';
import { rocmSmiCards, rocmSmiProcesses } from './amd-rocm-smi.js';
import { amdSmiMetric, amdSmiProcesses, amdSmiStatic } from './amd-smi.js';
import { openAmd } from './amd.js';
import { startDeviceSampler } from './run/device-sampler.js';

const folder = resolve('test/fixtures/amd-smi-from-docs');
const fixture = (name: string) => toolJson(readFileSync(join(folder, name), 'utf8'));
const mebibyte = 2 ** 20;

test('reads quantities in all formats that AMD prints', () => {
  expect(quantity({ value: 42, unit: '%' })).toEqual({ value: 42, unit: '%' });
  expect(quantity('(1090Mhz)')).toEqual({ value: 1090, unit: 'Mhz' });
  expect(quantity('22.0')).toEqual({ value: 22, unit: '' });
  expect([quantity('N/A'), quantity(undefined), quantity({ value: 'N/A', unit: 'W' })]).toEqual([
    null,
    null,
    null,
  ]);
  expect(bytes({ value: 2, unit: 'GB' })).toBe(2 * 2 ** 30);
  expect(() => toolJson('ERROR: no device')).toThrow(SyntaxError);
});

describe('amd-smi', () => {
  test('an MI300X: fastest die, hotspot, violations as NVML bits; a GPU without values', () => {
    const [first, second] = amdSmiMetric(fixture('metric-mi300x.json'));
    expect(first).toMatchObject({
      index: 0,
      memoryTotalBytes: 196_592 * mebibyte,
      energyJ: 12_345.5,
      sample: {
        utilizationPercent: 91,
        memoryUtilizationPercent: 66,
        powerW: 742,
        smClockMhz: 1410,
        memoryClockMhz: 1300,
        temperatureC: 71,
        memoryUsedBytes: 1024 * mebibyte,
        memoryFreeBytes: 195_568 * mebibyte,
        // power cap and heat of the memory
        throttleBits: 0x44,
      },
      details: { memoryTemperatureC: 58, pcieLinkGen: 5, pcieLinkWidth: 16, fanPercent: null },
    });
    expect(second!.index).toBe(1);
    expect(Object.values(second!.sample).every((value) => value === null)).toBe(true);
  });

  test('a Radeon after a warning: throttled without a reason; a constant energy counter is ignored', () => {
    const [gpu] = amdSmiMetric(fixture('metric-radeon.txt'));
    expect(gpu!.sample).toMatchObject({
      utilizationPercent: 42,
      powerW: 171,
      throttleBits: 0x8,
      temperatureC: 63,
    });
    expect(gpu!.energyJ).toBeNull();
    expect(gpu!.details).toMatchObject({ fanPercent: 49.8, pcieLinkGen: 1, pcieLinkWidth: 8 });
  });

  test('reads names, limits and processes', () => {
    expect(amdSmiStatic(fixture('static.json'))).toEqual([
      { index: 0, name: 'AMD Instinct MI300X', powerLimitW: 700 },
    ]);
    const processes = amdSmiProcesses(fixture('process.json'));
    expect(processes.get(0)).toEqual([
      { pid: 4242, usedBytes: 2 ** 30 },
      { pid: 5150, usedBytes: 512 * mebibyte },
    ]);
    expect(processes.get(1)).toEqual([]);
  });
});

test('rocm-smi: reads the headings of two generations', () => {
  const cards = rocmSmiCards(fixture('rocm-smi.json'));
  expect(cards).toHaveLength(2);
  expect(cards[0]).toMatchObject({
    name: 'Radeon RX 7900 XT',
    memoryTotalBytes: 21_458_059_264,
    sample: {
      utilizationPercent: 37,
      memoryUtilizationPercent: 12,
      powerW: 128,
      smClockMhz: 1090,
      memoryClockMhz: 1600,
      temperatureC: 51,
      memoryUsedBytes: 27_856_896,
    },
    details: { memoryTemperatureC: 62, fanPercent: 45, powerLimitW: 560 },
  });
  expect(cards[1]).toMatchObject({ name: null, sample: { powerW: 550, utilizationPercent: null } });
});

describe('outputs recorded by other users', () => {
  const recorded = (name: string) =>
    toolJson(readFileSync(resolve('test/fixtures/amd-smi-recorded', name), 'utf8'));

  test('amd-smi of a Radeon: memory of the device; used and free sum to the total', () => {
    const [gpu] = amdSmiMetric(recorded('metric-r9700.json'));
    expect(gpu!.memoryTotalBytes).toBe(30_576 * mebibyte);
    expect(gpu!.sample.memoryUsedBytes).toBe(20_450 * mebibyte);
    expect(gpu!.sample.memoryUsedBytes! + gpu!.sample.memoryFreeBytes!).toBe(gpu!.memoryTotalBytes);
    expect(gpu!.sample).toMatchObject({ utilizationPercent: 91, smClockMhz: 2774, throttleBits: 0x8 });
  });

  test('amd-smi: memory by process, on the GPU that it names', () => {
    expect([...amdSmiProcesses(recorded('process-mi350x.json'))]).toEqual([
      [
        4,
        [
          { pid: 1, usedBytes: 0 },
          { pid: 710_898, usedBytes: 200_145_596_416 },
        ],
      ],
    ]);
  });

  test('rocm-smi of three generations: memory of the device, in bytes', () => {
    const cards = ['rocm-smi-r9700-and-780m.json', 'rocm-smi-680m.json', 'rocm-smi-mi350x.txt'].flatMap(
      (name) => rocmSmiCards(recorded(name)),
    );
    expect(
      cards.map(({ index, name, memoryTotalBytes, sample }) => [
        index,
        name,
        memoryTotalBytes,
        sample.memoryUsedBytes,
      ]),
    ).toEqual([
      [0, null, 34_208_743_424, 29_225_381_888],
      [1, null, 4_294_967_296, 72_495_104],
      [0, 'Rembrandt [Radeon 680M]', 536_870_912, 482_263_040],
      [0, null, 308_902_100_992, 200_804_560_896],
    ]);
    // rocm-smi's own percentage at the same moment.
    expect(Math.trunc((29_225_381_888 / 34_208_743_424) * 100)).toBe(85);
    expect(cards.map(({ sample }) => sample.powerW)).toEqual([19, 12.134, 9.215, 266]);
  });

  test("rocm-smi: memory by process; the only process uses all memory except the driver's share", () => {
    const document = recorded('rocm-smi-mi350x.txt');
    const processes = rocmSmiProcesses(document);
    expect(processes).toEqual([
      { pid: 710_898, usedBytes: 200_145_596_416 },
      { pid: 721_888, usedBytes: 0 },
    ]);
    const [card] = rocmSmiCards(document);
    expect(card!.sample.memoryUsedBytes! - processes[0]!.usedBytes!).toBeLessThan(2 ** 30);
    expect(
      rocmSmiProcesses({ system: { 'PID 7': 'a, b, 2, UNKNOWN, 0, 0', 'Driver version': '6' } }),
    ).toEqual([{ pid: 7, usedBytes: null }]);
    expect(rocmSmiProcesses(recorded('rocm-smi-680m.json'))).toEqual([]);
  });
});

describe('a tool on PATH', () => {
  const place = mkdtempSync(join(tmpdir(), 'inferscope-amd-'));
  afterAll(() => rmSync(place, { recursive: true }));
  /** Creates a program with this name that prints the fixtures. */
  function tool(name: string, lines: string[]): string {
    const path = join(place, name);
    writeFileSync(path, ['#!/bin/sh', ...lines].join('\n'));
    chmodSync(path, 0o755);
    return path;
  }

  test('is read in the background; an equal reading is not a new sample', async () => {
    const path = tool('amd-smi', [
      'case $1 in',
      `metric) cat ${folder}/metric-mi300x.json;;`,
      `static) cat ${folder}/static.json;;`,
      `process) cat ${folder}/process.json;;`,
      'esac',
    ]);
    const gpus = await openAmd({ name: 'amd-smi', path });
    expect(gpus.devices.map(({ index, name, powerLimitW }) => [index, name, powerLimitW])).toEqual([
      [0, 'AMD Instinct MI300X', 700],
      [1, null, null],
    ]);
    const sampler = startDeviceSampler(gpus, { execution_id: 'e', capture_id: 'c', host: 'h' }, 50, true);
    // Waits until all background readings have arrived.
    await expect
      .poll(() => sampler.latest().every(({ details }) => details !== null), { timeout: 60_000 })
      .toBe(true);
    const { telemetry, memory, issues } = sampler.stop();
    gpus.close();
    const rowsOf = (metric: string) => telemetry.filter((row) => row.metric === metric);
    // One row per answer of the tool: no reading is repeated.
    const alike = (metric: string) => {
      const rows = rowsOf(metric);
      expect(new Set(rows.map(({ t_ns }) => t_ns)).size).toBe(rows.length);
      return [...new Set(rows.map(({ scope, value }) => `${scope} ${value}`))];
    };
    expect(alike('power_w')).toEqual(['gpu0 742']);
    expect(alike('throttle_bits')).toEqual([`gpu0 ${0x44}`]);
    expect(rowsOf('energy_j').length).toBeGreaterThan(0);
    expect(rowsOf('pcie_link_gen_current').map(({ value }) => value)).toEqual([5]);
    expect(memory.filter(({ kind }) => kind === 'process').map(({ pid, bytes: b }) => [pid, b])).toEqual([
      [4242, 2 ** 30],
      [5150, 512 * mebibyte],
    ]);
    const missing = issues.find(({ text }) => text.startsWith('gpu1'))?.text;
    expect(missing).toContain('powerW (amd-smi does not report it)');
    expect(missing).toContain('memoryUsedBytes (amd-smi does not report it)');
  });

  test('lists the processes of all GPUs once, also for those that ask while the tool runs', async () => {
    const path = tool('amd-smi', [
      'case $1 in',
      `metric) cat ${folder}/metric-mi300x.json;;`,
      `process) echo >> ${place}/calls; cat ${folder}/process.json;;`,
      'esac',
    ]);
    const gpus = await openAmd({ name: 'amd-smi', path });
    const details = await Promise.all(gpus.devices.map((device) => device.details()));
    gpus.close();
    expect(details.map(({ processes }) => processes?.map(({ pid }) => pid))).toEqual([[4242, 5150], []]);
    expect(readFileSync(join(place, 'calls'), 'utf8')).toBe('\n');
  });

  test('rocm-smi with one card reports the memory of each process', async () => {
    const recorded = resolve('test/fixtures/amd-smi-recorded/rocm-smi-mi350x.txt');
    const path = tool('rocm-smi', [`cat ${recorded}`]);
    const gpus = await openAmd({ name: 'rocm-smi', path });
    const { processes } = await gpus.devices[0]!.details();
    gpus.close();
    expect(processes).toEqual([
      { pid: 710_898, usedBytes: 200_145_596_416 },
      { pid: 721_888, usedBytes: 0 },
    ]);
  });

  test('without a GPU gives a reason', async () => {
    const path = tool('rocm-smi', ['echo "ERROR: Driver not initialized" >&2', 'exit 2']);
    await expect(openAmd({ name: 'rocm-smi', path })).rejects.toThrow('Driver not initialized');
  });
});
