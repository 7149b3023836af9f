import type { MedianStep, StepEvent } from '../facts/trace/median-steps.js';
import type { Block, Section, Text } from '../views/block.js';
import type { TimelineChart } from '../views/chart.js';
import { classColors } from '../vocabulary/colours.js';
import { plural } from '../vocabulary/format.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';

/** A compared session with its steps. */
export interface Side {
  letter: string;
  steps: readonly MedianStep[];
  /** Address of a time in its timeline. */
  linkTo: (start: number, end: number) => string;
}

/** The median step of each kind that all sides have, from its start on one axis. */
export function alignedSteps(sides: readonly Side[]): Section | null {
  const kinds = (sides[0]?.steps ?? [])
    .map(({ kind }) => kind)
    .filter((kind) => sides.every(({ steps }) => steps.some((one) => one.kind === kind)));
  if (kinds.length === 0) return null;
  const blocks = kinds.flatMap((kind): Block[] => {
    const own = sides.map((side) => ({ ...side, step: side.steps.find((one) => one.kind === kind)! }));
    const leftOut = own.reduce((sum, { step }) => sum + step.left_out, 0);
    const where = own.flatMap(({ letter, step, linkTo }, index): Text[] => [
      index === 0 ? '' : ' · ',
      `${letter} `,
      { n: step.dur_ns, unit: 'ns' },
      ' ',
      { link: linkTo(step.start_ns, step.start_ns + step.dur_ns), text: 'in the timeline' },
    ]);
    return [
      {
        t: 'chart',
        title: phaseLabel(kind),
        label: `The median ${phaseLabel(kind)} of each session on one axis`,
        chart: chartOf(own),
        behind: {
          t: 'table',
          title: 'The steps of the chart',
          columns: [
            { id: 'side', head: 'session' },
            { id: 'step_ns', head: 'step', numeric: true },
            { id: 'kernels', head: 'kernels', numeric: true },
            { id: 'kernel_ns', head: 'kernel time', numeric: true },
            { id: 'calls', head: 'API calls', numeric: true },
          ],
          rows: own.map(({ letter, step }) => ({
            cells: [
              letter,
              { n: step.dur_ns, unit: 'ns' },
              { count: step.kernels.length },
              { n: step.kernels.reduce((sum, { dur_ns }) => sum + dur_ns, 0), unit: 'ns' },
              { count: step.calls.length },
            ],
          })),
        },
      },
      { t: 'text', text: where.flat() },
      ...(leftOut > 0
        ? [
            {
              t: 'text',
              text: `${plural(leftOut, 'later event')} of these steps are not in the chart.`,
            } as const,
          ]
        : []),
    ];
  });
  return { id: 'steps', title: 'Median steps on one axis, as traced', blocks };
}

function chartOf(sides: readonly { letter: string; step: MedianStep }[]): TimelineChart {
  const kinds: TimelineChart['kinds'][number][] = [];
  const known = new Map<string, number>();
  const kindOf = ({ name, class: opClass }: StepEvent): number => {
    const id = `${opClass} ${name}`;
    const found = known.get(id) ?? kinds.length;
    if (found === kinds.length) {
      known.set(id, found);
      const notes = opClass === null ? ['API call'] : [classLabel(opClass)];
      kinds.push({ label: name, title: name, notes, color: classColors[opClass ?? 'other'] });
    }
    return found;
  };
  const spansOf = (events: readonly StepEvent[], lane: number) =>
    events.map((one) => [lane, one.start_ns, one.dur_ns, kindOf(one)] as const);
  const classes = new Set(sides.flatMap(({ step }) => step.kernels.map((one) => one.class ?? 'other')));
  return {
    form: 'timeline',
    dur_ns: Math.max(...sides.map(({ step }) => step.dur_ns)),
    lanes: sides.flatMap(({ letter }) => [`${letter} · GPU`, `${letter} · API calls`]),
    spans: sides.flatMap(({ step }, index) => [
      ...spansOf(step.kernels, 2 * index),
      ...spansOf(step.calls, 2 * index + 1),
    ]),
    kinds,
    key: [...classes].map((one) => ({ name: classLabel(one), color: classColors[one] })),
  };
}
