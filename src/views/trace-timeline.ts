import { evenlySpaced } from '../model/evenly-spaced.js';
import type { TraceResult } from '../model/documents/trace.js';
import { idleCauseLabel } from '../vocabulary/idle-causes.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { isShownMetric, metricLabel, scopeLabel } from '../vocabulary/sampled-metrics.js';
import { phaseLabel } from '../vocabulary/stages.js';
import { formatTimeTick, plural } from '../vocabulary/format.js';
import type { Block, Section, Text } from './block.js';
import { samplesBlock } from './samples.js';
import { tableOf } from './table-of.js';
import { densityChart, memoryChart, partName, phaseShades, timelineChart } from './trace-charts.js';
import { sampledPhases } from './trace-series.js';
import { countValue, ns, number, ratio } from './trace-values.js';

/** Maximum events in the table behind the chart; the session's tables have all. */
const maxEvents = 200;

const mean = (shares: readonly number[]): number =>
  shares.length === 0 ? 0 : shares.reduce((total, share) => total + share, 0) / shares.length;

/** One prefill and a few steps, event by event, and GPU activity over the whole capture. */
export function timelineSection({
  timeline,
  kernels = [],
}: Pick<TraceResult, 'timeline'> & Partial<Pick<TraceResult, 'kernels'>>): Section {
  const onCpu = timeline?.lanes.every(({ what }) => what === 'operators') ?? false;
  const section = { id: 'timeline', title: onCpu ? 'Timeline' : 'GPU timeline', level: 3 as const };
  if (!timeline) {
    const why = 'No kernel, copy or operator was recorded with a time.';
    return { ...section, blocks: [{ type: 'missing', what: 'No timeline.', why }] };
  }
  const { density, events, lanes, names, stages, dropped } = timeline;
  const kernelNames = names.map((name) => ({ name }));
  const labelByName = kernelLabels([...kernels, ...kernelNames]);
  const labels = names.map((name) => labelByName.get(name)!);
  const textOf = ({ lane, name }: (typeof events)[number]): string => {
    const what = lanes[lane]?.what;
    if (what === 'idle') return idleCauseLabel(names[name] ?? '');
    return (what === 'kernels' ? labels : names)[name] ?? '';
  };
  const longest = events.toSorted((a, b) => b.dur_ns - a.dur_ns).slice(0, maxEvents);
  return {
    ...section,
    blocks: [
      {
        type: 'text',
        text: [
          ns(timeline.dur_ns),
          ' of the capture, from ',
          formatTimeTick(timeline.origin_ns, timeline.dur_ns),
          onCpu
            ? ` on: ${stages.length > 0 ? 'ranges of the program, and ' : ''}operators by thread. `
            : ` on: ${stages.length > 0 ? 'ranges of the program, ' : ''}API calls, streams, and why the GPU was idle. `,
          countValue(events.length),
          ' events',
          ...(dropped > 0
            ? [
                '; ',
                countValue(dropped),
                ' more are omitted (inferscope export --format chrome-trace has all)',
              ]
            : []),
          '. Events narrower than a pixel are drawn 0.7 pixels wide: zoom in to distinguish them.',
        ],
      },
      {
        type: 'chart',
        label: `Timeline of ${plural(events.length, 'event')} on ${plural(lanes.length, 'lane')}`,
        chart: timelineChart(timeline, textOf),
        behind: tableOf(
          events.length > maxEvents ? `The ${maxEvents} longest of ${events.length} events` : 'Events',
          [
            { id: 'lane', head: 'lane', cell: ({ lane }) => lanes[lane]?.label ?? { missing: 'no lane' } },
            {
              id: 'event',
              head: 'event',
              cell: (event) => (lanes[event.lane]?.what === 'idle' ? textOf(event) : { code: textOf(event) }),
            },
            {
              id: 'class',
              head: 'class',
              cell: (event) => (event.class === null ? { missing: 'no class' } : classLabels[event.class]),
            },
            { id: 'start_ns', head: 'start', ...number, cell: ({ start_ns: n }) => ns(n) },
            { id: 'dur_ns', head: 'duration', ...number, cell: ({ dur_ns: n }) => ns(n) },
          ],
          longest,
          { reasons: false },
        ),
      },
      ...(density.classes.length > 0 ? [densityBlock(density)] : []),
    ],
  };
}

/** GPU activity over the capture. A program without a GPU has none: its operators nest, so their shares would not add up. */
const densityBlock = (density: NonNullable<TraceResult['timeline']>['density']): Block => ({
  type: 'chart',
  title: [
    'The whole capture: share of each ',
    ns(density.bin_ns),
    ` by class${phaseShades(density).length > 0 ? ', stages shaded behind' : ''}`,
  ],
  label: 'How busy the GPU was over the capture, by class',
  chart: densityChart(density),
  behind: tableOf(
    'Share of time over the capture',
    [
      {
        id: 'class',
        head: 'class',
        cell: (part) => partName(part.class),
      },
      { id: 'mean_share', head: 'mean', ...number, cell: ({ share }) => ratio(mean(share)) },
      {
        id: 'highest_share',
        head: 'highest',
        ...number,
        cell: ({ share }) => ratio(share.reduce((max, value) => Math.max(max, value), 0)),
      },
    ],
    density.classes,
  ),
});

