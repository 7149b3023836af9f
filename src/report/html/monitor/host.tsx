import { hostSeries } from '../../charts/monitor/device.js';
import { MetricTable, MonitorChart, type MonitorSection } from './monitor-parts.js';

export const hostSection: MonitorSection = {
  id: 'host',
  title: 'Host',
  applies: ({ data }) => data.host.metrics.length > 0,
  render: ({ data }) => (
    <>
      {hostSeries(data).length > 0 && (
        <MonitorChart
          name="monitor_host"
          result={data}
          series={hostSeries(data)}
          label="Processors and memory of the host over time"
        />
      )}
      <MetricTable metrics={data.host.metrics} />
    </>
  ),
};
