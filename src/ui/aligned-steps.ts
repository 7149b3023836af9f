import type { ChosenStep, StepChoice, StepEvent } from '../facts/trace/chosen-steps.js';
import type { Block, Section, Text } from '../views/block.js';
import type { TimelineChart } from '../views/chart.js';
import { classColors } from '../vocabulary/colors.js';
import { plural } from '../vocabulary/format.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import { classLabel } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';

/** A compared session with its steps. */
export interface Side {
  letter: string;
  /** How many steps of each kind it has. */
  counts: readonly Pick<ChosenStep, 'kind' | 'count'>[];
  steps: readonly ChosenStep[];
  /** Link to a time range in the session's timeline (ns since its start). */
  linkTo: (start: number, end: number) => string;
}

interface StepOptions {
  choice: StepChoice;
  /** Link to this comparison with another step. */
  choose: (choice: StepChoice) => string;
  /** Whether the waterfalls above show times without a profiler. */
  clean: boolean;
}

/** Maximum steps listed by number. */
const stepsOffered = 12;

/** One step of each kind that every session has, aligned at its start on one time axis; null if they have no kind in common. */
export function alignedSteps(sides: readonly Side[], options: StepOptions): Section | null {
  const { choice } = options;
  const stepCount = sharedStepCount(sides);
  if (stepCount === 0) return null;
  const kinds = (sides[0]?.steps ?? [])
    .map(({ kind }) => kind)
    .filter((kind) => sides.every(({ steps }) => steps.some((step) => step.kind === kind)));
  const lead: Block[] = [
    { type: 'text', text: stepLinks(stepCount, options) },
    {
      type: 'text',
      text: `Times here are under the profiler${options.clean ? '; those of the waterfalls are without it' : ''}.`,
    },
    ...(kinds.length === 0
      ? ([
          { type: 'missing', what: 'No such step.', why: 'Not all sessions have as many.' },
        ] satisfies Block[])
      : []),
  ];
  const blocks = kinds.flatMap((kind) => {
    const withStep = sides.map((side) => ({ ...side, step: side.steps.find((step) => step.kind === kind)! }));
    return stepBlocks(withStep, phaseLabel(kind), choice);
  });
  return { id: 'steps', title: `${nameOf(choice)} on one axis`, blocks: [...lead, ...blocks] };
}

/** The largest number of steps of one kind that every session has; 0 if they have no kind in common. */
function sharedStepCount(sides: readonly Side[]): number {
  const common = (sides[0]?.counts ?? []).map(({ kind }) =>
    Math.min(...sides.map(({ counts }) => counts.find((sideCount) => sideCount.kind === kind)?.count ?? 0)),
  );
  return Math.max(0, ...common);
}

/** Links to the comparison of other steps. */
function stepLinks(stepCount: number, { choice, choose }: StepOptions): Text {
  const offered: StepChoice[] = ['median', 'slowest'];
  for (let nth = 1; nth <= Math.min(stepCount, stepsOffered); nth++) offered.push(nth);
  if (!offered.includes(choice)) offered.push(choice);
  return [
    'Step: ',
    ...offered.flatMap((stepChoice, index): Text[] => [
      index === 0 ? '' : ' · ',
      stepChoice === choice
        ? { text: `${stepChoice}`, tone: 'strong' }
        : { link: choose(stepChoice), text: `${stepChoice}` },
    ]),
    stepCount > stepsOffered ? ` … ${stepCount} (step=N in the address)` : '',
  ].flat();
}

type SideStep = Side & { step: ChosenStep };

/** The chart of one kind of step, with what it shows. */
function stepBlocks(sides: readonly SideStep[], kind: string, choice: StepChoice): Block[] {
  const leftOut = sides.reduce((sum, { step }) => sum + step.left_out, 0);
  const where = sides.flatMap(({ letter, step, linkTo }, index): Text[] => [
    index === 0 ? '' : ' · ',
    `${letter} `,
    { n: step.dur_ns, unit: 'ns' },
    `, step ${step.nth} of ${step.count}, `,
    { link: linkTo(step.start_ns, step.start_ns + step.dur_ns), text: 'in the timeline' },
  ]);
  return [
    {
      type: 'chart',
      title: kind,
      label: `${nameOf(choice)} ${kind} of each session on one axis`,
      chart: chartOf(sides),
      behind: {
        type: 'table',
        title: 'The steps of the chart',
        columns: [
          { id: 'side', head: 'session' },
          { id: 'step_ns', head: 'step', numeric: true },
          { id: 'kernels', head: 'kernels', numeric: true },
          { id: 'kernel_ns', head: 'kernel time', numeric: true },
          { id: 'calls', head: 'API calls', numeric: true },
        ],
        rows: sides.map(({ letter, step }) => ({
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
    { type: 'text', text: where.flat() },
    ...(leftOut > 0
      ? [
          {
            type: 'text',
            text: `${plural(leftOut, 'later event')} of these steps ${leftOut === 1 ? 'is' : 'are'} neither in the chart nor in the counts of its table.`,
          } as const,
        ]
      : []),
  ];
}

const nameOf = (choice: StepChoice): string =>
  choice === 'median' ? 'Median step' : choice === 'slowest' ? 'Slowest step' : `Step ${choice}`;

function chartOf(sides: readonly { letter: string; step: ChosenStep }[]): TimelineChart {
  const kinds: TimelineChart['kinds'][number][] = [];
  const known = new Map<string, number>();
  const labels = kernelLabels(sides.flatMap(({ step }) => step.kernels));
  const kindOf = ({ name, class: opClass }: StepEvent): number => {
    const id = `${opClass} ${name}`;
    const kind = known.get(id) ?? kinds.length;
    if (kind === kinds.length) {
      known.set(id, kind);
      const notes = opClass === null ? ['API call'] : [classLabel(opClass)];
      const label = opClass === null ? name : labels.get(name)!;
      kinds.push({ label, title: label, notes, color: classColors[opClass ?? 'other'] });
    }
    return kind;
  };
  const spansOf = (events: readonly StepEvent[], lane: number) =>
    events.map((event) => [lane, event.start_ns, event.dur_ns, kindOf(event)] as const);
  const classes = new Set(sides.flatMap(({ step }) => step.kernels.map((kernel) => kernel.class ?? 'other')));
  return {
    form: 'timeline',
    dur_ns: Math.max(...sides.map(({ step }) => step.dur_ns)),
    // GPU lanes come first, directly below each other: their kernels are the first thing to compare.
    lanes: [
      ...sides.map(({ letter }) => `${letter} · GPU`),
      ...sides.map(({ letter }) => `${letter} · API calls`),
    ],
    spans: sides.flatMap(({ step }, index) => [
      ...spansOf(step.kernels, index),
      ...spansOf(step.calls, sides.length + index),
    ]),
    kinds,
    key: [...classes].map((opClass) => ({ name: classLabel(opClass), color: classColors[opClass] })),
  };
}
