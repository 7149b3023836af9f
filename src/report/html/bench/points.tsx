import type { BenchDistribution, BenchPointResult, BenchVariant } from '../../../model/documents/bench.js';
import type { Figure } from '../../../model/figure.js';
import { formatCount, formatMs, noValue } from '../../format.js';
import { missingReasons, sentence } from '../../words.js';
import { Behind, type Column, DataTable, MissingNotes } from '../parts.js';
import { type BenchSection, Interval, meanOf, outcomeWords, pointWords } from './bench-parts.js';

interface Row {
  variant: BenchVariant;
  point: BenchPointResult;
}

const metrics: [name: string, of: (point: BenchPointResult) => BenchDistribution][] = [
  ['TTFT', ({ latency }) => latency.ttft_ms],
  ['TPOT', ({ latency }) => latency.tpot_ms],
  ['ITL', ({ latency }) => latency.itl_ms],
  ['end to end', ({ latency }) => latency.e2e_ms],
];

/** Rows beyond which the table scrolls in its box. */
const atOnce = 40;

const numeric = (head: string): Column => ({ head, numeric: true });

function known(of: (row: Row) => Figure, rows: readonly Row[]): boolean {
  return rows.some((row) => of(row).value !== null);
}

const rates: [name: string, of: (row: Row) => Figure][] = [
  ['output tok/s', ({ point }) => point.throughput.output_tokens_per_s],
  ['prompt + output tok/s', ({ point }) => point.throughput.total_tokens_per_s],
  ['decode tok/s', ({ point }) => point.throughput.decode_tokens_per_s],
  ['prefill tok/s', ({ point }) => point.throughput.prefill_tokens_per_s],
  ['requests/s', ({ point }) => point.throughput.requests_per_s],
];

const reasonsOf = (rows: readonly Row[]): string[] =>
  missingReasons(
    rows.flatMap(({ point }): [string, Figure][] =>
      point.outcome === 'measured'
        ? metrics.map(([name, of]) => [`${name} of ${pointWords(point)}`, meanOf(of(point))])
        : [],
    ),
  );

/** A row a metric and point with every percentile. */
function percentileRows(rows: readonly Row[], several: boolean) {
  return rows.flatMap(({ variant, point }) =>
    metrics.flatMap(([name, of]) => {
      const spread = of(point);
      if ('value' in spread) return [];
      return [
        [
          ...(several ? [variant.label] : []),
          pointWords(point),
          name,
          formatMs(spread.mean),
          spread.ci95 === null ? noValue : `${formatMs(spread.ci95[0])} to ${formatMs(spread.ci95[1])}`,
          spread.sd === null ? noValue : formatMs(spread.sd),
          ...[spread.min, spread.p50, spread.p90, spread.p95, spread.p99, spread.max].map((ms) =>
            formatMs(ms),
          ),
          formatCount(spread.outliers),
          formatCount(spread.n),
          `${formatCount(spread.launches)}${spread.ci95 !== null && !spread.ci95_over_launches ? ' (interval over repeats)' : ''}`,
        ],
      ];
    }),
  );
}

export const pointsSection: BenchSection = {
  id: 'points',
  title: 'Every point',
  render: ({ data: { variants, protocol } }) => {
    const several = variants.length > 1;
    const rows: Row[] = variants.flatMap((variant) => variant.points.map((point) => ({ variant, point })));
    const [first, ...others] = rates.filter(([, of]) => known(of, rows));
    const shownRates = first ? [first] : [];
    const failed = rows.filter(({ point }) => point.outcome !== 'measured' || point.text !== null);
    return (
      <>
        <p>
          Means with their 95 % interval over {formatCount(protocol.launches)} process{' '}
          {protocol.launches === 1 ? 'launch' : 'launches'} of {formatCount(protocol.repeats)} timed{' '}
          {protocol.repeats === 1 ? 'repeat' : 'repeats'} each. {sentence(protocol.sampling)} Warm-up:{' '}
          {protocol.warmup}.
        </p>
        <DataTable
          caption="Latency and throughput"
          class={rows.length > atOnce ? '' : 'whole'}
          columns={[
            ...(several ? [{ head: 'variant' }] : []),
            numeric('batch'),
            numeric('prompt'),
            numeric('output'),
            ...metrics.map(([name]) => numeric(name)),
            ...shownRates.map(([name]) => numeric(name)),
          ]}
          rows={rows.map(({ variant, point }) => [
            ...(several ? [variant.label] : []),
            formatCount(point.batch_size),
            formatCount(point.input_len),
            formatCount(point.output_len),
            ...metrics.map(([, of], index) =>
              index === 0 && point.outcome !== 'measured' ? (
                <strong>{outcomeWords[point.outcome]}</strong>
              ) : (
                <Interval figure={meanOf(of(point))} />
              ),
            ),
            ...shownRates.map(([, of]) => <Interval figure={of({ variant, point })} />),
          ])}
          sortKeys={rows.map(({ variant, point }) => [
            ...(several ? [variant.label] : []),
            point.batch_size,
            point.input_len,
            point.output_len,
            ...metrics.map(([, of]) => meanOf(of(point)).value),
            ...shownRates.map(([, of]) => of({ variant, point }).value),
          ])}
        />
        <MissingNotes reasons={reasonsOf(rows)} />
        {failed.length > 0 && (
          <DataTable
            caption="Points that ended otherwise"
            columns={[
              ...(several ? [{ head: 'variant' }] : []),
              { head: 'point' },
              { head: 'outcome' },
              { head: 'why', wraps: true },
            ]}
            rows={failed.map(({ variant, point }) => [
              ...(several ? [variant.label] : []),
              pointWords(point),
              outcomeWords[point.outcome],
              point.text ?? '',
            ])}
          />
        )}
        {others.length > 0 && (
          <Behind title="Other rates">
            <DataTable
              caption="Rates of every point"
              columns={[
                ...(several ? [{ head: 'variant' }] : []),
                { head: 'point' },
                ...others.map(([name]) => numeric(name)),
              ]}
              rows={rows.map((row) => [
                ...(several ? [row.variant.label] : []),
                pointWords(row.point),
                ...others.map(([, of]) => <Interval figure={of(row)} />),
              ])}
            />
          </Behind>
        )}
        <Behind title="Percentiles, outliers and intervals of every point">
          <DataTable
            caption="Percentiles are linear (type 7); outliers are beyond Tukey’s fences, counted and not removed"
            columns={[
              ...(several ? [{ head: 'variant' }] : []),
              { head: 'point' },
              { head: '' },
              ...[
                'mean',
                '95 % interval',
                'sd',
                'min',
                'p50',
                'p90',
                'p95',
                'p99',
                'max',
                'outliers',
                'n',
                'launches',
              ].map(numeric),
            ]}
            rows={percentileRows(rows, several)}
          />
        </Behind>
      </>
    );
  },
};
