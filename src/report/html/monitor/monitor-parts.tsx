import type { FC } from 'hono/jsx';
import type { MonitorMetric, MonitorResult } from '../../../model/documents/monitor.js';
import type { Chart } from '../../charts/chart.js';
import { monitorCharts, type MonitorChartName } from '../../charts/registry.js';
import type { Series } from '../../charts/telemetry.js';
import { formatCount } from '../../format.js';
import { metricCell, metricWords, orderedMetrics } from '../../monitor-words.js';
import type { PageSection } from '../document-page.js';
import { ChartFrame, DataTable } from '../parts.js';
import { SamplesTable } from '../samples-table.js';

export type MonitorSection = PageSection<MonitorResult>;

interface Props {
  name: MonitorChartName;
  part?: string;
  result: MonitorResult;
  series: Series[];
  label: string;
}

/** A chart with the samples behind it. */
export const MonitorChart: FC<Props> = ({ name, part = '', result, series, label }) => {
  const chart: Chart<MonitorResult> = monitorCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      <SamplesTable series={series} />
    </ChartFrame>
  );
};

export const MetricTable: FC<{ metrics: readonly (MonitorMetric & { scope?: string })[] }> = ({
  metrics,
}) => (
  <DataTable
    caption="Over the recording; the mean is over time, percentiles are of samples"
    columns={[
      { head: '' },
      ...['mean', 'min', 'p5', 'median', 'p95', 'max', 'samples'].map((head) => ({ head, numeric: true })),
    ]}
    rows={orderedMetrics(metrics).map((metric) => [
      metricWords(metric),
      ...[metric.mean, metric.min, metric.p5, metric.median, metric.p95, metric.max].map((value) =>
        metricCell(value, metric),
      ),
      formatCount(metric.n),
    ])}
  />
);
