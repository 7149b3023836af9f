import { causeName, formatNs, phaseName } from '../../charts/trace/words.js';
import { formatCount, formatNumber, formatPercent, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { Absent, Behind, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { TraceSection } from './inputs.js';
import { KernelName } from './trace-parts.js';

/** Rows shown without a click. */
const atOnce = 15;

export const idleSection: TraceSection = {
  id: 'idle',
  title: 'Why the device was idle',
  render: ({ data }) => {
    const { waits, longest } = data.idle;
    if (waits.length === 0) {
      return (
        <Absent
          what="No idle time was found."
          why="The device had work all the time between its first and last."
        />
      );
    }
    const operators = waits.some(({ operator }) => operator !== null);
    const calls = waits.some(({ api_name }) => api_name !== null);
    const table = (caption: string, rows: typeof waits) => (
      <DataTable
        caption={caption}
        columns={[
          { head: 'phase' },
          { head: 'cause' },
          ...(operators ? [{ head: 'ended by operator' }] : []),
          ...(calls ? [{ head: 'ended by API call' }] : []),
          { head: 'gaps', numeric: true },
          { head: 'total', numeric: true },
          { head: 'longest', numeric: true },
        ]}
        rows={rows.map((wait) => [
          phaseName(wait.phase),
          causeName(wait.cause),
          ...(operators ? [wait.operator === null ? noValue : <code>{wait.operator}</code>] : []),
          ...(calls ? [wait.api_name === null ? noValue : <code>{wait.api_name}</code>] : []),
          formatCount(wait.count),
          formatNs(wait.total_ns),
          formatNs(wait.longest_ns),
        ])}
        sortKeys={rows.map((wait) => [
          wait.phase,
          wait.cause,
          ...(operators ? [wait.operator] : []),
          ...(calls ? [wait.api_name] : []),
          wait.count,
          wait.total_ns,
          wait.longest_ns,
        ])}
      />
    );
    return (
      <>
        <p>
          A gap is time in which no kernel or copy ran. It is split by what the host and the queue did in it:
          one gap can count under several causes, each with its part of the time.
        </p>
        {table('By cause and what ended the gap', waits.slice(0, atOnce))}
        {waits.length > atOnce && (
          <Behind title={`${formatCount(waits.length - atOnce)} more`}>
            {table('Further causes', waits.slice(atOnce))}
          </Behind>
        )}
        {longest.length > 0 && (
          <Behind title="The longest gaps">
            <DataTable
              caption="Single gaps by length, with what they consist of"
              columns={[
                { head: 'start', numeric: true },
                { head: 'length', numeric: true },
                { head: 'causes' },
                { head: 'phase' },
                { head: 'ended by' },
                { head: 'API call' },
              ]}
              rows={longest.map((gap) => [
                formatNs(gap.start_ns),
                formatNs(gap.dur_ns),
                gap.parts.map(({ id, ns }) => `${causeName(id)} ${formatNs(ns)}`).join(', ') || noValue,
                phaseName(gap.phase),
                gap.operator === null ? noValue : <code>{gap.operator}</code>,
                gap.api_name === null ? noValue : <code>{gap.api_name}</code>,
              ])}
            />
          </Behind>
        )}
      </>
    );
  },
};

export const launchesSection: TraceSection = {
  id: 'launches',
  title: 'Launches',
  render: ({ data }) => {
    const { launches, short_kernels, api_calls } = data;
    if (launches.phases.length === 0) {
      return (
        <Absent
          what="No launch was found."
          why="The capture has no API calls, or none that launched a kernel."
        />
      );
    }
    const mean = (spread: { mean_ns: number; median_ns: number } | null): string =>
      spread === null ? noValue : formatNs(spread.mean_ns);
    const median = (spread: { mean_ns: number; median_ns: number } | null): string =>
      spread === null ? noValue : formatNs(spread.median_ns);
    return (
      <>
        <DataTable
          caption="Of a mean instance. API: in the launching call. Queue: from its return to the kernel’s begin"
          columns={[
            { head: 'phase' },
            { head: 'launches', numeric: true },
            { head: 'least–most', numeric: true },
            { head: 'kernels', numeric: true },
            { head: 'graph launches', numeric: true },
            { head: 'kernels a layer', numeric: true },
            { head: 'launches a layer', numeric: true },
            { head: 'API, mean', numeric: true },
            { head: 'API, median', numeric: true },
            { head: 'queue, mean', numeric: true },
            { head: 'queue, median', numeric: true },
          ]}
          rows={launches.phases.map((phase) => [
            phaseName(phase.kind),
            formatNumber(phase.launches),
            `${formatNumber(phase.launches_min)}–${formatNumber(phase.launches_max)}`,
            formatNumber(phase.kernels),
            formatNumber(phase.graph_launches),
            <FigureText figure={phase.kernels_per_layer} />,
            <FigureText figure={phase.launches_per_layer} />,
            mean(phase.api),
            median(phase.api),
            mean(phase.queue),
            median(phase.queue),
          ])}
        />
        <MissingNotes reasons={missingReasons([['per layer', launches.layers]])} />
        {short_kernels.phases.length > 0 && (
          <DataTable
            caption={`Kernels shorter than ${formatNs(short_kernels.threshold_ns)}`}
            columns={[
              { head: 'phase' },
              { head: 'kernels', numeric: true },
              { head: 'short', numeric: true },
              { head: 'of the kernels', numeric: true },
              { head: 'of their time', numeric: true },
            ]}
            rows={short_kernels.phases.map((phase) => [
              phaseName(phase.kind),
              formatCount(phase.kernels),
              formatCount(phase.short),
              formatPercent(phase.count_share),
              formatPercent(phase.time_share),
            ])}
          />
        )}
        <Behind title="Launches of each kernel">
          <DataTable
            caption="Mean of API call, queue and kernel; total from the begin of the call to the end of the kernel"
            filter
            columns={[
              { head: 'kernel' },
              { head: 'API call' },
              { head: 'n', numeric: true },
              { head: 'total', numeric: true },
              { head: 'API', numeric: true },
              { head: 'queue', numeric: true },
              { head: 'kernel', numeric: true },
            ]}
            rows={launches.kernels.map((row) => [
              <KernelName name={row.kernel} shortName={row.short_name} />,
              row.api_name === null ? noValue : <code>{row.api_name}</code>,
              formatCount(row.count),
              mean(row.total),
              mean(row.api),
              mean(row.queue),
              mean(row.kernel_spread),
            ])}
            sortKeys={launches.kernels.map((row) => [
              row.short_name,
              row.api_name,
              row.count,
              row.total.mean_ns,
              row.api.mean_ns,
              row.queue?.mean_ns ?? null,
              row.kernel_spread.mean_ns,
            ])}
          />
        </Behind>
        <Behind title="API calls">
          <DataTable
            caption="Runtime and driver calls, by total time"
            columns={[
              { head: 'call' },
              { head: 'n', numeric: true },
              { head: 'share', numeric: true },
              { head: 'total', numeric: true },
              { head: 'mean', numeric: true },
              { head: 'median', numeric: true },
              { head: 'max', numeric: true },
            ]}
            rows={api_calls.map((call) => [
              <code>{call.name}</code>,
              formatCount(call.count),
              formatPercent(call.share),
              formatNs(call.total_ns),
              formatNs(call.mean_ns),
              formatNs(call.median_ns),
              formatNs(call.max_ns),
            ])}
            sortKeys={api_calls.map((call) => [
              call.name,
              call.count,
              call.share,
              call.total_ns,
              call.mean_ns,
              call.median_ns,
              call.max_ns,
            ])}
          />
        </Behind>
      </>
    );
  },
};
