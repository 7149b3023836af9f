import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { document } from '../model/document.js';
import { type BenchmarkResults, resultsDocumentSchema, resultsVersion } from '../model/documents/results.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { rawValue } from '../render/value.js';
import { testExplain } from './test-explain.js';
import type { Block, Level, Table } from './block.js';
import { resultsView } from './results.js';

const statistic = (name: string, value: number) => ({
  statistic: name,
  value,
  n: 10,
  source: `file: ${name}_x`,
});

const results = document<BenchmarkResults>(
  'results',
  resultsVersion,
  {
    session: { id: 's', name: null, title: 'a.json · GuideLLM', started_at: '2026-11-21T00:00:00Z' },
    captures: [
      {
        capture_id: 'c0',
        tool: { name: 'guidellm', version: '0.6' },
        points: [
          {
            label: 'concurrency 4',
            requests: { ok: 10, failed: 1 },
            metrics: [
              {
                name: 'ttft',
                unit: 'ms',
                definition: 'first token iteration',
                same_definition: true,
                file: [statistic('mean', 40), statistic('p99_step', 90)],
                recomputed: [statistic('mean', 41), statistic('p99', 88)],
              },
              {
                name: 'guidellm.tpot',
                unit: 'ms',
                definition: '(last − start) / n: includes TTFT <b>',
                same_definition: false,
                file: [statistic('value', 12), statistic('p99_step', 13)],
                recomputed: [],
              },
            ],
          },
        ],
      },
    ],
  },
  [{ code: 'all_requests_failed', severity: 'error', text: 'no request completed' }],
);

const view = resultsView(results);
const isTable = (block: Block): block is Block & Table => block.type === 'table';
const tables = (id: string) =>
  view.sections.find((section) => section.id === id)!.blocks.filter((block) => isTable(block));

it('compares loads by our definitions, recomputed if the file has its requests', () => {
  expect(resultsDocumentSchema.safeParse(results).error).toBeUndefined();
  const [loads] = tables('loads');
  expect(loads!.columns.map(({ id }) => id)).toEqual(['load', 'requests', 'ttft_p99']);
  expect(loads!.rows.map(({ cells }) => cells.map(rawValue))).toEqual([
    ['concurrency 4', '10 + 1\u00a0failed', 88],
  ]);
});

it('counts the failed requests of each load of a file with several loads', () => {
  const count = (name: string, unit: string, value: number, recomputed: boolean) => ({
    name,
    unit,
    definition: '',
    same_definition: true,
    file: recomputed ? [] : [statistic('value', value)],
    recomputed: recomputed ? [statistic('value', value)] : [],
  });
  const [capture] = results.data.captures;
  const points = [3, 0].map((failed, i) => ({
    label: `rate ${i}`,
    requests: null,
    metrics: [
      ...capture!.points[0]!.metrics,
      count('completed', 'requests', 7, false),
      count('failed', 'requests', failed, true),
    ],
  }));
  const data = { ...results.data, captures: [{ ...capture!, points }] };
  const several = resultsView({ ...results, data });
  const loads = several.sections[0]!.blocks.find((block) => isTable(block));
  expect(loads!.rows.map(({ cells }) => rawValue(cells[1]!))).toEqual(['7 + 3\u00a0failed', 7]);
  expect(JSON.stringify(several.sections.find(({ id }) => id === 'capture-1'))).toContain(
    JSON.stringify([{ count: 7, unit: 'requests' }, ', ', { count: 3, unit: 'failed' }]).slice(1, -1),
  );
});

it('gives the reasons of missing values below its tables', () => {
  const withReasons = resultsView(results).sections.flatMap(({ blocks }) =>
    blocks.flatMap((block) =>
      isTable(block) && block.rows.length > 0 ? [[block.title, block.reasons]] : [],
    ),
  );
  expect(withReasons).toContainEqual(['Load points, with our definitions', true]);
  expect(withReasons).toContainEqual(['Metrics', true]);
});

it('keeps what the tool wrote and marks metrics that are not defined as ours', () => {
  const [metrics] = tables('capture-1');
  expect(metrics!.columns.map(({ id }) => id)).toEqual(['metric', 'defined', 'mean', 'p99', 'n']);
  expect(metrics!.rows.map(({ level, cells }) => [level, ...cells.map(rawValue)])).toEqual([
    [2, 'ttft', 'same definition', 40, '90.0\u00a0ms †', 10],
    [1, 'ttft *', 'same definition', 41, 88, 10],
    [1, 'guidellm.tpot', 'not comparable', 12, '13.0\u00a0ms †', 10],
  ]);
});

const lines = (level: Level, width: number): string[] =>
  stripVTControlCharacters(terminalView(view, { width, level })).split('\n');

