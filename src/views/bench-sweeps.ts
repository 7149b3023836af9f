import type { BenchFit, BenchPointResult, BenchResult } from '../model/documents/bench.js';
import { fitLabels, pointLatencyLabels, pointOutcomeLabels } from '../vocabulary/bench.js';
import { lineMark } from '../vocabulary/colors.js';
import { fitLines, spreadChart, throughputChart, tpotChart } from './bench-charts.js';
import type { Block, Column, Section, Text } from './block.js';
import {
  batchLines,
  comparedPoints,
  fitIds,
  fitsOf,
  kneeOf,
  meanOf,
  type SpreadRow,
  spreadRows,
  timedMetrics,
} from './bench-series.js';
import type { Chart } from './chart.js';
import { type ColumnOf, rowsOf, tableOf } from './table-of.js';

interface BatchRow {
  line: string;
  point: BenchPointResult;
  knee: boolean;
  /** Output tokens/s relative to the smallest batch with a known rate; null if either is unknown. */
  factor: number | null;
  /** Batch size relative to that batch. */
  times: number;
}

function batchRows(data: BenchResult): BatchRow[] {
  return batchLines(data).flatMap(({ name, points, variant }) => {
    const rate = ({ throughput }: BenchPointResult): number | null => throughput.output_tokens_per_s.value;
    const first = points.find((point) => rate(point) !== null);
    return points.map((point) => {
      const [pointRate, base] = [rate(point), first ? rate(first) : null];
      return {
        line: name,
        point,
        knee: kneeOf(variant) === point.batch_size,
        factor: pointRate === null || !base ? null : pointRate / base,
        times: first ? point.batch_size / first.batch_size : 1,
      };
    });
  });
}

const notScaled = { missing: 'its rate, or that of every batch, is unknown' };

/** Throughput and time per token against batch size. */
export function batchSections(data: BenchResult): Section[] {
  const rows = batchRows(data);
  if (rows.length === 0) return [];
  const columns: ColumnOf<BatchRow>[] = [
    ...(new Set(rows.map(({ line }) => line)).size > 1
      ? [{ id: 'line', head: '', wraps: true, cell: ({ line }: BatchRow) => line }]
      : []),
    {
      id: 'batch_size',
      head: 'batch',
      numeric: true,
      cell: ({ point, knee }) =>
        knee ? [{ count: point.batch_size }, ' (knee)'] : { count: point.batch_size },
    },
  ];
  const meanColumn = (metric: 'ttft_ms' | 'tpot_ms' | 'e2e_ms', drop?: number): ColumnOf<BatchRow> => ({
    id: metric,
    head: pointLatencyLabels[metric],
    numeric: true,
    ...(drop === undefined ? {} : { drop }),
    cell: ({ point }) => ({ figure: meanOf(point.latency[metric]), spread: 'interval' }),
  });
  const chart = (drawnChart: Chart, title: string, extraColumns: ColumnOf<BatchRow>[]): Block => ({
    type: 'chart',
    half: true,
    title,
    label: `${title} against the batch size, with 95 % intervals`,
    chart: drawnChart,
    behind: tableOf(title, [...columns, ...extraColumns], rows),
  });
  return [
    {
      id: 'batch',
      title: 'Batch size',
      level: 2,
      blocks: [
        {
          type: 'text',
          level: 3,
          text: 'Thin dashed: throughput proportional to the batch, from the first line. Bars are 95 % intervals.',
        },
        chart(throughputChart(data), 'Output tokens per second', [
          {
            id: 'output_tokens_per_s',
            head: 'output rate',
            numeric: true,
            cell: ({ point }) => ({ figure: point.throughput.output_tokens_per_s, spread: 'interval' }),
          },
          {
            id: 'scaling',
            head: 'scaling',
            numeric: true,
            cell: ({ factor }) => (factor === null ? notScaled : [{ n: factor, unit: '' }, '×']),
          },
          {
            id: 'efficiency',
            head: 'efficiency',
            numeric: true,
            cell: ({ factor, times }) => (factor === null ? notScaled : { n: factor / times, unit: 'ratio' }),
          },
          { id: 'outcome', head: 'outcome', cell: ({ point }) => pointOutcomeLabels[point.outcome] },
        ]),
        chart(tpotChart(data), 'Time per output token', [
          meanColumn('tpot_ms'),
          meanColumn('ttft_ms'),
          meanColumn('e2e_ms', 0),
        ]),
      ],
    },
  ];
}

