import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { figure } from '../model/figure.js';
import { evenlySpaced } from '../model/evenly-spaced.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { testExplain } from './test-explain.js';
import { bareProfile, hostileProfile, testProfile } from './test-profile.js';
import { textWidth } from '../render/terminal/text.js';
import { identityWords } from '../vocabulary/workload.js';
import type { Block, Table } from './block.js';
import { pointPlace } from './findings.js';
import { profileView } from './profile.js';

const profile = testProfile();
const view = profileView(profile);
const all = (list: readonly Block[]): Block[] =>
  list.flatMap((block) => (block.type === 'fold' ? [block, ...all(block.blocks)] : [block]));
const tables = (id: string, shownView = view): Table[] =>
  all(shownView.sections.find((section) => section.id === id)?.blocks ?? []).flatMap((block) =>
    block.type === 'table'
      ? [block]
      : block.type === 'chart' && block.behind.type === 'table'
        ? [block.behind]
        : [],
  );
const numbers = (table: Table, column: string) => {
  const index = table.columns.findIndex(({ id }) => id === column);
  return table.rows.map(({ cells }) => rawValue(cells[index]!));
};
const profileWithFault = () => {
  const changed = testProfile();
  changed.data.stages[1]!.mbu = figure(1.12, 'ratio', 'test');
  return changed;
};
const clientScript = '"use strict";';

test('stages show time, throughput, roofline, MFU and MBU of the document', () => {
  const [stages] = tables('stages');
  for (const column of ['duration_ms', 'tokens_per_s', 'roofline_ms', 'mfu', 'mbu'] as const)
    expect(numbers(stages!, column)).toEqual(profile.data.stages.map((stage) => stage[column].value));
});

test('intervals are over launches, with one launch over its repeats', () => {
  const titleOf = (shown: typeof profile) => plainText(tables('stages', profileView(shown))[0]!.title);
  const withLaunches = (launches: number) => {
    const changed = testProfile();
    changed.data.latency.launches = launches;
    return titleOf(changed);
  };
  expect(withLaunches(3)).toBe('Times without a profiler; intervals are over launches');
  expect(withLaunches(1)).toBe('Times without a profiler; intervals are over the repeats of one launch');
});

test('points of the roofline and their rows link to their places, if there are any', () => {
  const places = new Map([[pointPlace('prefill'), { link: '/timeline?start=1', text: 'slowest prefill' }]]);
  const withPlaces = profileView(profile, places);
  const chart = withPlaces.sections
    .find(({ id }) => id === 'roofline')!
    .blocks.find((block) => block.type === 'chart')!;
  if (chart.type !== 'chart' || chart.chart.form !== 'roofline') throw new Error('no roofline');
  const links = chart.chart.points.flatMap(({ name, link }) => (link === undefined ? [] : [[name, link]]));
  expect(links).toEqual([['prefill', '/timeline?start=1']]);
  const cells = tables('roofline', withPlaces)[0]!.rows.map(({ cells: [, cell] }) => cell);
  expect(cells.filter((cell) => typeof cell === 'object')).toEqual([
    { link: '/timeline?start=1', text: 'whole stage' },
  ]);
});

