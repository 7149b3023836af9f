import type { EChartsOption } from 'echarts';
import { describe, expect, it } from 'vitest';
import type { BenchSpread } from '../../model/documents/bench.js';
import type { Block, View } from '../../views/block.js';
import { benchView } from '../../views/bench.js';
import { fitLines, spreadChart, throughputChart, tpotChart } from '../../views/bench-charts.js';
import { batchLines, boxOf, comparedPoints, kneeOf, spreadRows } from '../../views/bench-series.js';
import type { Chart, Panel } from '../../views/chart.js';
import { memoryView } from '../../views/memory.js';
import { profileView } from '../../views/profile.js';
import { rankStrip } from '../../views/rank-strip.js';
import { repeatLabels } from '../../views/profile-series.js';
import { samplesBlock } from '../../views/samples.js';
import { testBench } from '../../views/test-bench.js';
import { testMemory } from '../../views/test-memory.js';
import { hostileText, testProfile } from '../../views/test-profile.js';
import { themes } from '../palette.js';
import { escapeHtml, textOn, tip } from './chart.js';
import { endLabelShifts, withIntervals } from './lines.js';
import { heightOf, keyOf, optionOf } from './option.js';
import { placedBars } from './waterfall.js';

const result = testProfile().data;

interface Item {
  value: number | [number, number];
}
interface Drawn {
  name?: string;
  type: string;
  data: Item[];
  markArea?: { data: [{ yAxis?: number }, { yAxis?: number }][] };
  markLine?: { data: { xAxis: number; label: { formatter: string; distance: number } }[] };
  tooltip?: { formatter: (params: unknown) => string };
}
type Option = Omit<EChartsOption, 'series' | 'yAxis' | 'grid'> & {
  series: Drawn[];
  yAxis: { max: number }[];
  grid: unknown[];
};

const place = { theme: themes.light, width: 900 };
const draw = (chart: Chart) => optionOf(chart, place) as unknown as Option;

const chartsOf = (blocks: readonly Block[]): Chart[] =>
  blocks.flatMap((block) => (block.type === 'chart' ? [block.chart] : []));
const allOf = ({ sections }: View): Chart[] => sections.flatMap(({ blocks }) => chartsOf(blocks));
const drawnIn = (id: string, view = profileView(testProfile())): Option[] =>
  chartsOf(view.sections.find((section) => section.id === id)!.blocks).map(draw);

const numbers = ({ data }: Drawn): number[] => data.map(({ value }) => value as number);
const pairs = ({ data }: Drawn) => data.map((item) => (Array.isArray(item) ? item : item.value) as number[]);

it('classes: the segments of a stage, including gaps, sum to its time', () => {
  const [option] = drawnIn('operators');
  for (const stage of [0, 1]) {
    const shares = option!.series.map((drawn) => numbers(drawn)[stage]!);
    expect(shares.reduce((total, share) => total + share, 0)).toBeCloseTo(1, 9);
  }
});

it('layers: the segments of a layer sum to its time', () => {
  const option = drawnIn('layers')[1]!;
  for (const [index, layer] of result.stages[1]!.breakdown!.by_layer.entries()) {
    const stack = option.series.reduce((total, drawn) => total + numbers(drawn)[index]!, 0);
    expect(stack).toBeCloseTo(layer.ms, 9);
  }
});