interface FitRow {
  id: BenchFit['id'];
  label: string;
  fit: BenchFit;
}

/** Fits against length and batch size: formulas, and the points they are based on. */
export function fitSections(data: BenchResult): Section[] {
  const rows = fitIds.flatMap((id) => fitsOf(data, id).map((fit): FitRow => ({ id, ...fit })));
  if (rows.length === 0) return [];
  const several = data.variants.length > 1;
  return [
    {
      id: 'sequence',
      title: 'Scaling with length and batch',
      level: 2,
      blocks: [
        { type: 'notes', items: rows.map(({ label, fit }) => fitText(fit, several ? `${label}: ` : '')) },
        ...fitIds
          .filter((id) => rows.some((row) => row.id === id))
          .map((id): Block =>
            fitChart(
              data,
              id,
              rows.filter((row) => row.id === id),
              several,
            ),
          ),
      ],
    },
  ];
}

/** "TTFT = 18.2 + 0.0121 × prompt tokens ms (error 1.3 %, R² 0.9998, n = 4)" */
const fitText = (fit: BenchFit, label: string): Text => [
  `${label}${fit.y} = `,
  ...fit.coefficients.flatMap((coefficient, power): (string | { n: number; unit: string })[] => [
    power === 0 ? '' : coefficient < 0 ? ' − ' : ' + ',
    { n: power === 0 ? coefficient : Math.abs(coefficient), unit: '' },
    power === 0 ? '' : ` × ${fit.x}${['', '', '²', '³'][power] ?? `^${power}`}`,
  ]),
  ` ${fit.unit} (error `,
  { n: fit.rms_error, unit: 'ratio' },
  ', R² ',
  { n: fit.r2, unit: '', digits: 4 },
  `, n = ${fit.n}${slopeMayBeZero(fit) ? '; slope not different from 0' : ''})`,
];

function slopeMayBeZero({ coefficients, coefficients_ci95: intervals }: BenchFit): boolean {
  const interval = coefficients.length === 2 ? intervals?.[1] : undefined;
  return interval !== undefined && interval[0] <= 0 && interval[1] >= 0;
}

function fitChart(data: BenchResult, id: BenchFit['id'], fits: readonly FitRow[], several: boolean): Block {
  const points = fits.flatMap(({ label, fit }) => fit.points.map((point) => ({ label, point })));
  type Point = (typeof points)[number];
  const ms = (name: 'measured' | 'fitted'): ColumnOf<Point> => ({
    id: `${name}_ms`,
    head: name,
    numeric: true,
    cell: ({ point }) => ({ n: point[name], unit: 'ms' }),
  });
  return {
    type: 'chart',
    level: 3,
    half: true,
    title: fitLabels[id],
    label: `${fitLabels[id]}: measured means with 95 % intervals and the fit`,
    chart: fitLines(data, id),
    behind: tableOf(
      'Measured and fitted',
      [
        ...(several ? [{ id: 'variant', head: 'variant', cell: ({ label }: Point) => label }] : []),
        { id: 'x', head: fits[0]!.fit.x, numeric: true, cell: ({ point }) => ({ n: point.x, unit: '' }) },
        ms('measured'),
        ms('fitted'),
        {
          id: 'difference_share',
          head: 'error',
          numeric: true,
          cell: ({ point }) => ({ n: point.fitted / point.measured - 1, unit: 'ratio' }),
        },
      ],
      points,
    ),
  };
}

