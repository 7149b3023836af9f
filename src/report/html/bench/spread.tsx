import { type SpreadMetric, spreadMetrics, spreadRows } from '../../charts/bench/spread.js';
import { formatCount, formatMs, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import { BenchChart, type BenchSection, VariantKey } from './bench-parts.js';

const metrics = Object.keys(spreadMetrics) as SpreadMetric[];

export const spreadSection: BenchSection = {
  id: 'spread',
  title: 'How steady it was',
  applies: ({ data }) => metrics.some((metric) => spreadRows(data, metric).length > 0),
  render: ({ data }) => (
    <>
      <p>
        Every timed repeat (dots) against its point’s own median, so that points of any size compare: the box
        holds the middle half, the line all of them, triangles are outliers. Nothing is left out of the
        statistics.
      </p>
      <VariantKey result={data} />
      {metrics
        .filter((metric) => spreadRows(data, metric).length > 0)
        .map((metric) => {
          const rows = spreadRows(data, metric);
          return (
            <>
              <h3>{spreadMetrics[metric]}</h3>
              <BenchChart
                name="bench_spread"
                part={metric}
                result={data}
                label={`Spread of ${spreadMetrics[metric]} at every point, with outliers marked`}
              >
                <DataTable
                  caption={`${spreadMetrics[metric]}, timed repeats`}
                  columns={[
                    { head: 'point' },
                    ...['n', 'launches', 'min', 'quarter', 'median', 'three quarters', 'max', 'outliers'].map(
                      (head) => ({
                        head,
                        numeric: true,
                      }),
                    ),
                    { head: 'of them, ms', wraps: true },
                  ]}
                  rows={rows.map(({ name, spread, box, repeats }) => [
                    name,
                    formatCount(spread.n),
                    formatCount(spread.launches),
                    formatMs(spread.min),
                    box ? formatMs(box.q1) : noValue,
                    formatMs(spread.p50),
                    box ? formatMs(box.q3) : noValue,
                    formatMs(spread.max),
                    formatCount(spread.outliers),
                    repeats
                      .filter(({ outlier }) => outlier)
                      .map(({ value, launch }) => `${formatMs(value)} (launch ${launch + 1})`)
                      .join(', '),
                  ])}
                />
              </BenchChart>
            </>
          );
        })}
    </>
  ),
};
