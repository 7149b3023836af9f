import type {
  BenchDistribution,
  BenchPointResult,
  BenchResult,
  BenchSpread,
  BenchVariant,
} from '../model/documents/bench.js';
import type { Figure } from '../model/figure.js';
import { cutEnd } from '../vocabulary/cut.js';
import { lengthLabel, pointLatencyLabels, pointOutcomeLabels } from '../vocabulary/bench.js';
import type { Block, Section, Text } from './block.js';
import { meanOf } from './bench-series.js';
import { type ColumnOf, tableOf } from './table-of.js';
import { plural } from '../vocabulary/format.js';

/** A point of a variant: one row of most tables. */
export interface PointRow {
  variant: BenchVariant;
  point: BenchPointResult;
}

const pointRows = ({ variants }: BenchResult): PointRow[] =>
  variants.flatMap((variant) => variant.points.map((point) => ({ variant, point })));

export const measuredRows = (data: BenchResult): PointRow[] =>
  pointRows(data).filter(({ point }) => point.outcome === 'measured');

/** The variant's label, if there are several. */
const variantColumn = <T extends { variant: BenchVariant }>({ variants }: BenchResult): ColumnOf<T>[] =>
  variants.length > 1
    ? [{ id: 'variant', head: 'variant', wraps: true, cell: ({ variant }) => variant.label }]
    : [];

/** Columns that identify a point. */
export const pointColumns = <T extends PointRow>(data: BenchResult): ColumnOf<T>[] => [
  ...variantColumn<T>(data),
  { id: 'point', head: 'point', cell: ({ point }) => pointName(point, data) },
];

/** What differs: "batch 4" or "128 in + 64 out"; the id if both do, since they leave no room for figures. */
function pointName(point: BenchPointResult, data: BenchResult): string {
  const rows = pointRows(data);
  const lengths = new Set(rows.map(({ point: other }) => lengthLabel(other)));
  const batches = new Set(rows.map(({ point: other }) => other.batch_size));
  if (batches.size === 1) return lengthLabel(point);
  return lengths.size === 1 ? `batch ${point.batch_size}` : point.point;
}

/** A figure with its interval; `drop` as in Column. */
export const figureColumn = (
  id: string,
  head: string,
  figureOf: (point: BenchPointResult) => Figure,
  drop?: number,
): ColumnOf<PointRow> => ({
  id,
  head,
  numeric: true,
  ...(drop === undefined ? {} : { drop }),
  cell: ({ point }) => ({ figure: figureOf(point), spread: 'interval' }),
});

type Latency = keyof BenchPointResult['latency'];

export const latencyColumn = (metric: Latency, drop?: number): ColumnOf<PointRow> =>
  figureColumn(metric, pointLatencyLabels[metric], ({ latency }) => meanOf(latency[metric]), drop);

/** Every point with its latencies and rates; a single point also with its percentiles. */
export function pointsSection(data: BenchResult): Section {
  const rows = measuredRows(data);
  const single = rows.length === 1;
  return {
    id: 'points',
    title: 'Points',
    requested: true,
    blocks: [
      { type: 'text', level: 2, text: protocolText(data) },
      { ...latencyTable(data, rows), level: single ? 2 : 1 },
      { ...percentileTable(data, rows), level: single ? 1 : 2 },
      rateTable(data, rows),
      ...notMeasured(data),
    ],
  };
}

function protocolText({ protocol: { launches, repeats, sampling, warmup } }: BenchResult): Text {
  return [
    `Means with their 95 % interval over ${plural(launches, 'process launch', 'process launches')} of ${plural(repeats, 'timed repeat')} each. `,
    `Sampling: ${sampling}. Warm-up: ${warmup}.`,
  ];
}

const countColumn = (
  id: string,
  head: string,
  countOf: (point: BenchPointResult) => number,
  drop: number,
) => ({
  id,
  head,
  numeric: true,
  drop,
  cell: ({ point }: PointRow): Text => ({ count: countOf(point) }),
});

const latencyTable = (data: BenchResult, rows: readonly PointRow[]): Block =>
  tableOf(
    "Means with their 95 % interval; the point's name is batch, prompt and output tokens",
    [
      ...pointColumns(data),
      countColumn('batch_size', 'batch', (point) => point.batch_size, 0),
      countColumn('input_len', 'prompt', (point) => point.input_len, 1),
      countColumn('output_len', 'output', (point) => point.output_len, 2),
      latencyColumn('ttft_ms', 6),
      latencyColumn('tpot_ms'),
      latencyColumn('itl_ms', 3),
      latencyColumn('e2e_ms', 5),
      outputRate,
    ],
    rows,
    { brief: 12 },
  );