describe('roofline', () => {
  const { series } = drawnIn('roofline')[0]!;
  const points = (name: string) => pairs(series.find((line) => line.name?.startsWith(name))!);

  it('bandwidth rooflines are FLOP/s = bandwidth × intensity, cut by the highest compute peak', () => {
    for (const [name, rate] of [
      ['L3', 28.4e9],
      ['DRAM', 12.9e9],
    ] as const) {
      for (const [x, y] of points(name)) expect(y! / x!).toBeCloseTo(rate, -3);
      expect(points(name).at(-1)![1]).toBe(612e9);
    }
    // By hand: 208 GFLOP/s / 12.9 GB/s = 16.12 FLOP/byte.
    expect(points('ridge')[0]![0]).toBeCloseTo(16.12, 2);
  });

  it('on a phone, the label of a peak is its type: a longer one would lie on points', () => {
    const chart = allOf(profileView(testProfile())).find(({ form }) => form === 'roofline')!;
    const labelsAt = (width: number): string =>
      JSON.stringify(optionOf(chart, { theme: themes.light, width })?.series);
    expect(labelsAt(900)).toMatch(/"formatter":"\w+ [\d.]+\sGFLOP\/s"/);
    expect(labelsAt(350)).not.toMatch(/"formatter":"[^"]*FLOP\/s"/);
  });

  it('a stage is at its FLOPs / its clean time; operations without FLOPs have no point', () => {
    const decode = result.stages[1]!;
    expect(points('measured')).toContainEqual([
      decode.intensity_flop_per_byte.value,
      decode.flops.value! / (decode.duration_ms.value! / 1e3),
    ]);
    // 2 stages, and in each gemm, attention, norm and elementwise; no copy, no embedding.
    expect(points('measured')).toHaveLength(10);
  });
});

it('timeline: every stage and operator from its start to its end', () => {
  const { timeline } = result;
  const spans = drawnIn('timeline')[0]!.series[0]!.data as unknown as [number, number, number][];
  expect(spans.length).toBe(timeline!.stages.length + timeline!.events.length);
  const [lane, start, end] = spans.at(-1)!;
  const last = timeline!.events.at(-1)!;
  expect([lane, start]).toEqual([1, last.start_ns / 1e6]);
  expect(end - start).toBeCloseTo(last.dur_ns / 1e6, 9);
});

it('memory: the three points are at their time and size', () => {
  const marks = drawnIn('memory')[0]!.series.find(({ type }) => type === 'scatter')!;
  expect(pairs(marks)).toEqual(
    [
      [0.1, 61],
      [1.7, 207],
      [3.14, 214],
    ].map(([t, mib]) => [t, mib! * 2 ** 20]),
  );
});

it('latency: one panel per metric, outliers with another symbol, the interval in the background', () => {
  const { series } = drawnIn('latency')[0]!;
  expect(series).toHaveLength(3);
  const outliers = series[0]!.data.flatMap((item, index) => ('symbol' in item ? [index] : []));
  expect(outliers).toEqual([8]);
  const e2e = result.latency.e2e_ms;
  const [interval] = series[2]!.markArea!.data;
  expect(interval!.map(({ yAxis }) => yAxis)).toEqual(e2e.value === null ? [] : e2e.ci95);
});

it('latency: a repeat is named by its launch and its number there', () => {
  // The iterations between are warm-ups, which restart with each launch.
  const repeats = [0, 0, 4, 4, 4].map((launch, index) => ({
    iteration: 3 * index,
    launch,
    ttft_ms: 1,
    tpot_ms: 1,
    e2e_ms: 1,
    outlier: false,
  }));
  expect(repeatLabels(repeats)).toEqual(['1.1', '1.2', '2.1', '2.2', '2.3']);
});

it('labels of lines that end close together do not overlap', () => {
  const series = [0, 0.1, 0.2, 16].map((last) => ({
    name: 'gpu0',
    color: 'ink' as const,
    points: [
      [0, 16],
      [1, last],
    ] as [number, number][],
  }));
  const shifts = endLabelShifts({ unit: '', series });
  // The plot is 96 px high; a line ends at 96 × (1 − value / 16).
  const places = [96, 95.4, 94.8, 0].map((level, index) => level + shifts[index]!);
  for (const index of [0, 1, 2])
    expect(places[index]! - places[index + 1]!).toBeGreaterThanOrEqual(13 - 1e-9);
  expect(places[0]).toBe(91);
});

