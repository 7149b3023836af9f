import { formatNs, phaseColor, phaseName } from '../../charts/trace/words.js';
import { formatCount, formatQuantity } from '../../format.js';
import { metricLabel, scopeLabel } from '../../../vocabulary/sampled-metrics.js';
import { DataTable } from '../parts.js';
import { SamplesTable } from '../samples-table.js';
import type { TraceSection } from './inputs.js';
import { ColorKey, TraceChart } from './trace-parts.js';

export const gpuTelemetrySection: TraceSection = {
  id: 'telemetry',
  title: 'Telemetry',
  applies: ({ data }) => (data.telemetry?.series.length ?? 0) > 0,
  render: ({ data }) => {
    const { telemetry } = data;
    if (!telemetry) return null;
    const kinds = [...new Set(telemetry.series.flatMap(({ phases }) => phases.map(({ kind }) => kind)))];
    return (
      <>
        {telemetry.events.length > 0 && (
          <ul class="notices" aria-label="Throttling and clock changes">
            {telemetry.events.map((event) => (
              <li class="notice warning">
                {event.text} ({formatNs(event.start_ns)} to {formatNs(event.end_ns)}
                {event.phases.length > 0 && `, in ${event.phases.map(phaseName).join(', ')}`})
              </li>
            ))}
          </ul>
        )}
        <ColorKey
          label="Phases behind the lines"
          entries={(theme) =>
            kinds.map((kind) => ({ name: phaseName(kind), color: phaseColor(kind, theme) }))
          }
        />
        <TraceChart name="gpu_telemetry" result={data} label="Power, clocks and utilisation over time">
          <SamplesTable series={telemetry.series} formatTime={formatNs} />
        </TraceChart>
        <DataTable
          caption="Over the whole capture, and means within the phases"
          columns={[
            { head: 'scope' },
            { head: 'metric' },
            { head: 'mean', numeric: true },
            { head: 'min', numeric: true },
            { head: 'max', numeric: true },
            ...kinds.map((kind) => ({ head: phaseName(kind), numeric: true })),
          ]}
          rows={telemetry.series.map((series) => [
            scopeLabel(series.scope),
            metricLabel(series.metric),
            formatQuantity(series.mean, series.unit),
            formatQuantity(series.min, series.unit),
            formatQuantity(series.max, series.unit),
            ...kinds.map((kind) => {
              const phase = series.phases.find((one) => one.kind === kind);
              return phase && phase.samples > 0
                ? `${formatQuantity(phase.mean, series.unit)} (n = ${formatCount(phase.samples)})`
                : '–';
            }),
          ])}
        />
      </>
    );
  },
};
