import type { MonitorDevice, MonitorResult } from '../../../model/documents/monitor.js';
import { deviceSeries, idleColor, throttleColor } from '../../charts/monitor/device.js';
import { formatMs, formatPercent, formatQuantity, noValue } from '../../format.js';
import { deviceFacts } from '../../monitor-words.js';
import { Behind, DataTable } from '../parts.js';
import { ColorKey } from '../trace/trace-parts.js';
import { MetricTable, MonitorChart, type MonitorSection } from './monitor-parts.js';

/** A section a GPU: when it worked, what held it down, what it used. */
export const deviceSections = ({ devices }: MonitorResult): MonitorSection[] =>
  devices.map((device) => ({
    id: device.scope.replace('.', '-'),
    title: device.name === null ? device.scope : `${device.scope} · ${device.name}`,
    render: ({ data }) => (
      <>
        <p>{device.headline}</p>
        <ColorKey
          label="Periods behind the lines"
          entries={(theme) => [
            ...(device.idle.count > 0 ? [{ name: 'idle', color: idleColor(theme) }] : []),
            ...(device.throttling.count > 0 ? [{ name: 'clocks throttled', color: throttleColor }] : []),
          ]}
        />
        <MonitorChart
          name="monitor_device"
          part={device.scope}
          result={data}
          series={deviceSeries(data, device.scope)}
          label={`Utilisation, memory, power, clocks and temperature of ${device.scope} over time`}
        />
        <DataTable
          caption="What it comes to"
          class="whole"
          columns={[{ head: '' }, { head: '', wraps: true }]}
          rows={deviceFacts(device, data.thresholds)}
        />
        <MetricTable metrics={device.metrics} />
        <IdlePeriods device={device} />
        <ThrottlePeriods device={device} />
      </>
    ),
  }));

/** "Idle periods", "the 200 longest of 4 100 idle periods" when not all were kept. */
const heading = (what: string, kept: number, count: number): string =>
  kept < count ? `${what}: the ${kept} longest of ${count}` : what;

function IdlePeriods({ device: { idle } }: { device: MonitorDevice }) {
  if (idle.periods.length === 0) return null;
  return (
    <Behind title={heading('Idle periods', idle.periods.length, idle.count)}>
      <DataTable
        caption="Since the recording began"
        columns={[
          { head: 'from', numeric: true },
          { head: 'for', numeric: true },
        ]}
        rows={idle.periods.map(({ start_ns, dur_ns }) => [formatMs(start_ns / 1e6), formatMs(dur_ns / 1e6)])}
      />
    </Behind>
  );
}

function ThrottlePeriods({ device: { throttling } }: { device: MonitorDevice }) {
  if (throttling.periods.length === 0) return null;
  return (
    <Behind title={heading('Throttled periods', throttling.periods.length, throttling.count)}>
      <DataTable
        caption="Since the recording began"
        columns={[
          { head: 'from', numeric: true },
          { head: 'for', numeric: true },
          { head: 'by', wraps: true },
          { head: 'SM clock', numeric: true },
          { head: 'lower by', numeric: true },
        ]}
        rows={throttling.periods.map(({ start_ns, dur_ns, reasons, clock_mhz, clock_drop }) => [
          formatMs(start_ns / 1e6),
          formatMs(dur_ns / 1e6),
          reasons.join(', ').replaceAll('_', ' '),
          clock_mhz === null ? noValue : formatQuantity(clock_mhz, 'MHz'),
          clock_drop === null ? noValue : formatPercent(clock_drop),
        ])}
      />
    </Behind>
  );
}
