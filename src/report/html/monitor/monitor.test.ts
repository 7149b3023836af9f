import { expect, test } from 'vitest';
import { monitorDocumentSchema } from '../../../model/documents/monitor.js';
import { deviceSeries, deviceShades, hostSeries } from '../../charts/monitor/device.js';
import { themes } from '../../palette.js';
import { hostileText } from '../../test-profile.js';
import { testMonitor } from '../../test-monitor.js';
import { monitorReport } from './monitor.js';

const made = testMonitor();
const page = () => monitorReport(made, { clientScript: '"use strict";' });

test('the document is one that monitor writes', () => {
  expect(monitorDocumentSchema.parse(made)).toEqual(made);
});

test('a section a GPU: chart, facts, metrics and periods; names of processes cannot do anything', () => {
  const section = page().split('<section id="gpu0"')[1]!.split('</section>')[0]!;
  const text = section.replaceAll(/<[^>]+>/g, ' ').replaceAll(/&nbsp;|\u00a0|\s+/g, ' ');
  expect(section).toContain('data-chart="monitor_device" data-part="gpu0"');
  expect(text).toContain('25 % of the time, 1 period (under 5 % for at least 500 ms), longest 1 000 ms');
  expect(text).toContain('Throttled periods: the 1 longest of 300');
  expect(text).toContain('3 000 ms 500 ms sw power cap 1 485 MHz 25 %');
  expect(section).not.toContain(hostileText);
  expect(page()).toContain('data-chart="monitor_host"');
});

test('the power limit is a line of the panel of the power; idle and held-down periods are shaded', () => {
  const series = deviceSeries(made.data, 'gpu0');
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
  const shades = deviceShades(made.data.devices[0], themes.light);
  expect(shades.map(({ name, from_ms, to_ms }) => [name, from_ms, to_ms])).toEqual([
    ['idle', 1000, 2000],
    ['throttled', 3000, 3500],
  ]);
  expect(hostSeries(made.data).map(({ scope }) => scope)).toEqual(['process']);
});

test('a recording without a GPU has no section for one', () => {
  const without = testMonitor();
  Object.assign(without.data, { devices: [], series: [] });
  without.data.plan.no_gpus = { code: 'no_driver', text: 'libnvidia-ml.so.1 is not installed' };
  const html = monitorReport(without, { clientScript: '' });
  expect(html).not.toContain('id="gpu0"');
  expect(html).toContain('None was read: libnvidia-ml.so.1 is not installed');
});
