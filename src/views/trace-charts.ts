import { barParts } from '../model/bars.js';
import { opClasses } from '../model/classes.js';
import type { TraceResult, TraceTimeline } from '../model/documents/trace.js';
import { barColor, classColors, phaseColor } from '../vocabulary/colors.js';
import { idleCauses } from '../vocabulary/idle-causes.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { KeyEntry, LinesChart, TimelineChart } from './chart.js';

type Density = TraceTimeline['density'];
type Kind = TimelineChart['kinds'][number];

/**
 * The program's ranges on top, one line per nesting depth; then the lanes of the document.
 * @param textOf text of an event
 */
export function timelineChart(timeline: TraceTimeline, textOf: (event: Event) => string): TimelineChart {
  const { stages, events, lanes, dur_ns } = timeline;
  const depths = Math.max(0, ...stages.map(({ depth }) => depth + 1));
  const kinds = new Map<string, { index: number; kind: Kind }>();
  const kindIndex = (kind: Kind): number => {
    const id = `${kind.color} ${kind.title}`;
    const entry = kinds.get(id) ?? { index: kinds.size, kind };
    kinds.set(id, entry);
    return entry.index;
  };
  return {
    form: 'timeline',
    dur_ns,
    lanes: [
      ...Array.from({ length: depths }, (_, depth) => (depth === 0 ? 'stages' : '')),
      ...lanes.map(({ label }) => label),
    ],
    spans: [
      ...stages.map(
        ({ depth, kind, label, start_ns, dur_ns: dur }) =>
          [
            depth,
            start_ns,
            dur,
            kindIndex({ label, title: label, color: phaseColor(kind), notes: [] }),
          ] as const,
      ),
      ...events.map((event) => {
        const kind = eventKind(textOf(event), event, timeline);
        return [depths + event.lane, event.start_ns, event.dur_ns, kindIndex(kind)] as const;
      }),
    ],
    kinds: [...kinds.values()].map(({ kind }) => kind),
    key: keyOf(timeline),
  };
}

type Event = TraceTimeline['events'][number];

function eventKind(label: string, event: Event, { lanes, names }: TraceTimeline): Kind {
  const what = lanes[event.lane]?.what;
  if (what === 'idle') {
    const name = names[event.name] ?? '';
    const meaning = idleCauses[name]?.meaning;
    return {
      label,
      title: `idle: ${label}`,
      color: barColor(causeOf(name)),
      notes: meaning === undefined ? [] : [meaning],
    };
  }
  const named = { label, title: label };
  if (event.class !== null)
    return { ...named, color: classColors[event.class], notes: [classLabels[event.class]] };
  return { ...named, color: what === 'copies' ? classColors.copy : 'serial', notes: [] };
}

const causeOf = (name: string): string => barParts(name).head ?? '';

/** Entries for kernel classes, then stages and idle causes. */
function keyOf({ events, lanes, names, stages }: TraceTimeline): KeyEntry[] {
  const idle = new Set(
    events.flatMap(({ lane, name }) => (lanes[lane]?.what === 'idle' ? [causeOf(names[name] ?? '')] : [])),
  );
  return [
    ...opClasses
      .filter((name) => events.some((event) => event.class === name))
      .map((name) => ({ name: classLabels[name], color: classColors[name] })),
    ...[...new Set(stages.map(({ kind }) => kind))].map((kind) => ({
      name: phaseLabel(kind),
      color: phaseColor(kind),
    })),
    ...Object.entries(idleCauses)
      .filter(([id]) => idle.has(id))
      .map(([, { label, color }]) => ({ name: `idle: ${label}`, color })),
  ];
}

export const partName = (name: Density['classes'][number]['class']): string =>
  name === 'copies' ? 'memory copies' : classLabels[name];

/** Adjacent stages of one kind are merged: hundreds of decode steps become one shade. */
export function phaseShades(density: Density | undefined): NonNullable<LinesChart['shades']> {
  const shades: { kind: string; from: number; to: number; name: string; color: KeyEntry['color'] }[] = [];
  for (const { kind, start_ns, dur_ns } of density?.phases ?? []) {
    if (kind === 'outside') continue;
    const [from, to] = [start_ns / 1e9, (start_ns + dur_ns) / 1e9];
    const last = shades.at(-1);
    if (last?.kind === kind && from - last.to < 1e-3) last.to = Math.max(last.to, to);
    else shades.push({ kind, from, to, name: phaseLabel(kind), color: phaseColor(kind) });
  }
  return shades.map(({ name, from, to, color }) => ({ name, from, to, color }));
}

/** How busy the device was, by class, in equal bins over the whole capture; phases in the background. */
export function densityChart(density: Density): LinesChart {
  const { start_ns: start, bin_ns: bin, classes } = density;
  const bins = Math.max(0, ...classes.map(({ share }) => share.length));
  const busiest = Math.max(
    0,
    ...Array.from({ length: bins }, (_, index) =>
      classes.reduce((total, { share }) => total + (share[index] ?? 0), 0),
    ),
  );
  return {
    form: 'lines',
    small: true,
    x: { name: 'since session start', unit: 's' },
    panels: [
      {
        unit: 'ratio',
        // A device that is never half busy would be a line at the bottom.
        ...(busiest > 0.5 && { max: 1 }),
        series: classes.map(({ class: name, share }) => ({
          name: partName(name),
          color: name === 'copies' ? classColors.copy : classColors[name],
          style: 'stack',
          points: [share[0] ?? 0, ...share].map(
            (value, index) => [(start + index * bin) / 1e9, value] as const,
          ),
        })),
      },
    ],
    shades: phaseShades(density),
  };
}

/** Allocated and reserved memory over the capture, with the peak marked. */
export function memoryChart(
  { allocated, reserved, peak }: NonNullable<TraceResult['memory']>,
  timeline: TraceResult['timeline'],
): LinesChart {
  const seconds = (points: readonly [number, number][]) =>
    points.map(([ns, bytes]) => [ns / 1e9, bytes] as const);
  return {
    form: 'lines',
    x: { name: 'since session start', unit: 's' },
    panels: [
      {
        unit: 'B',
        series: [
          {
            name: 'reserved',
            color: classColors.sampling,
            dash: 'dashed' as const,
            points: seconds(reserved),
          },
          {
            name: 'allocated',
            color: classColors.gemm,
            dash: 'solid' as const,
            points: seconds(allocated),
          },
        ].filter(({ points }) => points.length > 0),
      },
    ],
    shades: phaseShades(timeline?.density),
    marks: [{ x: peak.t_ns / 1e9, y: peak.allocated_bytes, name: 'peak', color: classColors.sampling }],
  };
}