/** Every variant against the first, at points that both measured. */
export function variantSections(data: BenchResult): Section[] {
  const { variants } = data;
  const [first, ...otherVariants] = variants;
  const metrics = timedMetrics.filter((metric) => comparedPoints(data, metric).length > 0);
  if (!first || otherVariants.length === 0 || metrics.length === 0) return [];
  const notMeasured = { missing: 'the variant did not measure the point' };
  return [
    {
      id: 'variants',
      title: 'Variants side by side',
      level: 2,
      blocks: metrics.map((metric) => ({
        type: 'chart',
        half: true,
        title: pointLatencyLabels[metric],
        label: `${pointLatencyLabels[metric]} of every variant relative to the first`,
        chart: {
          form: 'bars',
          kind: 'multiples',
          unit: 'ms',
          rows: comparedPoints(data, metric).map(({ name }) => name),
          series: variants.map(({ label }, index) => ({
            name: label,
            color: lineMark(index).color,
            values: comparedPoints(data, metric).map(({ values }) => values[index] ?? null),
          })),
        },
        behind: {
          type: 'table',
          title: `Mean ${pointLatencyLabels[metric]}, and relative to ${first.label}`,
          columns: [
            { id: 'point', head: 'point' },
            ...variants.map(({ label }, index): Column => ({
              id: `ms_${index + 1}`,
              head: label,
              numeric: true,
            })),
            ...otherVariants.map(({ label }, index): Column => ({
              id: `times_${index + 2}`,
              head: `${label}, times`,
              numeric: true,
              drop: index,
            })),
          ],
          rows: comparedPoints(data, metric).map(({ name, values: [base = null, ...values] }) => ({
            cells: [
              name,
              ...[base, ...values].map((n): Text => (n === null ? notMeasured : { n, unit: 'ms' })),
              ...values.map((n): Text =>
                n === null || !base ? notMeasured : [{ n: n / base, unit: '' }, '×'],
              ),
            ],
          })),
        },
      })),
    },
  ];
}

const noBox = { missing: 'fewer than four repeats' };

/** Spread of the timed repeats of each point. */
export function spreadSections(data: BenchResult): Section[] {
  const metrics = timedMetrics
    .map((metric) => ({ metric, rows: spreadRows(data, metric) }))
    .filter(({ rows }) => rows.length > 0);
  if (metrics.length === 0) return [];
  const timeColumn = (
    id: string,
    head: string,
    valueOf: (row: SpreadRow) => number | undefined,
  ): ColumnOf<SpreadRow> => ({
    id: `${id}_ms`,
    head,
    numeric: true,
    cell: (row) => {
      const n = valueOf(row);
      return n === undefined ? noBox : { n, unit: 'ms' };
    },
  });
  const columns: ColumnOf<SpreadRow>[] = [
    { id: 'point', head: 'point', cell: ({ name }) => name },
    { id: 'n', head: 'n', numeric: true, cell: ({ spread }) => ({ count: spread.n }) },
    { id: 'launches', head: 'launches', numeric: true, cell: ({ spread }) => ({ count: spread.launches }) },
    timeColumn('min', 'min', ({ spread }) => spread.min),
    timeColumn('q1', 'p25', ({ box }) => box?.q1),
    timeColumn('p50', 'median', ({ spread }) => spread.p50),
    timeColumn('q3', 'p75', ({ box }) => box?.q3),
    timeColumn('max', 'max', ({ spread }) => spread.max),
    { id: 'outliers', head: 'outliers', numeric: true, cell: ({ spread }) => ({ count: spread.outliers }) },
    { id: 'outliers_ms', head: 'outlier values', wraps: true, cell: outlierText },
  ];
  return [
    {
      id: 'spread',
      title: 'Variation between repeats',
      level: 3,
      blocks: [
        {
          type: 'text',
          text: 'Every timed repeat (dots) relative to the median of its point. Box: middle half; line: range; triangles: outliers, which stay in the statistics.',
        },
        ...metrics.map(({ metric, rows }): Block => ({
          type: 'chart',
          title: pointLatencyLabels[metric],
          label: `Spread of ${pointLatencyLabels[metric]} at every point, with outliers marked`,
          chart: spreadChart(data, metric),
          behind: {
            type: 'table',
            title: `${pointLatencyLabels[metric]}, timed repeats`,
            columns,
            rows: rowsOf(columns, rows),
          },
        })),
      ],
    },
  ];
}

const outlierText = ({ repeats }: SpreadRow): Text =>
  repeats
    .filter(({ outlier }) => outlier)
    .flatMap(({ value, launch }, index) => [
      index === 0 ? '' : ', ',
      { n: value, unit: 'ms' },
      ` (launch ${launch + 1})`,
    ]);
