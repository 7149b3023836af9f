import type { FC } from 'hono/jsx';
import type { Series } from '../charts/telemetry.js';
import { formatMs, formatQuantity } from '../format.js';
import { metricLabel, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import { thinned } from '../../model/thinned.js';
import { DataTable } from './parts.js';

/** Rows of the table behind a chart, over all its series. */
const mostRows = 300;

/** Sampled series as a table; `points` are [ms, value], or of the time that `formatTime` takes. */
export const SamplesTable: FC<{ series: readonly Series[]; formatTime?: (time: number) => string }> = ({
  series,
  formatTime = formatMs,
}) => {
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
        thinned(points, each).map(([time, value]) => [
          scopeLabel(scope),
          metricLabel(metric),
          formatTime(time),
          formatQuantity(value, unit),
        ]),
      )}
    />
  );
};