it.each([
  [1, 80],
  [2, 80],
  [2, 120],
] as const)('level %i fits %i columns of a terminal', (level, width) => {
  const text = lines(level, width);
  expect(text.filter((line) => line.length > width)).toEqual([]);
  expect(text.some((line) => line.includes('error: no request completed'))).toBe(true);
  expect(text.some((line) => line.includes('guidellm.tpot'))).toBe(level === 2);
});

it('draws the same values as Markdown and as a page, with names escaped', () => {
  const markdown = markdownView(view);
  expect(markdown).toContain('| ttft \\* | same definition | 41.0 ms | 88.0 ms | 10 |');
  expect(markdown).toContain('includes TTFT &lt;b&gt;');
  const page = pageOfView(view, { clientScript: '"use strict";', explain: testExplain() });
  expect(page).toContain('includes TTFT &lt;b&gt;');
  expect(page).toContain('data-sort="88"');
  expect(page.indexOf('id="waterfall"')).toBeGreaterThan(0);
  expect(page.indexOf('id="waterfall"')).toBeLessThan(page.indexOf('id="loads"'));
});

it("shows a log without comparable metrics by its tool's own metrics", () => {
  const metric = (name: string, unit: string, value: number) => ({
    name,
    unit,
    definition: 'x',
    same_definition: false,
    file: [statistic('value', value)],
    recomputed: [],
  });
  const log = resultsView({
    ...results,
    data: {
      ...results.data,
      captures: [
        {
          capture_id: 'c0',
          tool: { name: 'vLLM', version: null },
          points: [
            { label: 'engine', requests: null, metrics: [metric('vllm.kv_cache_tokens', 'tokens', 621_392)] },
            { label: 'rank 0', requests: null, metrics: [metric('vllm.weights', 'GiB', 55.2)] },
          ],
        },
      ],
    },
  });
  const [table, ...more] = log.sections[0]!.blocks.filter((block) => isTable(block));
  expect(more).toEqual([]);
  expect(table!.rows.map(({ cells }) => cells.map(rawValue))).toEqual([
    ['engine', 'vllm.kv_cache_tokens', 621_392],
    ['rank 0', 'vllm.weights', 55.2],
  ]);
  expect(JSON.stringify(log.lead[0])).toContain('2 metrics of vLLM');
  expect(JSON.stringify(view.lead[0])).toContain('1 load point of guidellm 0.6');
});

it('lists one row per load point if each has one metric, so that no point is lost at 80 columns', () => {
  const names = ['pp32', 'tg8', 'pp32+tg8', 'pp32 @ d16', 'tg8 @ d16', 'pp32+tg8 @ d16'];
  const points = names.map((label, i) => ({
    label,
    requests: null,
    metrics: [
      {
        name: `llama_bench.metric_${i % 3}`,
        unit: 'tok/s',
        definition: 'x',
        same_definition: false,
        file: [statistic('mean', 100 + i)],
        recomputed: [],
      },
    ],
  }));
  const data = {
    ...results.data,
    captures: [{ capture_id: 'c0', tool: { name: 'llama-bench', version: null }, points }],
  };
  const text = terminalView(resultsView(document('results', resultsVersion, data)), { width: 80 });
  for (const name of names) expect(text).toContain(name);
  expect(text).not.toContain('no room');
});

it('lists each metric of a log once, with all statistics and its number of samples', () => {
  const metric = {
    name: 'llama_bench.decode',
    unit: 'tok/s',
    definition: 'x',
    same_definition: false,
    file: [statistic('mean', 100), statistic('sd', 2)],
    recomputed: [],
  };
  const data = {
    ...results.data,
    captures: [
      {
        capture_id: 'c0',
        tool: { name: 'llama-bench', version: null },
        points: [{ label: 'tg8', requests: null, metrics: [metric] }],
      },
    ],
  };
  const log = resultsView(document('results', resultsVersion, data));
  expect(log.sections.map(({ id }) => id)).toEqual(['loads', 'definitions']);
  expect(log.lead.map(({ type }) => type)).toEqual(['facts', 'issues']);
  const table = log.sections[0]!.blocks.find((block) => isTable(block));
  expect(table!.columns.map(({ id }) => id)).toEqual(['point', 'metric', 'mean', 'sd', 'n']);
  expect(table!.rows.map(({ cells }) => cells.map(rawValue))).toEqual([
    ['tg8', 'llama_bench.decode', 100, 2, 10],
  ]);
});

