import type { Document } from '../model/document.js';
import type { CountersResult, KernelCounters } from '../model/documents/counters.js';
import type { Figure } from '../model/figure.js';
import { cutEnd } from '../vocabulary/cut.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import type { Block, Text, Value } from './block.js';
import { type ColumnOf, tableOf } from './table-of.js';
import { maxHintCharacters } from './trace-values.js';

/** Maximum kernels in a summary. */
const briefKernels = 8;

/** Kernels profiled by Nsight Compute: the limit of each, and its use of the device. */
export function counterBlocks({ data, issues }: Document<CountersResult>): Block[] {
  const kernels = byStage(data.kernels);
  const labels = kernelLabels(kernels);
  const cellOf = ({ name, grid, block }: KernelCounters): Value => ({
    text: labels.get(name)!,
    hint: `${cutEnd(name, maxHintCharacters)}\n${grid ?? ''} × ${block ?? ''}`,
  });
  return [
    {
      type: 'text',
      text: [
        { count: data.launches_total },
        `${data.launches_total === 1 ? ' launch' : ' launches'} of `,
        { count: kernels.length },
        `${kernels.length === 1 ? ' kernel' : ' kernels'} under Nsight Compute, which replays each kernel in isolation: times differ from a timeline.`,
      ],
    },
    tableOf(
      "Means over launches; throughput in percent of the unit's peak sustained rate",
      columnsOf(cellOf, labels.size < kernels.length),
      kernels,
      {
        brief: briefKernels,
        filter: true,
      },
    ),
    {
      type: 'fold',
      level: 2,
      title: 'Each kernel: limit, launch configuration, stalls, roofline',
      blocks: kernels.flatMap((kernel) => kernelBlocks(kernel, cellOf(kernel))),
    },
    { type: 'issues', issues },
  ];
}

/** Phases in display order; other phases follow, and kernels without a phase are last. */
const stageOrder = ['decode', 'prefill', 'mixed', 'sampling', 'decode and prefill'];
const stageIndex = ({ stage }: KernelCounters): number => {
  const index = stageOrder.indexOf(stage ?? '');
  return index === -1 ? stageOrder.length + (stage === null ? 1 : 0) : index;
};
/** By phase, and within a phase by time (the order of the document). */
const byStage = (kernels: readonly KernelCounters[]): KernelCounters[] =>
  kernels.toSorted((a, b) => stageIndex(a) - stageIndex(b));

const notCollected = { missing: 'not collected' };
const number = { numeric: true } as const;

/** @param isGridNeeded whether rows have the same name, so that only the grid distinguishes them */
const columnsOf = (
  cellOf: (kernel: KernelCounters) => Value,
  isGridNeeded: boolean,
): ColumnOf<KernelCounters>[] => [
  { id: 'kernel', head: 'kernel', wraps: true, cell: cellOf },
  {
    id: 'grid',
    head: 'grid',
    ...(isGridNeeded ? {} : { drop: 6 }),
    cell: ({ grid }) => grid ?? { missing: 'no grid was recorded' },
  },
  {
    id: 'stage',
    head: 'stage',
    detail: true,
    drop: 8,
    cell: ({ stage }) => stage ?? { missing: 'it ran in no range' },
  },
  { id: 'bound', head: 'bound by', cell: boundOf },
  {
    id: 'launches',
    head: 'launches',
    ...number,
    drop: 7,
    cell: ({ launches }) => ({ count: launches }),
  },
  { id: 'duration_ns', head: 'time', ...number, cell: ({ duration_ns: figure }) => ({ figure }) },
  { id: 'sm_percent', head: 'SM', ...number, cell: ({ sm_throughput: figure }) => ({ figure }) },
  { id: 'memory_percent', head: 'memory', ...number, cell: ({ memory_throughput: figure }) => ({ figure }) },
  {
    id: 'dram_percent',
    head: 'DRAM',
    ...number,
    drop: 3,
    cell: ({ dram_throughput: figure }) => ({ figure }),
  },
  {
    id: 'l2_hit_percent',
    head: 'L2 hits',
    detail: true,
    ...number,
    drop: 2,
    cell: ({ l2_hit_rate: figure }) => ({ figure }),
  },
  {
    id: 'occupancy_percent',
    head: 'occupancy',
    ...number,
    drop: 9,
    cell: ({ occupancy }) => ({ figure: occupancy.achieved }),
  },
  {
    id: 'theoretical_occupancy_percent',
    head: 'possible',
    detail: true,
    ...number,
    drop: 2,
    cell: ({ occupancy }) => ({ figure: occupancy.theoretical }),
  },
  {
    id: 'limited_by',
    head: 'limited by',
    detail: true,
    drop: 1,
    cell: ({ occupancy: { limited_by: by } }) =>
      by.length === 0 ? { missing: 'no limiter, or not collected' } : by.join(', '),
  },
  {
    id: 'tensor_pipe_percent',
    head: 'tensor pipe',
    ...number,
    drop: 4,
    cell: ({ tensor_pipe: figure }) => ({ figure }),
  },
  { id: 'waves', head: 'waves', detail: true, ...number, drop: 5, cell: ({ waves }) => wavesOf(waves) },
  {
    id: 'flop_per_byte',
    head: 'FLOP/byte',
    detail: true,
    ...number,
    drop: 1,
    cell: ({ roofline }) => withoutUnit(roofline.arithmetic_intensity),
  },
  {
    id: 'roof_share',
    head: 'of roof',
    ...number,
    drop: 5,
    cell: ({ roofline }) => ({ figure: roofline.roof_share, utilization: true }),
  },
  { id: 'stalls', head: 'stalls', detail: true, drop: 0, cell: (kernel) => stallsOf(kernel, 2) },
];

