import type { EChartsOption } from 'echarts';
import { describe, expect, it } from 'vitest';
import { themes } from '../palette.js';
import { hostileText, testProfile } from '../../views/test-profile.js';
import { chartNamed, charts, type ChartName } from './registry.js';
import { byteAxis, escapeHtml, secondsLabel, textOn, tip } from './chart.js';
import { endLabelShifts } from './telemetry.js';
import { repeatLabels } from '../../views/profile-series.js';

const result = testProfile().data;

interface Drawn {
  name?: string;
  data: unknown[];
  tooltip?: { formatter: (params: unknown) => string };
}

function build(name: ChartName, part = '', of = result, width = 900): EChartsOption & { series: Drawn[] } {
  return charts[name].build({ result: of, part, theme: themes.light, width }) as EChartsOption & {
    series: Drawn[];
  };
}

const numbers = (data: unknown[]): number[] =>
  data.map((item) => (typeof item === 'number' ? item : (item as { value: number }).value));

it('classes: the segments of a stage, gaps included, are all of its time', () => {
  const { series } = build('classes');
  for (const stage of [0, 1]) {
    const shares = series.map(({ data }) => numbers(data)[stage]!);
    expect(shares.reduce((total, share) => total + share, 0)).toBeCloseTo(1, 9);
  }
});

it('layers: a stack is the layer', () => {
  const layers = result.stages[1]!.breakdown!.by_layer;
  const { series } = build('layers', 'decode');
  for (const [index, layer] of layers.entries()) {
    const stack = series.reduce((total, { data }) => total + numbers(data)[index]!, 0);
    expect(stack).toBeCloseTo(layer.ms, 9);
  }
});

describe('roofline', () => {
  const { series } = build('roofline');
  const points = (name: string) =>
    series
      .find((line) => line.name?.startsWith(name))!
      .data.map(
        (item) => (Array.isArray(item) ? item : (item as { value: number[] }).value) as [number, number],
      );

  it('bandwidth roofs are FLOP/s = bandwidth × intensity, cut by the highest compute roof', () => {
    for (const [name, rate] of [
      ['L3', 28.4e9],
      ['DRAM', 12.9e9],
    ] as const) {
      for (const [x, y] of points(name)) expect(y / x).toBeCloseTo(rate, -3);
      expect(points(name).at(-1)![1]).toBe(612e9);
    }
    // By hand: 208 GFLOP/s / 12.9 GB/s = 16.12 FLOP/byte.
    expect(points('ridge')[0]![0]).toBeCloseTo(16.12, 2);
  });

  it('a stage lies at its FLOPs / its clean time; what computes nothing has no place', () => {
    const decode = result.stages[1]!;
    const measured = points('measured');
    expect(measured).toContainEqual([
      decode.intensity_flop_per_byte.value,
      decode.flops.value! / (decode.duration_ms.value! / 1e3),
    ]);
    // 2 stages, and in each gemm, attention, norm and elementwise; no copy, no embedding.
    expect(measured.length).toBe(10);
  });
});

it('timeline: every stage and operator, from its start to its end', () => {
  const { timeline } = result;
  const spans = build('timeline').series[0]!.data as [number, number, number][];
  expect(spans.length).toBe(timeline!.stages.length + timeline!.events.length);
  const [lane, start, end] = spans.at(-1)!;
  const last = timeline!.events.at(-1)!;
  expect([lane, start]).toEqual([1, last.start_ns / 1e6]);
  expect(end - start).toBeCloseTo(last.dur_ns / 1e6, 9);
});

it('memory: the three points stand at their time and size', () => {
  const marks = build('memory').series[1]!.data as { value: [number, number] }[];
  expect(marks.map(({ value }) => value)).toEqual([
    [0.1, 61],
    [1.7, 207],
    [3.14, 214],
  ]);
});

