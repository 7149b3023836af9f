import { formatMs, formatQuantity } from '../../format.js';
import { metricName, scopeName } from '../../names.js';
import { thinned } from '../../thin.js';
import { DataTable } from '../parts.js';
import { BenchChart, type BenchSection } from './bench-parts.js';

/** Rows of the table behind the chart, over all series. */
const mostRows = 300;

export const benchTelemetrySection: BenchSection = {
  id: 'telemetry',
  title: 'Telemetry',
  applies: ({ data }) => (data.telemetry?.length ?? 0) > 0,
  render: ({ data }) => {
    const series = data.telemetry ?? [];
    const each = Math.max(2, Math.floor(mostRows / Math.max(1, series.length)));
    return (
      <BenchChart name="bench_telemetry" result={data} label="Host and GPUs over time">
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
      </BenchChart>
    );
  },
};