it('a panel with more lines than room for labels names the highest lines inside its plot', () => {
  const series = Array.from({ length: 40 }, (_, index) => ({
    name: `thread ${index}`,
    color: 'ink' as const,
    points: [[0, index === 7 ? 80 : index / 10] as [number, number], [1, 0] as [number, number]],
  }));
  const shifts = endLabelShifts({ unit: 'percent', max: 100, series });
  const named = shifts.flatMap((shift, index) => (shift === null ? [] : [index]));
  expect(named).toEqual([7, 34, 35, 36, 37, 38, 39]);
  // The plot is 96 px high.
  for (const index of named) expect(96 + shifts[index]!).toBeGreaterThanOrEqual(0);
});

it('telemetry: one panel per metric, one line per scope', () => {
  const [option] = drawnIn('telemetry');
  expect(option!.grid).toHaveLength(2);
  expect(option!.series).toHaveLength(4);
});

it('samples on a phone: the title of a panel names its lines, each in its own color', () => {
  const scopes = ['process', 'other_processes', 'inferscope'];
  const points = [
    [0, 1],
    [1, 2],
  ] as [number, number][];
  const samples = scopes.map((scope) => ({ scope, metric: 'cores_busy', unit: '', points }));
  const block = samplesBlock(samples, 'host') as Extract<Block, { type: 'chart' }>;
  const { title } = optionOf(block.chart, { theme: themes.light, width: 330 }) as unknown as {
    title: { text: string; textStyle: { rich: Record<string, { color: string }> } }[];
  };
  for (const name of ['cores busy', 'program', 'other processes', 'inferscope'])
    expect(title[0]!.text).toContain(name);
  const colors = Object.values(title[0]!.textStyle.rich).map(({ color }) => color);
  expect(new Set(colors).size).toBe(scopes.length);
});

