import { opClasses } from '../../../model/classes.js';
import type { TraceTimeline } from '../../../model/documents/trace.js';
import { causeName, causes, formatNs, phaseColor, phaseName } from '../../charts/trace/words.js';
import { formatCount, formatPercent, noValue } from '../../format.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import type { Theme } from '../../palette.js';
import { Absent, ClassLegend, DataTable } from '../parts.js';
import type { TraceSection } from './inputs.js';
import { ColorKey, TraceChart } from './trace-parts.js';

/** Rows of the table behind the chart; the session's tables have all of them. */
const longest = 200;

const mean = (shares: number[]): number =>
  shares.length === 0 ? 0 : shares.reduce((total, share) => total + share, 0) / shares.length;

function legend(timeline: TraceTimeline, theme: Theme) {
  const kinds = new Set(timeline.stages.map(({ kind }) => kind));
  const idle = new Set(
    timeline.events
      .filter(({ lane }) => timeline.lanes[lane]?.what === 'idle')
      .map(({ name }) => (timeline.names[name] ?? '').split('.')[0] ?? ''),
  );
  return [
    ...[...kinds].map((kind) => ({ name: phaseName(kind), color: phaseColor(kind, theme) })),
    ...Object.entries(causes)
      .filter(([id]) => idle.has(id))
      .map(([, { name, color }]) => ({ name: `idle: ${name}`, color })),
  ];
}

export const gpuTimelineSection: TraceSection = {
  id: 'timeline',
  title: 'GPU timeline',
  render: ({ data }) => {
    const { timeline } = data;
    if (!timeline) {
      return <Absent what="There is no timeline." why="The capture has no kernel or copy with a time." />;
    }
    const { density, events, lanes, names } = timeline;
    const shown = events.toSorted((a, b) => b.dur_ns - a.dur_ns).slice(0, longest);
    return (
      <>
        <p>
          {formatNs(timeline.dur_ns)} of the capture, from {formatNs(timeline.origin_ns)} on: ranges of the
          program, API calls, streams, and why the device was idle. {formatCount(events.length)} events
          {timeline.dropped > 0 &&
            `; ${formatCount(timeline.dropped)} more are left out (inferscope export --format chrome-trace has all)`}
          . What is narrower than a pixel is drawn 0.7 pixels wide: zoom in to tell such events apart.
        </p>
        <ClassLegend
          classes={opClasses.filter((opClass) => events.some((event) => event.class === opClass))}
        />
        <ColorKey label="Stages and idle time" entries={(theme) => legend(timeline, theme)} />
        <TraceChart
          name="gpu_timeline"
          result={data}
          label={`Timeline of ${formatCount(events.length)} events on ${lanes.length} lanes`}
        >
          <DataTable
            caption={
              events.length > longest ? `The ${longest} longest of ${formatCount(events.length)}` : 'Events'
            }
            columns={[
              { head: 'lane' },
              { head: 'event' },
              { head: 'class' },
              { head: 'start', numeric: true },
              { head: 'duration', numeric: true },
            ]}
            rows={shown.map((event) => {
              const lane = lanes[event.lane];
              const name = names[event.name] ?? '';
              return [
                lane?.label ?? noValue,
                <code>{lane?.what === 'idle' ? causeName(name) : name}</code>,
                event.class === null ? noValue : classLabels[event.class],
                formatNs(event.start_ns),
                formatNs(event.dur_ns),
              ];
            })}
            sortKeys={shown.map((event) => [
              event.lane,
              names[event.name] ?? '',
              event.class,
              event.start_ns,
              event.dur_ns,
            ])}
          />
        </TraceChart>
        <h3>The whole capture</h3>
        <p>Share of each {formatNs(density.bin_ns)} that a class took; phases shaded behind.</p>
        <TraceChart name="density" result={data} label="How busy the device was over the capture, by class">
          <DataTable
            caption="Mean share over the capture"
            columns={[
              { head: 'class' },
              { head: 'mean share', numeric: true },
              { head: 'highest', numeric: true },
            ]}
            rows={density.classes.map(({ class: name, share }) => [
              name === 'copies' ? 'copies' : classLabels[name],
              formatPercent(mean(share)),
              formatPercent(share.reduce((most, value) => Math.max(most, value), 0)),
            ])}
          />
        </TraceChart>
      </>
    );
  },
};