test('classes, gaps and remainder sum to the profiled stage', () => {
  const perOperator = tables('operators').filter(({ columns }) =>
    columns.some(({ id }) => id === 'roofline_ms'),
  );
  const stages = profile.data.stages.flatMap(({ breakdown }) => (breakdown ? [breakdown] : []));
  expect(perOperator.length).toBe(stages.length);
  for (const [index, table] of perOperator.entries()) {
    const times = numbers(table, 'time_ms') as number[];
    expect(times.slice(0, -1).reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(times.at(-1)!, 9);
    expect(times.at(-1)).toBe(stages[index]!.stage_ms);
  }
});

test('parts of the peak: largest first, residual last', () => {
  const parts = tables('memory').find(({ columns }) => columns[0]!.id === 'part')!;
  const bytes = numbers(parts, 'bytes') as number[];
  expect(bytes.slice(0, -1)).toEqual(bytes.slice(0, -1).toSorted((a, b) => b - a));
  expect(plainText(parts.rows.at(-1)!.cells[0]!)).toBe('residual');
});

describe('the terminal', () => {
  test.each([
    ['whole', profile],
    ['bare', bareProfile()],
    ['hostile', hostileProfile()],
    ['over 100 %', profileWithFault()],
  ])('%s: lines fit 80 and 120 columns, and names cannot control the terminal', (_, document) => {
    for (const width of [80, 120])
      for (const level of [1, 2] as const) {
        const options = { width, level, explain: testExplain() };
        const text = stripVTControlCharacters(terminalView(profileView(document), options));
        for (const line of text.split('\n').filter((row) => row.trim().includes(' ')))
          expect(textWidth(line), line).toBeLessThanOrEqual(width);
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u00a0]/u);
      }
  });

  test('the summary has request, peak and stages; details are in the report', () => {
    const text = terminalView(view, { width: 80 });
    for (const name of ['request', 'peak memory', 'prefill', 'decode step'])
      expect(text).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    expect(text).not.toContain('Environment');
    const details = terminalView(view, { width: 80, level: 2 });
    for (const title of ['Operators', 'Memory', 'Latency', 'Environment']) expect(details).toContain(title);
  });

  test('a missing value is shown with its reason', () => {
    const text = terminalView(profileView(bareProfile()), { width: 80 }).replaceAll(/\s+/g, ' ');
    expect(text).toContain('no roofline was measured on this machine');
  });
});

describe('the page', () => {
  const page = (shownView = view) => pageOfView(shownView, { clientScript, explain: testExplain() });
  const chartForms = (html: string) => [...html.matchAll(/data-chart="(\w+)"/g)].map(([, name]) => name);

  test('starts with the explanation; every chart has a table behind it', () => {
    const html = page();
    const ids = [...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id);
    expect(ids.slice(0, 4)).toEqual(['waterfall', 'findings', 'overview', 'stages']);
    expect(chartForms(html)).toEqual([
      'waterfall',
      'bars',
      'bars',
      'bars',
      'roofline',
      'timeline',
      'lines',
      'lines',
      'lines',
      'lines',
    ]);
    for (const part of html.split('<figure>').slice(1))
      expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  });

  test('draws no empty chart; an MBU over 100 % is marked as invalid', () => {
    expect(chartForms(page(profileView(bareProfile())))).toEqual(['waterfall', 'lines', 'lines']);
    expect(page(profileView(profileWithFault()))).toContain('112');
    expect(
      page(profileView(profileWithFault())).match(/> invalid<|\(invalid\)/g)!.length,
    ).toBeGreaterThanOrEqual(2);
  });

  test('hostile names stay text; the embedded data is the document', () => {
    const html = pageOfView(profileView(hostileProfile()), { clientScript });
    expect(html).not.toContain('<img');
    const data = /<script type="application\/json" id="profile-data">(.*?)<\/script>/s.exec(html)?.[1];
    expect(JSON.parse(data ?? '')).toEqual(hostileProfile());
  });

  test('an hour at 20 Hz on 128 cores stays a page under 3 MB', () => {
    const long = testProfile();
    const points = evenlySpaced(
      Array.from({ length: 72_000 }, (_, index): [number, number] => [index * 50 + 0.123456, index / 7]),
      72_000,
    );
    long.data.telemetry!.series = Array.from({ length: 128 }, (_, core) => ({
      scope: `cpu${core}`,
      metric: 'utilization_percent',
      unit: '%',
      points,
    }));
    long.data.memory!.series = points.map(([t_ms, bytes]) => ({ t_ms, bytes: bytes * 1e5 }));
    // The client script is about 0.65 MB more.
    expect(pageOfView(profileView(long), { clientScript: '' }).length).toBeLessThan(2.3e6);
  });
});

test('a title given by the user is followed by the program that ran', () => {
  const renamed = testProfile();
  renamed.data.session.title = 'before the change';
  const [first] = profileView(renamed).lead;
  expect(first).toEqual({ type: 'text', text: identityWords(renamed.data.workload) });
});