const maxOperators = 15;
const maxPoints = 150;

/** Memory of the framework's allocator over the capture. */
export function memorySection({ memory, source, operators, timeline }: TraceResult): Section | null {
  if (!memory) return null;
  const { peak, unused_share: unused, max_reserved_bytes: reserved } = memory;
  const allocating = (operators?.rows ?? [])
    .flatMap(({ name, count, allocated_bytes: bytes }) => (bytes ? [{ name, count, bytes }] : []))
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, maxOperators);
  const size = (n: number): Text => ({ n, unit: 'B' });
  return {
    id: 'memory',
    title: 'Memory of the allocator',
    level: 2,
    blocks: [
      {
        type: 'text',
        text: [
          `${memory.source} of capture ${memory.capture_id}: at most `,
          ...[size(peak.allocated_bytes)].flat(),
          ` allocated${peak.phase === null ? '' : `, in ${phaseLabel(peak.phase)}`}`,
          ...(reserved === null ? [] : ['; ', ...[size(reserved)].flat(), ' reserved']),
          ...(reserved === null || unused === null ? [] : [', ', ratio(unused), ' of it never allocated']),
          '.',
          memory.capture_id === source.attribution.capture_id
            ? ''
            : ' It was recorded in another run of the program than the timeline.',
        ],
      },
      {
        type: 'chart',
        level: 3,
        label: 'Memory allocated and reserved over the capture',
        chart: memoryChart(memory, timeline),
        behind: tableOf(
          `At most ${maxPoints} of ${memory.allocated.length} points`,
          [
            { id: 'time_ns', head: 'time', ...number, cell: ([time]) => ns(time) },
            { id: 'allocated_bytes', head: 'allocated', ...number, cell: ([, bytes]) => size(bytes) },
          ],
          evenlySpaced(memory.allocated, maxPoints),
        ),
      },
      ...(allocating.length > 0
        ? [
            tableOf(
              'Operators by memory allocated by their own code over the capture, including freed memory',
              [
                { id: 'operator', head: 'operator', wraps: true, cell: ({ name }) => ({ code: name }) },
                { id: 'allocated_bytes', head: 'allocated', ...number, cell: ({ bytes }) => size(bytes) },
                { id: 'calls', head: 'calls', ...number, cell: ({ count }) => ({ count }) },
                {
                  id: 'bytes_per_call',
                  head: 'per call',
                  ...number,
                  cell: ({ bytes, count }) => size(bytes / count),
                },
              ],
              allocating,
            ),
          ]
        : []),
    ],
  };
}

/** Power, clocks and utilization over the capture, with throttle reasons. */
export function telemetrySection(data: TraceResult): Section | null {
  const { telemetry } = data;
  const shownSeries = telemetry?.series.filter(({ metric }) => isShownMetric(metric)) ?? [];
  if (!telemetry || shownSeries.length === 0) return null;
  const kinds = sampledPhases(data);
  return {
    id: 'telemetry',
    title: 'Telemetry',
    level: 2,
    blocks: [
      {
        type: 'notes',
        items: telemetry.events.map(({ text, start_ns: start, end_ns: end }): Text => [
          { text, tone: 'fault' },
          ' (',
          ns(start),
          ...(end > start ? [' to ', ns(end)] : []),
          ')',
        ]),
      },
      samplesBlock(
        shownSeries.map((series) => ({
          ...series,
          points: series.points.map(([time, value]) => [time / 1e6, value] as const),
        })),
        'Power, clocks and utilization over time',
        phaseShades(data.timeline?.density),
      ),
      tableOf(
        'Over the whole capture, and means within the stages',
        [
          { id: 'scope', head: 'scope', cell: ({ scope }) => scopeLabel(scope) },
          { id: 'metric', head: 'metric', wraps: 12, lines: true, cell: ({ metric }) => metricLabel(metric) },
          { id: 'mean', head: 'mean', ...number, cell: ({ mean: n, unit }) => ({ n, unit }) },
          { id: 'min', head: 'min', ...number, cell: ({ min: n, unit }) => ({ n, unit }) },
          { id: 'max', head: 'max', ...number, cell: ({ max: n, unit }) => ({ n, unit }) },
          ...kinds.map((kind, index) => ({
            id: `${kind}_mean`,
            head: phaseLabel(kind),
            ...number,
            drop: kinds.length - index,
            cell: ({ phases, unit }: (typeof shownSeries)[number]): Text => {
              const phaseOfKind = phases.find((phase) => phase.kind === kind);
              return phaseOfKind && phaseOfKind.samples > 0
                ? [{ n: phaseOfKind.mean, unit }, ' (n = ', countValue(phaseOfKind.samples), ')']
                : { missing: 'the stage was too short for a sample' };
            },
          })),
        ],
        shownSeries,
      ),
    ],
  };
}
