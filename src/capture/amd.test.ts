import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { bytes, quantity, toolJson } from './amd-json.js';
import { rocmSmiCards } from './amd-rocm-smi.js';
import { amdSmiMetric, amdSmiProcesses, amdSmiStatic } from './amd-smi.js';
import { openAmd } from './amd.js';
import { startDeviceSampler } from './run/device-sampler.js';

const folder = resolve('test/fixtures/amd-smi-from-docs');
const fixture = (name: string) => toolJson(readFileSync(join(folder, name), 'utf8'));
const mebibyte = 2 ** 20;

test('quantities in the forms that AMD prints', () => {
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
  test('an MI300X: fastest die, hotspot, violations as NVML bits; a GPU that tells nothing', () => {
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

  test('a Radeon behind a warning: throttled without a reason, an energy counter that stands still is none', () => {
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

  test('names, limits, processes', () => {
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

test('rocm-smi: the headings of two generations', () => {
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

describe('a tool on PATH', () => {
  const place = mkdtempSync(join(tmpdir(), 'inferscope-amd-'));
  afterAll(() => rmSync(place, { recursive: true }));
  /** Prints the fixtures, as the program of that name would. */
  function tool(name: string, lines: string[]): string {
    const path = join(place, name);
    writeFileSync(path, ['#!/bin/sh', ...lines].join('\n'));
    chmodSync(path, 0o755);
    return path;
  }

  test('is read in the background; the same reading twice is one sample', async () => {
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
    await sleep(300);
    const { telemetry, memory, issues } = sampler.stop();
    gpus.close();
    const of = (metric: string) => telemetry.filter((row) => row.metric === metric);
    expect(of('power_w').map(({ scope, value }) => [scope, value])).toEqual([['gpu0', 742]]);
    expect(of('throttle_bits').map(({ value }) => value)).toEqual([0x44]);
    expect(of('energy_j').length).toBeGreaterThan(0);
    expect(of('pcie_link_gen_current').map(({ value }) => value)).toEqual([5]);
    expect(memory.filter(({ kind }) => kind === 'process').map(({ pid, bytes: b }) => [pid, b])).toEqual([
      [4242, 2 ** 30],
      [5150, 512 * mebibyte],
    ]);
    expect(issues.find(({ text }) => text.startsWith('gpu1'))?.text).toContain(
      'powerW (amd-smi does not tell it)',
    );
  });

  test('that has no GPU says so', async () => {
    const path = tool('rocm-smi', ['echo "ERROR: Driver not initialized" >&2', 'exit 2']);
    await expect(openAmd({ name: 'rocm-smi', path })).rejects.toThrow('Driver not initialized');
  });
});
