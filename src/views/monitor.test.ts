import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { monitorDocumentSchema } from '../model/documents/monitor.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { testMonitor } from './test-monitor.js';
import { hostileText } from './test-profile.js';
import type { Block, Text, View } from './block.js';
import { deviceSeries, hostSeries } from './monitor-series.js';
import { monitorView } from './monitor.js';

const recording = testMonitor();
const view = monitorView(recording);
const all = (list: readonly Block[]): Block[] =>
  list.flatMap((block) => (block.type === 'fold' ? [block, ...all(block.blocks)] : [block]));
const section = (shownView: View, id: string) =>
  all(shownView.sections.find((candidate) => candidate.id === id)?.blocks ?? []);
const fact = (name: string): string =>
  section(view, 'gpu0')
    .flatMap((block) => (block.type === 'facts' ? block.items : []))
    .filter((item) => item.name === name)
    .map(({ text }) => plainText(text).replaceAll('\u00a0', ' '))
    .join();

test('the test document is a valid monitor document', () => {
  expect(monitorDocumentSchema.parse(recording)).toEqual(recording);
});

test('facts of a GPU: idle and throttled time, energy, memory', () => {
  expect(fact('idle')).toBe('25 % of the time, 1 period (under 5 % for at least 500 ms), longest 1.00 s');
  expect(fact('throttled')).toBe(
    '13 % of the time in 300 periods: power cap 13 %; longest 500 ms (from 3.00 s, power cap, SM clock 25 % lower)',
  );
  expect(fact('clock drops')).toBe(
    'SM clock below 90 % of the unthrottled 1 980 MHz for 19 % of the busy time',
  );
  expect(fact('memory')).toBe('peak 14.0 GiB of 80.0 GiB, last − first 4.00 GiB');
});

const rounded = (text: Text) => {
  const value = rawValue(text);
  return typeof value === 'number' ? Number(value.toPrecision(6)) : value;
};

test('shows statistics by metric, and the recorded periods', () => {
  const tables = section(view, 'gpu0').filter((block) => block.type === 'table');
  expect(tables.map(({ rows }) => rows.map(({ cells }) => cells.map(rounded)))).toEqual([
    [
      ['utilization', 67, 33.5, 40.2, 67, 80.4, 100.5, 40],
      ['power (1 s mean)', 400, 200, 240, 400, 480, 600, 40],
    ],
    [[1000, 1000]],
    [[3000, 500, 'power cap', 1485, 0.25]],
  ]);
  const folds = section(view, 'gpu0').flatMap((block) => (block.type === 'fold' ? [block.title] : []));
  expect(folds).toEqual(['Idle periods', 'Throttled periods: 1 longest of 300']);
});

test('the power limit is a line in the power panel', () => {
  const series = deviceSeries(recording.data, 'gpu0');
  expect(series.map(({ scope, metric }) => `${scope} ${metric}`)).toEqual([
    'gpu0 utilization_percent',
    'gpu0 power_w',
    'gpu0 sm_clock_mhz',
    'limit power_w',
  ]);
  expect(series.at(-1)!.points).toEqual([
    [0, 700],
    [4000, 700],
  ]);
  expect(hostSeries(recording.data).map(({ scope }) => scope)).toEqual(['process']);
});

test('a page has a chart per GPU with its key; names of processes cannot inject anything', () => {
  const page = pageOfView(view, { clientScript: '' });
  const gpu = page.split('<section id="gpu0"')[1]!.split('</section>')[0]!;
  expect(gpu).toContain('data-chart="lines"');
  expect(gpu.match(/class="swatch"/g)).toHaveLength(2);
  expect(gpu).not.toContain(hostileText);
  expect(page.split('<section id="host"')[1]).toContain('data-chart="lines"');
});

test.each([80, 120])('the summary fits %i columns and leaves out series and periods', (width) => {
  const lines = stripVTControlCharacters(terminalView(view, { width })).split('\n');
  expect(lines.filter((line) => line.length > width)).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(30);
  expect(lines.join('\n')).not.toMatch(/samples per series|Idle periods/);
});

test('a summary of what was not saved has every row', () => {
  const unsaved = testMonitor();
  unsaved.data.session.id = null;
  const briefOf = (shown: View) =>
    section(shown, 'host').flatMap((block) => (block.type === 'table' ? [block.brief ?? null] : []));
  expect([briefOf(view), briefOf(monitorView(unsaved))]).toEqual([[2], [null]]);
});

test('a program that did not start has no duration', () => {
  const failed = testMonitor();
  failed.data.plan.program = { command: ['x'], exit_code: null, signal: null, start_ns: 0, end_ns: 1e9 };
  const programOf = () =>
    monitorView(failed)
      .lead.flatMap((block) => (block.type === 'facts' ? block.items : []))
      .find(({ name }) => name === 'Program')!.text;
  expect(programOf()).toBe('not started');
  failed.data.plan.program.signal = 'SIGKILL';
  expect(programOf()).toEqual(['killed (SIGKILL), after ', { n: 1000, unit: 'ms' }]);
  failed.data.plan.program.signal = null;
  failed.data.plan.program.exit_code = 0;
  expect(programOf()).toEqual(['exit code 0, after ', { n: 1000, unit: 'ms' }]);
});

test('a recording without a GPU has no GPU section, and says why', () => {
  const without = testMonitor();
  Object.assign(without.data, { devices: [], series: [] });
  without.data.plan.no_gpus = { code: 'no_driver', text: 'libnvidia-ml.so.1 is not installed' };
  without.issues.push({ code: 'no_gpu', severity: 'info', text: 'No GPU was sampled.' });
  const alone = monitorView(without);
  expect(JSON.stringify(alone.lead)).not.toContain('No GPU was sampled');
  expect(section(alone, 'gpu0')).toEqual([]);
  expect(alone.lead.flatMap((block) => (block.type === 'facts' ? block.items : []))).toContainEqual({
    name: 'No GPU',
    text: 'libnvidia-ml.so.1 is not installed',
  });
});

test('a title from a command of several lines is one line', () => {
  const shown = monitorView(recording);
  const text = terminalView({ ...shown, title: 'python3 -c import torch\nx = 1' }, { width: 80 });
  expect(text.split('\n')[0]).toContain('import torch x = 1');
});
