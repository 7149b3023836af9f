import { phaseTime } from '../model/headline-time.js';
import type { PhaseKind } from '../model/documents/trace-phase.js';
import type { TracePhase, TraceResult } from '../model/documents/trace.js';
import { partColor } from '../vocabulary/colors.js';
import { idleCauseLabel, idleCauses } from '../vocabulary/idle-causes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Section, Text } from './block.js';
import { type ColumnOf, tableOf } from './table-of.js';
import { labelsOf, phaseParts, shownPhases } from './trace-series.js';
import { ns, number } from './trace-values.js';

type PhaseLabel = ReturnType<typeof labelsOf>;

/** Rows below this share of a phase are shown only on the page. */
const smallShare = 0.005;

/** A mean instance of each phase: GPU work, and idle time by cause. */
export function phasesSection(data: TraceResult): Section {
  const phases = shownPhases(data);
  const label = labelsOf(data);
  return {
    id: 'phases',
    title: data.source.gpu_used ? 'Stages: busy and idle' : 'Stages',
    level: 2,
    blocks:
      phases.length === 0
        ? [noPhase]
        : data.source.gpu_used
          ? gpuBlocks(phases, label)
          : [phaseTable(phases, label, false)],
  };
}

const noPhase: Block = {
  type: 'missing',
  what: 'No stage was found.',
  why: 'No range in the capture is named prefill, decode or another stage. Add NVTX ranges or record_function marks.',
};

const gpuBlocks = (phases: readonly TracePhase[], label: PhaseLabel): Block[] => [
  {
    type: 'text',
    level: 3,
    text: `Mean per instance of each stage; 100 % is its time ${
      phases.some(isClean) ? 'without the profiler if known' : 'under the profiler'
    }, and the parts sum to it. The waterfall splits the host's part further, e.g. code that is loaded.`,
  },
  {
    type: 'chart',
    label: `Busy and idle shares of ${phases.map(({ kind }) => label(kind)).join(', ')}`,
    chart: {
      form: 'bars',
      kind: 'shares',
      unit: 'ms',
      rows: phases.map(({ kind }) => label(kind)),
      series: phaseParts(phases[0]!).map(({ id, name }, index) => ({
        name,
        color: partColor(id),
        values: phases.map((phase) => phaseParts(phase)[index]!.ms),
      })),
    },
    behind: partTable(phases, label),
  },
  phaseTable(phases, label, true),
  {
    type: 'notes',
    level: 3,
    items: clockNotes(phases, label),
  },
  {
    type: 'fold',
    level: 3,
    title: 'What the causes mean',
    blocks: [
      {
        type: 'facts',
        items: Object.values(idleCauses).map(({ label, meaning }) => ({ name: label, text: meaning })),
      },
    ],
  },
  ...phases.filter(({ rows }) => rows.length > 1).map(instanceFold),
];

/** Why phases are timed by host or device; phases with one reason share a note. */
function clockNotes(phases: readonly TracePhase[], label: PhaseLabel): string[] {
  const kindsByNote = new Map<string, PhaseKind[]>();
  for (const { kind, clock, clock_why: why } of phases) {
    const note = `timed by the ${clock}: ${why}`;
    kindsByNote.set(note, [...(kindsByNote.get(note) ?? []), kind]);
  }
  return [...kindsByNote].map(([note, kinds]) => `${kinds.map(label).join(', ')}: ${note}`);
}

const isClean = (phase: TracePhase): boolean => !phaseTime(phase).profiled;

function partTable(phases: readonly TracePhase[], label: PhaseLabel): Block {
  return {
    type: 'table',
    title: 'Time (mean per instance)',
    columns: [
      { id: 'phase', head: 'stage' },
      { id: 'part', head: 'GPU activity', wraps: true },
      { id: 'mean_ms', head: 'mean', ...number },
      {
        id: 'share',
        head: 'of the stage',
        ...number,
        ...(phases.some(isClean) && {
          meaning: 'of its time without the profiler, while GPU activity is as long as under it',
        }),
      },
    ],
    rows: phases.flatMap((phase) =>
      phaseParts(phase)
        .filter(({ ms }) => ms > 0)
        .map(({ name, ms, share }) => ({
          level: share < smallShare ? (3 as const) : (1 as const),
          cells: [
            label(phase.kind),
            name,
            { n: ms, unit: 'ms' },
            { n: share, unit: 'ratio' },
          ] satisfies Text[],
        })),
    ),
  };
}

type Size = TracePhase['by_batch'][number];
type Line = { label: string; times: TracePhase | Size; n: number; cause: string | null; median_ns: number };