it('names six fields of a definition and counts the others', () => {
  const fields = Array.from({ length: 8 }, (_, i) => ({
    ...statistic(`p${i}`, i),
    source: `file: field_${i}`,
  }));
  const [capture] = results.data.captures;
  const [point] = capture!.points;
  const metrics = [{ ...point!.metrics[0]!, file: fields }];
  const data = { ...results.data, captures: [{ ...capture!, points: [{ ...point!, metrics }] }] };
  const definitions = resultsView({ ...results, data }).sections.find(({ id }) => id === 'definitions')!;
  const table = definitions.blocks.find((block) => isTable(block));
  expect(rawValue(table!.rows[0]!.cells.at(-1)!)).toBe(
    'field_0, field_1, field_2, field_3, field_4, field_5, 2 more',
  );
});

it('names six metrics of a tool in the summary and counts the others', () => {
  const [capture] = results.data.captures;
  const [point] = capture!.points;
  const metrics = Array.from({ length: 8 }, (_, i) => ({
    ...point!.metrics[0]!,
    name: `tool.m${i}`,
    same_definition: false,
  }));
  const data = { ...results.data, captures: [{ ...capture!, points: [{ ...point!, metrics }] }] };
  expect(terminalView(resultsView({ ...results, data }), { width: 120, level: 3 })).toContain(
    'not comparable: tool.m0, tool.m1, tool.m2, tool.m3, tool.m4, tool.m5, 2 more.',
  );
});

it('draws latencies with our definition against load, ordered by served rate', () => {
  const point = (label: string, rate: number, ttft: number) => ({
    label,
    requests: null,
    metrics: [
      { name: 'request_throughput', unit: 'req/s', ...ours, file: [statistic('mean', rate)] },
      { name: 'ttft', unit: 'ms', ...ours, file: [statistic('median', ttft), statistic('p99', 2 * ttft)] },
      { name: 'guidellm.tpot', unit: 'ms', ...ours, same_definition: false, file: [statistic('median', 1)] },
    ],
  });
  const ours = { definition: '', same_definition: true, recomputed: [] };
  const { session, captures } = results.data;
  const loads = [point('throughput', 9, 70), point('synchronous', 1, 40), point('constant', 5, 50)];
  const several = { ...results, data: { session, captures: [{ ...captures[0]!, points: loads }] } };
  const [block, ...otherBlocks] = resultsView(several).sections.find(({ id }) => id === 'latency')!.blocks;
  expect(otherBlocks).toEqual([]);
  expect(block).toMatchObject({
    title: 'TTFT',
    chart: {
      x: { categories: ['synchronous', 'constant', 'throughput'] },
      panels: [
        {
          series: [
            {
              name: 'median',
              points: [
                [0, 40],
                [1, 50],
                [2, 70],
              ],
            },
            {
              name: 'p99',
              points: [
                [0, 80],
                [1, 100],
                [2, 140],
              ],
            },
          ],
        },
      ],
    },
  });
  const onlyP99 = loads.map((load) => ({
    ...load,
    metrics: load.metrics.map((metric) => ({
      ...metric,
      file: metric.file.filter(({ statistic: id }) => id !== 'median'),
    })),
  }));
  const oneLine = { ...results, data: { session, captures: [{ ...captures[0]!, points: onlyP99 }] } };
  const section = resultsView(oneLine).sections.find(({ id }) => id === 'latency')!;
  expect(section.blocks).toMatchObject([{ title: 'TTFT p99', label: 'TTFT p99 against the load' }]);
  expect(view.sections.map(({ id }) => id)).not.toContain('latency');
});

it('explains the marks of the table of loads', () => {
  const changed = structuredClone(results);
  const [ttft] = changed.data.captures[0]!.points[0]!.metrics;
  ttft!.recomputed = [];
  const text = stripVTControlCharacters(terminalView(resultsView(changed), { width: 120 }));
  expect(text).toContain('† nearest rank, not interpolated');
});

it('shows the rate of all tokens for a tool that counts prompt and output together', () => {
  const point = results.data.captures[0]!.points[0]!;
  const rate = (name: string) => ({
    name,
    unit: 'tok/s',
    definition: 'tokens / time',
    same_definition: true,
    file: [statistic('value', 12_800)],
    recomputed: [],
  });
  const headsWith = (...names: string[]) => {
    const captures = [{ ...results.data.captures[0]!, points: [{ ...point, metrics: names.map(rate) }] }];
    const shown = resultsView({ ...results, data: { ...results.data, captures } });
    return (shown.sections[0]!.blocks[0] as Table).columns.map(({ head }) => head);
  };
  expect(headsWith('total_throughput')).toEqual(['load', 'requests', 'tok/s in + out']);
  expect(headsWith('total_throughput', 'output_throughput')).toEqual(['load', 'requests', 'tok/s']);
});
