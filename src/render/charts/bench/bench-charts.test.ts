import type { EChartsOption } from 'echarts';
import { describe, expect, it } from 'vitest';
import type { BenchResult, BenchSpread } from '../../../model/documents/bench.js';
import { batchLines, boxOf, compared, kneeOf, spreadRows } from '../../../views/bench-series.js';
import { themes } from '../../palette.js';
import { testBench } from '../../../views/test-bench.js';
import { withIntervals } from '../lines.js';
import { benchCharts } from '../registry.js';

interface Drawn {
  name?: string;
  type: string;
  data: unknown[];
  markLine?: { data: { xAxis: number; label: { formatter: string; distance: number } }[] };
  tooltip?: { formatter: (params: unknown) => string };
}

function build(
  name: keyof typeof benchCharts,
  part = '',
  result: BenchResult = testBench().data,
  width = 900,
) {
  const input = { result, part, theme: themes.light, width };
  return benchCharts[name].build(input) as EChartsOption & {
    series: Drawn[];
    xAxis: { data: string[] };
    yAxis: { max: number };
  };
}

describe('batch', () => {
  it('a line a variant over the batches, with the intervals of its means', () => {
    const { data } = testBench();
    const { series, xAxis } = build('bench_batch', 'tpot_ms');
    expect(xAxis.data).toEqual(['1', '4', '8', '16', '32']);
    const spreads = data.variants[1]!.points.slice(0, 4).map(({ latency }) => latency.tpot_ms as BenchSpread);
    const eager = series.findIndex(({ name }) => name === 'mode=eager');
    expect(series[eager]!.data).toEqual([...spreads.map(({ mean }) => mean), null]);
    expect(series[eager + 1]).toMatchObject({
      type: 'custom',
      clip: true,
      data: spreads.map(({ ci95 }, at) => [at, ...ci95!]),
    });
    const tip = series[eager]!.tooltip!.formatter({ dataIndex: 0 });
    expect(tip).toContain('mode=eager, 1');
    expect(tip).toContain('interval');
  });

  it('marks the knee and the batch that does not fit, at their place and apart from each other', () => {
    const { series } = build('bench_batch', 'output_tokens_per_s');
    const marks = series.find(({ name }) => name === 'marks')!.markLine!.data;
    expect(marks.map(({ xAxis, label }) => [xAxis, label.formatter, label.distance])).toEqual([
      [2, 'knee', 4],
      [4, 'out of memory: mode=eager', 18],
    ]);
    expect(kneeOf(testBench().data.variants[0]!)).toBe(8);
  });

  it('the thin line is the smallest batch times the batch', () => {
    const { series } = build('bench_batch', 'output_tokens_per_s');
    const values = (name: string) => series.find((one) => one.name === name)!.data as number[];
    const [first] = values('mode=cudagraph');
    expect(values('proportional to the batch')).toEqual([1, 4, 8, 16, 32].map((size) => first! * size));
  });

  it('points of other lengths are lines of their own', () => {
    const { data } = testBench({ variants: 1 });
    data.variants[0]!.points[1]!.input_len = 256;
    expect(batchLines(data).map(({ name }) => name.replaceAll('\u00a0', ' '))).toEqual([
      '128 in + 64 out',
      '256 in + 64 out',
    ]);
  });

  it('an interval that dwarfs what was measured does not press the lines to the floor', () => {
    const line = { name: 'a', color: '', symbol: '', dash: 'solid' as const };
    const with95 = (high: number) =>
      withIntervals(10, [{ ...line, values: [{ value: 10, ci95: [0, high] }] }]);
    expect([with95(12), with95(400)]).toEqual([12, 20]);
  });
});

describe('spread', () => {
  it('quartiles are those of numpy.percentile, and Tukey’s fences lie 1.5 ranges beyond', () => {
    // numpy.percentile([1, 2, 3, 4, 10], [25, 50, 75]) = [2, 3, 4]
    expect(boxOf([10, 2, 3, 1, 4])).toEqual({ q1: 2, median: 3, q3: 4, low: -1, high: 7 });
    expect(boxOf([1, 2, 3])).toBeNull();
  });

  it('as many repeats are triangles as the document counts outliers', () => {
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
    const { series } = build('bench_spread', 'e2e_ms', data);
    expect(series[0]!.data).toHaveLength(11);
    expect(series[1]!.data).toEqual([]);
  });
});

it('fit: the line is the polynomial of the document, the points are its means', () => {
  const { series } = build('bench_fit', 'prompt', testBench({ variants: 1 }).data);
  const [fit, measured, intervals] = series;
  const line = fit!.data as [number, number][];
  expect(line[0]).toEqual([0, 18]);
  expect(line.at(-1)).toEqual([1000, 18 + 12 + 4]);
  expect(measured!.data).toHaveLength(4);
  expect(intervals!.data).toHaveLength(4);
});

it('machine: utilisation and idle in their own units, missing ones not drawn', () => {
  const { series } = build('bench_machine', 'decode_idle');
  expect(series.find(({ name }) => name === 'mode=eager')!.data.at(-1)).toBeNull();
  expect(build('bench_machine', 'gpu_utilization').yAxis.max).toBe(105);
});

it('variants: multiples of the first one, for points that both have', () => {
  const { data } = testBench();
  const groups = compared(data, 'tpot_ms');
  expect(groups).toHaveLength(10);
  const bars = build('bench_variants', 'tpot_ms').series;
  expect(bars[0]!.data).toEqual(groups.map(() => 1));
  expect(bars[1]!.data).toEqual(groups.map(({ values }) => values[1]! / values[0]!));
});