const outputRate = figureColumn(
  'output_tokens_per_s',
  'output rate',
  ({ throughput }) => throughput.output_tokens_per_s,
);

const rateTable = (data: BenchResult, rows: readonly PointRow[]): Block => ({
  ...tableOf(
    'Rates',
    [
      ...pointColumns(data),
      outputRate,
      figureColumn(
        'total_tokens_per_s',
        'prompt + output',
        (point) => point.throughput.total_tokens_per_s,
        1,
      ),
      figureColumn('decode_tokens_per_s', 'decode', (point) => point.throughput.decode_tokens_per_s, 2),
      figureColumn('prefill_tokens_per_s', 'prefill', (point) => point.throughput.prefill_tokens_per_s),
      figureColumn('requests_per_s', 'requests', (point) => point.throughput.requests_per_s, 0),
    ],
    rows,
  ),
  level: 2,
});

interface SpreadRow extends PointRow {
  metric: Latency;
  spread: BenchSpread;
}

const isKnown = (spread: BenchDistribution): spread is BenchSpread => !('value' in spread);

const statisticColumn = (
  id: 'mean' | 'sd' | 'min' | 'p50' | 'p90' | 'p95' | 'p99' | 'max',
  drop?: number,
): ColumnOf<SpreadRow> => ({
  id: `${id}_ms`,
  head: id,
  numeric: true,
  ...(drop === undefined ? {} : { drop }),
  cell: ({ spread: { [id]: n } }) => (n === null ? { missing: 'one repeat only' } : { n, unit: 'ms' }),
});

/** A row per metric and point with every percentile. */
function percentileTable(data: BenchResult, rows: readonly PointRow[]): Block {
  const spreads = rows.flatMap((row) =>
    (Object.keys(pointLatencyLabels) as Latency[]).flatMap((metric): SpreadRow[] => {
      const spread = row.point.latency[metric];
      return isKnown(spread) ? [{ ...row, metric, spread }] : [];
    }),
  );
  return tableOf(
    "Percentiles are linear (type 7); outliers are beyond Tukey's fences, counted and not removed",
    [
      ...(rows.length > 1 ? pointColumns<SpreadRow>(data) : []),
      { id: 'metric', head: '', cell: ({ metric }) => pointLatencyLabels[metric] },
      statisticColumn('mean'),
      {
        id: 'ci95_ms',
        head: '95 % interval',
        numeric: true,
        drop: 5,
        cell: ({ spread: { ci95 } }) =>
          ci95 === null
            ? { missing: 'one launch with one repeat' }
            : [{ n: ci95[0], unit: 'ms' }, ' to ', { n: ci95[1], unit: 'ms' }],
      },
      statisticColumn('sd', 6),
      statisticColumn('min', 0),
      statisticColumn('p50'),
      statisticColumn('p90', 1),
      statisticColumn('p95', 7),
      statisticColumn('p99'),
      statisticColumn('max', 2),
      {
        id: 'outliers',
        head: 'outliers',
        numeric: true,
        drop: 3,
        cell: ({ spread }) => ({ count: spread.outliers }),
      },
      { id: 'n', head: 'n', numeric: true, drop: 8, cell: ({ spread }) => ({ count: spread.n }) },
      {
        id: 'launches',
        head: 'launches',
        numeric: true,
        drop: 4,
        cell: ({ spread: { launches, ci95, ci95_over_launches: over } }) =>
          ci95 === null || over ? { count: launches } : [{ count: launches }, ' (interval over repeats)'],
      },
    ],
    spreads,
  );
}

/** Points that were not measured, or not in every launch. */
function notMeasured(data: BenchResult): Block[] {
  const rows = pointRows(data).filter(({ point }) => point.outcome !== 'measured' || point.text !== null);
  if (rows.length === 0) return [];
  return [
    { type: 'heading', text: 'Not or partly measured' },
    tableOf(
      'Points without complete measurements',
      [
        ...pointColumns(data).map((column) => ({ ...column, wraps: false })),
        {
          id: 'outcome',
          head: 'outcome',
          cell: ({ point: { outcome } }) => ({
            text: outcome === 'measured' ? 'partial' : pointOutcomeLabels[outcome],
            tone: 'fault',
          }),
        },
        { id: 'why', head: 'why', wraps: true, lines: true, cell: ({ point }) => firstLine(point.text) },
      ],
      rows,
      { brief: 4 },
    ),
  ];
}

const firstLine = (text: string | null): Text =>
  text === null ? { missing: 'no reason was recorded' } : cutEnd(text.split('\n')[0]!, 300);