/** Phases with their batch sizes below them, since a mean over mixed batch sizes is meaningless. */
function phaseTable(phases: readonly TracePhase[], label: PhaseLabel, gpuUsed: boolean): Block {
  const lines = phases.flatMap((phase): Line[] => [
    {
      label: label(phase.kind),
      times: phase,
      n: phase.instances,
      cause: phase.main_cause,
      median_ns: phase.wall.median_ns,
    },
    ...phase.by_batch.map((size) => ({
      label: `  batch ${size.batch_size}`,
      times: size,
      n: size.wall.count,
      cause: null,
      median_ns: size.wall.median_ns,
    })),
  ]);
  const hasCleanTimes = phases.some(isClean);
  const gpu: ColumnOf<Line>[] = [
    {
      id: 'busy_ns',
      head: 'busy',
      ...number,
      ...(hasCleanTimes && { meaning: 'under the profiler; mean and idle are without it' }),
      cell: ({ times }) => ns(times.busy_ns),
    },
    { id: 'idle_ns', head: 'idle', ...number, cell: ({ times }) => ns(times.idle_ns) },
    {
      id: 'idle_share',
      head: 'idle share',
      ...number,
      cell: ({ times }) => ({ n: times.idle_share, unit: 'ratio' }),
    },
    {
      id: 'main_cause',
      head: 'main cause',
      drop: 1,
      cell: ({ cause }) =>
        cause === null ? { missing: 'never idle, or split by batch size' } : idleCauseLabel(cause),
    },
    { id: 'kernels', head: 'kernels', ...number, cell: ({ times }) => countText(times.kernels) },
    { id: 'launches', head: 'launches', ...number, cell: ({ times }) => countText(times.launches) },
  ];
  return tableOf(
    `sd and median are of the times under the profiler${gpuUsed ? '; launches are API calls that launched kernels, fewer than kernels with CUDA graphs' : ''}`,
    [
      { id: 'phase', head: 'stage', wraps: true, cell: ({ label }) => label },
      {
        id: 'instances',
        head: 'n',
        ...number,
        ...(hasCleanTimes && { meaning: 'instances under the profiler' }),
        cell: ({ n }) => ({ count: n }),
      },
      {
        id: 'mean_ms',
        head: 'mean',
        ...number,
        cell: ({ times }) => ({ n: phaseTime(times).ms, unit: 'ms' }),
      },
      ...(gpuUsed ? gpu : []),
      ...(hasCleanTimes
        ? [
            {
              id: 'profiled_ns',
              head: 'under the profiler',
              ...number,
              drop: 3,
              cell: ({ times }: Line) => ns(times.wall.mean_ns),
            },
          ]
        : []),
      {
        id: 'sd_ns',
        head: 'sd',
        ...number,
        drop: 2,
        cell: ({ times: { wall } }) =>
          wall.sd_ns === null ? { missing: 'one instance has no spread' } : ns(wall.sd_ns),
      },
      { id: 'median_ns', head: 'median', ...number, drop: 0, cell: ({ median_ns: n }) => ns(n) },
      {
        id: 'clean',
        head: 'without the profiler',
        ...number,
        drop: -1,
        cell: ({ times }) => ({ figure: times.clean_ms, spread: true }),
      },
    ],
    lines,
  );
}

/** Count per mean instance: 219, 24.5. */
const countText = (n: number): Text => (Number.isInteger(n) ? { count: n } : { n, unit: '' });

const instanceFold = (phase: TracePhase): Block => ({
  type: 'fold',
  level: 3,
  title: `${phase.rows.length} instances of ${phaseLabel(phase.kind)}${
    phase.rows.length < phase.instances ? ` of ${phase.instances}` : ''
  }`,
  blocks: [
    tableOf(
      'Under the profiler, in time order',
      [
        { id: 'instance', head: 'instance', cell: ({ label }) => label },
        { id: 'start_ns', head: 'start', ...number, cell: ({ start_ns: n }) => ns(n) },
        { id: 'wall_ns', head: 'wall', ...number, cell: ({ wall_ns: n }) => ns(n) },
        { id: 'busy_ns', head: 'busy', ...number, cell: ({ busy_ns: n }) => ns(n) },
        { id: 'idle_ns', head: 'idle', ...number, cell: ({ idle_ns: n }) => ns(n) },
        {
          id: 'idle_share',
          head: 'idle share',
          ...number,
          cell: ({ idle_share: n }) => ({ n, unit: 'ratio' }),
        },
        { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels: count }) => ({ count }) },
        { id: 'copies', head: 'copies', ...number, cell: ({ copies: count }) => ({ count }) },
      ],
      phase.rows,
    ),
  ],
});