it('latency: one panel a metric, outliers by another symbol, the interval behind', () => {
  const { series } = build('repeats') as unknown as {
    series: (Drawn & { markArea: { data: [{ yAxis: number }, { yAxis: number }][] } })[];
  };
  expect(series.map(({ name }) => name)).toEqual(['TTFT', 'TPOT', 'end to end']);
  const symbols = series[0]!.data.map((item) => (item as { symbol: string }).symbol);
  expect(symbols.flatMap((symbol, index) => (symbol === 'triangle' ? [index] : []))).toEqual([8]);
  const e2e = result.latency.e2e_ms;
  expect(series[2]!.markArea.data[0]!.map(({ yAxis }) => yAxis)).toEqual(e2e.value === null ? [] : e2e.ci95);
});

it('latency: a repeat is named by its launch and its place there', () => {
  // The iterations between are warm-ups, which start anew with each launch.
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

it('no two labels of a short time axis are the same', () => {
  expect([20.5, 21, 21.5].map(secondsLabel(3))).toEqual(['20.5\u00a0s', '21.0\u00a0s', '21.5\u00a0s']);
  expect(secondsLabel(60)(20)).toBe('20\u00a0s');
});

it('an axis of bytes keeps one unit', () => {
  const { bytes, label } = byteAxis(2.3 * 2 ** 30);
  expect([0, 0.5, 2].map((steps) => label(steps * bytes).replace('\u00a0', ' '))).toEqual([
    '0 GiB',
    '0.5 GiB',
    '2 GiB',
  ]);
  expect(byteAxis(300 * 2 ** 20).bytes).toBe(2 ** 20);
});

it('labels of lines that end together stand above each other', () => {
  const ending = (last: number) => ({
    scope: 'gpu0',
    metric: 'cores_busy',
    unit: 'cores',
    points: [
      [0, 16],
      [1, last],
    ] as [number, number][],
  });
  const shifts = endLabelShifts({ series: [ending(0), ending(0.1), ending(0.2), ending(16)] });
  // The plot is 96 px high; a line ends at 96 × (1 − value / 16).
  const places = [96, 95.4, 94.8, 0].map((own, index) => own + shifts[index]!);
  for (const [a, b] of [
    [0, 1],
    [1, 2],
    [2, 3],
  ] as const)
    expect(places[a]! - places[b]!).toBeGreaterThanOrEqual(13 - 1e-9);
  expect(places[0]).toBe(91);
});

it('telemetry: one panel a metric, a line a scope', () => {
  const option = build('telemetry');
  expect((option.grid as unknown[]).length).toBe(2);
  expect(option.series.map(({ name }) => name)).toEqual(['process', 'cpu0', 'cpu1', 'process']);
});

describe('tooltips', () => {
  it('are HTML of ECharts, so names in them are escaped and cut', () => {
    expect(escapeHtml(hostileText)).not.toMatch(/[<>"']/);
    expect(tip('<b>', 'x'.repeat(500)).length).toBeLessThan(130);
    const changed = structuredClone(result);
    changed.timeline!.names.fill(hostileText);
    const { tooltip, data } = build('timeline', '', changed).series[0]!;
    expect(tooltip!.formatter({ dataIndex: data.length - 1 })).not.toMatch(/<(?!b>|\/b>|br>)/);
  });
});

it('every chart builds in both themes at phone and desktop width, with a height', () => {
  for (const [name, chart] of Object.entries(charts)) {
    for (const theme of [themes.light, themes.dark]) {
      for (const width of [330, 900]) {
        const { series } = chart.build({ result, part: 'decode', theme, width });
        expect((series as unknown[]).length, name).toBeGreaterThan(0);
      }
    }
    expect(chart.height(result, 'decode'), name).toBeGreaterThan(100);
  }
  expect(chartNamed('nothing')).toBeUndefined();
});

it('text on a colour is black or white, whichever is read better', () => {
  expect([textOn('#eecc00'), textOn('#0072b2')]).toEqual(['#000000', '#ffffff']);
});