it('tooltips are HTML of ECharts, so names in them are escaped and cut', () => {
  expect(escapeHtml(hostileText)).not.toMatch(/[<>"']/);
  expect(tip('<b>', 'x'.repeat(500)).length).toBeLessThan(130);
  const changed = testProfile();
  changed.data.timeline!.names.fill(hostileText);
  const { tooltip, data } = drawnIn('timeline', profileView(changed))[0]!.series[0]!;
  expect(tooltip!.formatter({ dataIndex: data.length - 1 })).not.toMatch(/<(?!b>|\/b>|br>)/);
});

it('every chart builds in both themes at phone and desktop width, with a height, from plain data', () => {
  const views = [profileView(testProfile()), benchView(testBench()), memoryView(testMemory())];
  for (const chart of views.flatMap(allOf)) {
    expect(JSON.parse(JSON.stringify(chart))).toEqual(chart);
    for (const theme of [themes.light, themes.dark])
      for (const width of [330, 900])
        expect(
          (optionOf(chart, { theme, width }) as unknown as Option).series.length,
          chart.form,
        ).toBeGreaterThan(0);
    expect(heightOf(chart), chart.form).toBeGreaterThan(60);
  }
});

it('a color of several items is in the key once, an unused one not at all', () => {
  const row = (name: string, color: 'idle' | 'ink', value: number) => ({ name, color, values: [value] });
  const series = [row('a', 'ink', 1), row('b', 'idle', 1), row('c', 'idle', 1), row('d', 'ink', 0)];
  expect(keyOf({ form: 'bars', kind: 'shares', unit: 'ms', rows: [''], series })).toEqual([
    { name: 'a', color: 'ink' },
    { name: 'b, c', color: 'idle' },
  ]);
  const only = [row('a', 'ink', 1)];
  expect(keyOf({ form: 'bars', kind: 'shares', unit: 'ms', rows: [''], series: only })).toHaveLength(1);
});

it('text on a color is black or white, whichever has more contrast', () => {
  expect([textOn('#eecc00'), textOn('#009e73'), textOn('#0072b2')]).toEqual([
    '#000000',
    '#000000',
    '#ffffff',
  ]);
});

it('a waterfall: each bar starts where the previous one ended, invisible ones are left out', () => {
  const bar = (value: number) => ({ name: String(value), value, meaning: '', color: 'ink' as const });
  const rows = placedBars({
    form: 'waterfall',
    unit: 'ms',
    bars: [bar(5), bar(0), bar(-2)],
    total: { value: 3, meaning: '', shareOf: 'all' },
  });
  expect(rows.map(({ from, value }) => [from, value])).toEqual([
    [0, 5],
    [3, -2],
    [0, 3],
  ]);
});

it('a visible bar below the digits of an uncertain total is not "0 ms"', () => {
  const bar = (value: number) => ({ name: String(value), value, meaning: '', color: 'ink' as const });
  const rows = placedBars({
    form: 'waterfall',
    unit: 'ms',
    bars: [bar(18.5), bar(0.45), bar(0.05)],
    total: { value: 19, meaning: '', shareOf: 'all' },
    halfInterval: 18,
  });
  expect(rows.map(({ text }) => text)).toEqual(['19 ms', '<1 ms', '19 ms']);
});

it('charts next to each other show all their bars, and changes their sign', () => {
  const bar = (name: string, value: number) => ({ name, value, meaning: '', color: 'ink' as const });
  const bars = [bar('A', 2), bar('norm', 0), bar('copy', 0.5)];
  const texts = (longest?: number, signed = false) =>
    placedBars({
      form: 'waterfall',
      unit: 'ms',
      bars,
      signed,
      ...(longest === undefined ? {} : { longest }),
    }).map(({ text }) => text);
  expect(texts()).toEqual(['2.00 ms', '0.50 ms']);
  expect(texts(3)).toEqual(['2.00 ms', '0.00 ms', '0.50 ms']);
  expect(texts(undefined, true)).toEqual(['2.00 ms', '+0.50 ms']);
});

describe('batch', () => {
  const { data } = testBench();

  it('has one line per variant over the batches, with the intervals of its means', () => {
    const { series } = draw(tpotChart(data));
    const spreads = data.variants[1]!.points.slice(0, 4).map(({ latency }) => latency.tpot_ms as BenchSpread);
    const eager = series.find(({ name }) => name === 'mode=eager')!;
    expect(pairs(eager)).toEqual([...spreads.map(({ mean }, index) => [index, mean]), [4, '-']]);
    expect(series.filter(({ type }) => type === 'custom')[1]).toMatchObject({
      clip: true,
      data: spreads.map(({ ci95 }, index) => [index, ...ci95!]),
    });
    const text = eager.tooltip!.formatter({ dataIndex: 0 });
    expect(text).toContain('mode=eager, 1');
    expect(text).toContain('interval');
  });

  it('marks the knee and the batch that does not fit, without overlap', () => {
    const marks = draw(throughputChart(data)).series[0]!.markLine!.data;
    expect(marks.map(({ xAxis, label }) => [xAxis, label.formatter, label.distance])).toEqual([
      [2, 'knee', 4],
      [4, 'out of memory: mode=eager', 18],
    ]);
    expect(kneeOf(data.variants[0]!)).toBe(8);
  });

  it('the thin line is the smallest batch scaled proportionally', () => {
    const [{ series }] = throughputChart(data).panels as [Panel];
    const values = (name: string) => series.find((line) => line.name === name)!.points.map(([, y]) => y!);
    const [first] = values('mode=cudagraph');
    expect(values('proportional to the batch')).toEqual([1, 4, 8, 16, 32].map((size) => first! * size));
  });

  it('points with other lengths are separate lines', () => {
    const otherBench = testBench({ variants: 1 }).data;
    otherBench.variants[0]!.points[1]!.input_len = 256;
    expect(batchLines(otherBench).map(({ name }) => name.replaceAll('\u00a0', ' '))).toEqual([
      '128 in + 64 out',
      '256 in + 64 out',
    ]);
  });

  it('a very wide interval does not flatten the lines', () => {
    const with95 = (high: number) =>
      withIntervals({
        unit: 'ms',
        series: [{ name: 'a', color: 'ink', points: [[0, 10, { ci95: [0, high] }]] }],
      });
    expect([with95(12), with95(400)]).toEqual([12, 20]);
  });
});

describe('spread', () => {
  it("quartiles equal those of numpy.percentile, and Tukey's fences are 1.5 ranges beyond", () => {
    // numpy.percentile([1, 2, 3, 4, 10], [25, 50, 75]) = [2, 3, 4]
    expect(boxOf([10, 2, 3, 1, 4])).toEqual({ q1: 2, median: 3, q3: 4, low: -1, high: 7 });
    expect(boxOf([1, 2, 3])).toBeNull();
  });

  it('has as many triangles as the document counts outliers', () => {
    const { data } = testBench();
    for (const row of spreadRows(data, 'tpot_ms')) {
      expect(row.repeats.filter(({ outlier }) => outlier)).toHaveLength(row.spread.outliers);
      expect(row.repeats).toHaveLength(row.spread.n);
    }
    // 11 points, two variants, one of which lacks one.
    expect(spreadRows(data, 'tpot_ms')).toHaveLength(21);
  });

  it('a document without repeats has boxes without dots', () => {
    const { data } = testBench({ variants: 1 });
    for (const point of data.variants[0]!.points) delete point.repeats;
    const { series } = draw(spreadChart(data, 'e2e_ms'));
    expect(series[0]!.data).toHaveLength(11);
    expect(series[1]!.data).toEqual([]);
  });
});

it('fit: the line is the polynomial of the document, the points are its means', () => {
  const [fit, measured, intervals] = draw(fitLines(testBench({ variants: 1 }).data, 'prompt')).series;
  expect(pairs(fit!)[0]).toEqual([0, 18]);
  expect(pairs(fit!).at(-1)).toEqual([1000, 18 + 12 + 4]);
  expect(measured!.data).toHaveLength(4);
  expect(intervals!.data).toHaveLength(4);
});

it('machine: utilization ends at 100 %, missing values are not drawn', () => {
  const [utilization, idle] = drawnIn('machine', benchView(testBench()));
  expect(utilization!.yAxis[0]!.max).toBe(100);
  expect(pairs(idle!.series.find(({ name }) => name === 'mode=eager')!).at(-1)![1]).toBe('-');
});

it('variants: relative to the first one, for points that both have', () => {
  const groups = comparedPoints(testBench().data, 'tpot_ms');
  expect(groups).toHaveLength(10);
  const bars = drawnIn('variants', benchView(testBench()))[1]!.series;
  expect(numbers(bars[0]!)).toEqual(groups.map(() => 1));
  expect(numbers(bars[1]!)).toEqual(groups.map(({ values }) => values[1]! / values[0]!));
});

it.each([
  [16, 326, 16, 1],
  [512, 710, 32, 16],
])(
  'a strip of %i ranks is %i px high with %i labels, from rank 0 every %i',
  (ranks, height, labels, every) => {
    const rankTimes = Array.from({ length: ranks }, (_, rank) => ({ rank, ms: [1] }));
    const [chart] = chartsOf([rankStrip({ steps: [{ first: 1, last: 1 }], ranks: rankTimes })]);
    expect(heightOf(chart!)).toBe(height);
    expect(keyOf(chart!).map(({ name }) => name)).toEqual([
      'median rank or less',
      '25 % longer',
      '50 % longer or more',
    ]);
    const { data, axisLabel } = draw(chart!).yAxis as unknown as {
      data: string[];
      axisLabel: { interval: (index: number) => boolean };
    };
    const shown = data.filter((_, index) => axisLabel.interval(index)).map(Number);
    expect(shown.toReversed()).toEqual(Array.from({ length: labels }, (_, nth) => nth * every));
  },
);

it('an axis of processes counts in whole numbers', () => {
  const series = {
    scope: 'gpu0',
    metric: 'cores',
    unit: 'processes',
    points: [[0, 0] as const, [1, 1] as const],
  };
  const [chart] = chartsOf([samplesBlock([series], 'processes')]);
  expect(draw(chart!).yAxis[0]).toMatchObject({ minInterval: 1 });
});
