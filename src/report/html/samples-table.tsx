import type { FC } from 'hono/jsx';
import type { Series } from '../charts/telemetry.js';
import { formatMs, formatQuantity } from '../format.js';
import { metricName, scopeName } from '../names.js';
import { thinned } from '../thin.js';
import { DataTable } from './parts.js';

/** Rows of the table behind a chart, over all its series. */
const mostRows = 300;

/** Sampled series as a table; `points` are [ms, value]. */
export const SamplesTable: FC<{ series: readonly Series[] }> = ({ series }) => {
  const each = Math.max(2, Math.floor(mostRows / Math.max(1, series.length)));
  return (
    <DataTable
      caption={`At most ${each} samples a series, evenly spread`}
      columns={[
        { head: 'scope' },
        { head: 'metric' },
        { head: 'time', numeric: true },
        { head: 'value', numeric: true },
      ]}
      rows={series.flatMap(({ scope, metric, unit, points }) =>
        thinned(points, each).map(([ms, value]) => [
          scopeName(scope),
          metricName(metric),
          formatMs(ms),
          formatQuantity(value, unit),
        ]),
      )}
    />
  );
};
