import { expect, test } from 'vitest';
import { terminalBlocks } from '../render/terminal/view.js';
import { plainText } from '../render/value.js';
import { textWidth } from '../render/terminal/text.js';
import { liveBlocks, liveLine, type LiveState, sparkline } from './monitor-live.js';

test('a sparkline has one cell per 6 s, newest on the right, and a space for missing values', () => {
  const six = (value: number | null) => Array<number | null>(6).fill(value);
  const some = [...six(0), ...six(null), 40, 50, 60, null, null, null, ...six(100)];
  expect(sparkline(some, 100)).toBe('      ▁ ▅█');
  expect(sparkline([700], 700)).toBe(`${' '.repeat(9)}█`);
  expect(sparkline(Array(90).fill(100), 100)).toBe('█'.repeat(10));
});

const gpu = {
  scope: 'gpu0',
  name: 'NVIDIA H200',
  utilizationPercent: 97,
  memoryUsedBytes: 34.1 * 2 ** 30,
  memoryTotalBytes: 140 * 2 ** 30,
  powerW: 694.4,
  powerLimitW: 700,
  smClockMhz: 1500,
  temperatureC: 55,
  limitedBy: ['power cap'],
  pcieTxMbPerS: 12.2,
  pcieRxMbPerS: 3.4,
  processes: 1,
};
const state: LiveState = {
  title: 'inferscope monitor · 1 GPU by NVML · 20 Hz',
  seconds: 83.4,
  gpus: [gpu, { ...gpu, scope: 'gpu1', utilizationPercent: null, limitedBy: null, powerW: null }],
  host: {
    cpuPercent: 34,
    memoryUsedBytes: 2 ** 30,
    memoryTotalBytes: 2 ** 34,
    treeCores: 1.25,
    treeRssBytes: 2 ** 29,
  },
  history: new Map([
    ['gpu0 utilization', [...Array<number>(6).fill(0), 100, 100, 100, 100, 100, 100]],
    ['gpu0 power', [80, 694]],
    ['host cpu', [34]],
  ]),
};

test('the view fits the terminal, down to 80 columns', () => {
  for (const width of [80, 100, 118, 140, 220]) {
    const lines = terminalBlocks(liveBlocks(state), width).split('\n');
    expect(Math.max(...lines.map(textWidth)), String(width)).toBeLessThanOrEqual(width);
    const text = lines.join('\n');
    for (const part of ['1:23', '97 %', '34.1/140', '694/700 W', '1500 MHz', 'CPU 34 %', '1.3 cores'])
      expect(text).toContain(part);
  }
  expect(terminalBlocks(liveBlocks(state), 140)).toContain('power cap');
  expect(terminalBlocks(liveBlocks(state), 140)).toContain('▁█');
});

test('prints one line per second for logs and leaves out missing values', () => {
  expect(plainText(liveLine(state)).replaceAll('\u00a0', ' ')).toBe(
    '   83 s  GPU 0 97 % 34.1/140 GiB 694/700 W 1500 MHz 55 °C throttled by power cap · GPU 1 34.1/140 GiB 1500 MHz 55 °C · host CPU 34 % · memory 1.00/16.0 GiB · watched 1.3 cores, 512 MiB',
  );
});