function boundOf({ bound: { by, cause, text } }: KernelCounters): Text {
  return by === null
    ? { missing: text }
    : { text: `${by}${cause === 'near_peak' ? ', near its peak' : ''}`, hint: text };
}

const withoutUnit = (figure: Figure): Value =>
  figure.value === null ? { figure } : { n: figure.value, unit: '' };

/** A whole number: 32, not 32.0. */
const countOf = (figure: Figure): Value => (figure.value === null ? { figure } : { count: figure.value });

/** ncu rounds to hundredths, so 0 means less than 0.005. */
function wavesOf(waves: Figure): Value {
  if (waves.value === null) return { figure: waves };
  return waves.value < 0.005
    ? { text: '<0.01' }
    : { n: waves.value, unit: '', digits: waves.value < 0.1 ? 1 : 2 };
}

function stallsOf({ stalls, stalls_missing: missing }: KernelCounters, max: number): Text {
  if (stalls.length === 0) return { missing: missing ?? notCollected.missing };
  return stalls
    .slice(0, max)
    .flatMap(({ reason, share }, index) => [
      `${index === 0 ? '' : ', '}${reason} `,
      { n: share, unit: 'ratio' },
    ]);
}

/** Everything that was collected of one kernel. */
function kernelBlocks(kernel: KernelCounters, label: Value): Block[] {
  const { bound, occupancy, grid, launches, duration_ns: time, stage } = kernel;
  const [largest] = kernel.stalls;
  const throughputs: Parameters<typeof knownFigures>[0] = [
    ['SM', kernel.sm_throughput],
    ['memory', kernel.memory_throughput],
  ];
  const units: Parameters<typeof knownFigures>[0] = [
    ['DRAM', kernel.dram_throughput],
    ['tensor pipe', kernel.tensor_pipe],
  ];
  const facts: [name: string, text: Text | null][] = [
    ['bound', `${bound.by ?? 'unknown'}: ${bound.text}`],
    [
      'of the peak',
      // The line above has both throughputs, if they are known.
      knownFigures(bound.by === null ? [...throughputs, ...units] : units),
    ],
    [
      'occupancy',
      [
        ...figureOrReason(occupancy.achieved),
        ' of ',
        ...figureOrReason(occupancy.theoretical),
        ' possible',
        occupancy.limited_by.length > 0 ? `, limited by ${occupancy.limited_by.join(' and ')}` : '',
      ],
    ],
    [
      'hit rates',
      knownFigures([
        ['L1', kernel.l1_hit_rate],
        ['L2', kernel.l2_hit_rate],
      ]),
    ],
    [
      'launch',
      knownFigures([
        ['registers per thread', kernel.registers_per_thread, countOf],
        ['shared memory per block', kernel.shared_memory_per_block],
        ['waves of blocks', kernel.waves, wavesOf],
      ]),
    ],
    [
      'stalls',
      largest === undefined
        ? kernel.stalls_missing
        : [...[stallsOf(kernel, 3)].flat(), `. ${largest.reason}: ${largest.meaning}`],
    ],
    ['roofline', rooflineText(kernel)],
  ];
  return [
    {
      type: 'heading',
      text: [
        label,
        `${grid === null ? '' : ` · grid ${grid}`}${stage === null ? '' : ` · ${stage}`} · `,
        { count: launches },
        ' × ',
        ...figureOrReason(time),
      ],
    },
    { type: 'facts', items: facts.flatMap(([name, text]) => (text === null ? [] : [{ name, text }])) },
  ];
}

const figureOrReason = (figure: Figure): Value[] =>
  figure.value === null ? [{ text: `– (${figure.reason.text})` }] : [{ figure }];

const asFigure = (figure: Figure): Value => ({ figure });

function knownFigures(
  figures: readonly [label: string, figure: Figure, format?: (figure: Figure) => Value][],
): Text | null {
  const measured = figures.filter(([, { value }]) => value !== null);
  if (measured.length === 0) return null;
  return measured.flatMap(([label, figure, format = asFigure], index) => [
    `${index === 0 ? '' : ' · '}${label} `,
    format(figure),
  ]);
}

function rooflineText({ roofline }: KernelCounters): Text | null {
  const { achieved_flops: achieved, roof_flops: roof, roof_share: share, roof_side: side } = roofline;
  if (achieved.value === null || roof.value === null) return null;
  return [
    { figure: achieved },
    ', ',
    { figure: share, utilization: true },
    ' of the ',
    { figure: roof },
    ' that ',
    withoutUnit(roofline.arithmetic_intensity),
    ` FLOP per byte of DRAM traffic allow${side === null ? '' : ` (${side} side)`}`,
  ];
}
