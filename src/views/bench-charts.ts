import type { BenchFit, BenchResult } from '../model/documents/bench.js';
import { lineMark } from '../vocabulary/colors.js';
import type { LinesChart, Point, Series, SpreadChart } from './chart.js';
import {
  batchChart,
  batchLines,
  batchSizes,
  fitsOf,
  kneeOf,
  meanOf,
  spreadRows,
  type TimedMetric,
} from './bench-series.js';

/** Marks of knees and limits, one per batch size; with the name of the line if lines differ. */
function marksOf(data: BenchResult): NonNullable<LinesChart['marks']> {
  const lines = batchLines(data);
  const series = lines.flatMap(({ name, variant, points }) => {
    const limit = points.find(({ outcome }) => outcome === 'out_of_memory');
    return [
      { size: kneeOf(variant), what: 'knee', name },
      { size: limit?.batch_size ?? null, what: 'out of memory', name },
    ];
  });
  return batchSizes(lines).flatMap((size, x) => {
    const words = ['knee', 'out of memory'].flatMap((what) => {
      const names = series
        .filter((series) => series.size === size && series.what === what)
        .map(({ name }) => name);
      if (names.length === 0) return [];
      return [names.length === lines.length ? what : `${what}: ${names.join(', ')}`];
    });
    return words.length > 0 ? [{ x, name: words.join('\n'), color: 'ink' as const }] : [];
  });
}

/** Ideal scaling: output tokens/s proportional to the batch, from the first line's smallest batch. */
function proportionalSeries({ points }: Series, sizes: readonly number[]): Series[] {
  const first = points.find(([, y]) => y !== null);
  if (!first || sizes.length < 2) return [];
  const [x, y] = first;
  return [
    {
      name: 'proportional to the batch',
      color: 'muted',
      dash: 'dashed',
      style: 'guide',
      points: sizes.map((size, index) => [index, (y! * size) / sizes[x]!]),
    },
  ];
}

export function throughputChart(data: BenchResult): LinesChart {
  const lines = batchLines(data);
  const chart = batchChart(lines, 'tok/s', ({ throughput }) => throughput.output_tokens_per_s);
  const [panel] = chart.panels;
  const [first] = panel!.series;
  return {
    ...chart,
    panels: [
      {
        ...panel!,
        series: [...panel!.series, ...(first ? proportionalSeries(first, batchSizes(lines)) : [])],
      },
    ],
    marks: marksOf(data),
  };
}

export const tpotChart = (data: BenchResult): LinesChart => ({
  ...batchChart(batchLines(data), 'ms', ({ latency }) => meanOf(latency.tpot_ms)),
  marks: marksOf(data),
});

const fitSamples = 60;

const fittedMetric = {
  prompt: 'ttft_ms',
  output: 'e2e_ms',
  batch_ttft: 'ttft_ms',
  batch_tpot: 'tpot_ms',
} as const;

/** A fitted dependence: means with their intervals as symbols, the fit as a line. */
export function fitLines(data: BenchResult, id: BenchFit['id']): LinesChart {
  const fits = fitsOf(data, id);
  const maxX = Math.max(0, ...fits.flatMap(({ fit }) => fit.points.map(({ x }) => x)));
  const { x = '', unit = 'ms' } = fits[0]?.fit ?? {};
  return {
    form: 'lines',
    x: { name: x, unit: '' },
    panels: [
      {
        unit,
        series: fits.flatMap(({ label, fit }, index): Series[] => {
          const { color, symbol, dash } = lineMark(index);
          const fitted = (size: number): number =>
            fit.coefficients.reduce((sum, coefficient, power) => sum + coefficient * size ** power, 0);
          return [
            {
              name: `${label}, fitted`,
              color,
              dash,
              style: 'guide',
              points: Array.from({ length: fitSamples + 1 }, (_, i) => {
                const size = (maxX * i) / fitSamples;
                return [size, fitted(size)];
              }),
            },
            { name: label, color, symbol, dash, style: 'dots', points: measuredPoints(data, label, fit) },
          ];
        }),
      },
    ],
  };
}

/** The means that a fit is based on, with their intervals. */
function measuredPoints({ variants }: BenchResult, label: string, fit: BenchFit): Point[] {
  const points = variants.find((variant) => variant.label === label)?.points ?? [];
  const means = points.map(({ latency }) => meanOf(latency[fittedMetric[fit.id]]));
  return fit.points.map(({ x, measured, fitted }) => {
    const mean = means.find(({ value }) => value === measured);
    return [
      x,
      measured,
      {
        ci95: mean && mean.value !== null ? (mean.ci95 ?? null) : null,
        notes: [
          [
            { n: fitted, unit: fit.unit },
            ' fitted (',
            { n: fitted / measured - 1, unit: 'ratio', signed: true },
            ')',
          ],
        ],
      },
    ];
  });
}

/** Every timed repeat relative to its point's median. */
export function spreadChart(data: BenchResult, metric: TimedMetric): SpreadChart {
  return {
    form: 'spread',
    unit: 'ms',
    key:
      data.variants.length > 1
        ? data.variants.map(({ label }, index) => ({ name: label, color: lineMark(index).color }))
        : [],
    rows: spreadRows(data, metric).map(({ name, variant, spread, repeats, box }) => ({
      name,
      color: lineMark(variant).color,
      min: spread.min,
      median: spread.p50,
      max: spread.max,
      box: box ? [box.q1, box.q3] : [spread.p50, spread.p90],
      notes: [
        ['median ', { n: spread.p50, unit: 'ms' }, ', mean ', { n: spread.mean, unit: 'ms' }],
        [{ n: spread.min, unit: 'ms' }, ' to ', { n: spread.max, unit: 'ms' }],
        ['n = ', { count: spread.n }, ' in ', { count: spread.launches, unit: 'launches' }],
      ],
      dots: repeats.map(({ value, outlier, launch }) => ({ value, outlier, note: `launch ${launch + 1}` })),
    })),
  };
}
