import type { TraceResult } from '../model/documents/trace.js';
import type { Figure } from '../model/figure.js';
import { phaseTime } from '../model/headline-time.js';
import { idleCauseLabel } from '../vocabulary/idle-causes.js';
import { perInstance, phaseLabel } from '../vocabulary/stages.js';
import type { Block, Part, Section, Text, Value } from './block.js';
import { tableOf } from './table-of.js';
import { hasMarks, labelsOf } from './trace-series.js';
import { unitless, codeOr, countValue, namedKernels, ns, number, ratio, spread } from './trace-values.js';

type PhaseLabel = ReturnType<typeof labelsOf>;

/** Rows shown without a click. */
const visibleRows = 15;
const noOperator = 'no operator in these gaps';
const noCall = 'no API call in these gaps';

/** Gaps by cause and by what ended them, and the longest gaps. */
export function idleSection(data: TraceResult): Section {
  const {
    idle: { waits, longest },
    phases,
  } = data;
  const label = labelsOf(data);
  const table = (title: string, rows: typeof waits): Block =>
    tableOf(
      title,
      [
        { id: 'phase', head: 'ended in', cell: ({ phase }) => label(phase) },
        { id: 'cause', head: 'cause', wraps: true, cell: ({ cause }) => idleCauseLabel(cause) },
        {
          id: 'operator',
          head: 'ended by operator',
          drop: 0,
          cell: ({ operator }) => codeOr(operator, noOperator),
        },
        {
          id: 'api_call',
          head: 'API call of the longest',
          wraps: true,
          drop: 1,
          cell: ({ api_name: name }) => codeOr(name, noCall),
        },
        { id: 'gaps', head: 'gaps', ...number, cell: ({ count }) => ({ count }) },
        { id: 'total_ns', head: 'total', ...number, cell: ({ total_ns: n }) => ns(n) },
        { id: 'longest_ns', head: 'longest', ...number, cell: ({ longest_ns: n }) => ns(n) },
      ],
      rows,
    );
  return {
    id: 'idle',
    title: 'Why the GPU was idle',
    level: 2,
    blocks:
      waits.length === 0
        ? [
            {
              type: 'missing',
              what: 'No idle time was found.',
              why: 'The GPU was busy from its first to its last activity.',
            },
          ]
        : [
            {
              type: 'text',
              level: 3,
              text: 'A gap is time without a running kernel or copy. It is split by host and queue activity: one gap can have several causes, each with its part of the time.',
            },
            table('By cause (totals of the whole capture)', waits.slice(0, visibleRows)),
            countedNote(phases),
            ...(waits.length > visibleRows
              ? [moreFold(waits.length - visibleRows, table('Further causes', waits.slice(visibleRows)))]
              : []),
            ...(longest.length > 0 ? [longestGaps(longest, label)] : []),
          ],
  };
}

/** Where gaps count, and idle time without the profiler, which other tables have. */
function countedNote(phases: TraceResult['phases']): Block {
  const clean = phases.filter((phase) => !phaseTime(phase).profiled);
  const times = clean.flatMap(({ kind, idle_ns: idle }, index): Part[] => [
    index === 0 ? ' They have the overhead of the profiler; without it the GPU is idle for ' : ', ',
    ns(idle),
    ` ${perInstance(kind)}`,
  ]);
  return {
    type: 'text',
    text: [
      'Gaps count in the stage of the work that ended them, also a pause before the stage.',
      ...times,
      ...(clean.length > 0 ? ['.'] : []),
    ],
  };
}

const moreFold = (count: number, table: Block): Block => ({
  type: 'fold',
  level: 3,
  title: `${count} more`,
  blocks: [table],
});

const longestGaps = (longest: TraceResult['idle']['longest'], label: PhaseLabel): Block => ({
  type: 'fold',
  level: 3,
  title: 'The longest gaps',
  blocks: [
    tableOf(
      'Single gaps by length, with their parts',
      [
        { id: 'start_ns', head: 'start', ...number, cell: ({ start_ns: n }) => ns(n) },
        { id: 'dur_ns', head: 'length', ...number, cell: ({ dur_ns: n }) => ns(n) },
        {
          id: 'causes',
          head: 'causes',
          wraps: true,
          cell: ({ parts }): Text =>
            parts.flatMap(({ id, ns: n }, index) => [
              `${index === 0 ? '' : ', '}${idleCauseLabel(id)} `,
              ns(n),
            ]),
        },
        { id: 'phase', head: 'ended in', cell: ({ phase }) => label(phase) },
        { id: 'operator', head: 'ended by', cell: ({ operator }) => codeOr(operator, noOperator) },
        {
          id: 'api_call',
          head: 'API call',
          detail: true,
          cell: ({ api_name: name }) => codeOr(name, noCall),
        },
      ],
      longest,
    ),
  ],
});

/** Launches per mean instance, of each kernel, and the API calls. */
export function launchesSection(data: TraceResult): Section {
  const { kernels, launches, short_kernels: short, api_calls: calls } = data;
  const label = labelsOf(data);
  const section = { id: 'launches', title: 'Launches', level: 2 as const };
  if (launches.phases.length === 0) {
    const why = 'The capture has no API calls, or none that launched a kernel.';
    return { ...section, blocks: [{ type: 'missing', what: 'No launch was found.', why }] };
  }
  return {
    ...section,
    blocks: [
      launchTable(launches, label),
      ...(short.phases.length > 0 ? [shortTable(short, data)] : []),
      kernelLaunches(launches.kernels, kernels ?? []),
      callTable(calls),
    ],
  };
}

const launchTable = ({ phases, layers }: TraceResult['launches'], label: PhaseLabel): Block =>
  tableOf(
    'Mean per instance. Call: duration of the launching API call. Queue: from its return to the start of the kernel',
    [
      { id: 'phase', head: 'stage', wraps: true, cell: ({ kind }) => label(kind) },
      { id: 'launches', head: 'launches', ...number, cell: ({ launches: n }) => unitless(n) },
      {
        id: 'launches_range',
        head: 'min–max',
        ...number,
        drop: 0,
        cell: ({ launches_min: min, launches_max: max }) => [unitless(min), '–', unitless(max)],
      },
      { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels: n }) => unitless(n) },
      { id: 'graph_launches', head: 'graphs', ...number, cell: ({ graph_launches: n }) => unitless(n) },
      {
        id: 'kernels_per_layer',
        head: 'kernels per layer',
        ...number,
        drop: 1,
        cell: ({ kernels_per_layer: figure }) => perLayer(figure, layers),
      },
      {
        id: 'launches_per_layer',
        head: 'launches per layer',
        ...number,
        drop: 4,
        cell: ({ launches_per_layer: figure }) => perLayer(figure, layers),
      },
      { id: 'call_mean_ns', head: 'call, mean', ...number, cell: ({ api }) => spread(api, 'mean_ns') },
      {
        id: 'call_median_ns',
        head: 'call, median',
        ...number,
        drop: 3,
        cell: ({ api }) => spread(api, 'median_ns'),
      },
      {
        id: 'queue_mean_ns',
        head: 'queue, mean',
        ...number,
        drop: 2,
        cell: ({ queue }) => spread(queue, 'mean_ns'),
      },
      {
        id: 'queue_median_ns',
        head: 'queue, median',
        ...number,
        cell: ({ queue }) => spread(queue, 'median_ns'),
      },
    ],
    phases,
  );

function perLayer(figure: Figure, layers: Figure): Value {
  if (layers.value === null) return { figure: layers };
  return figure.value === null
    ? { missing: 'an instance is not one pass through the layers' }
    : unitless(figure.value);
}

const shortTable = (
  { threshold_ns: threshold, phases }: TraceResult['short_kernels'],
  data: TraceResult,
): Block => ({
  level: 3,
  ...tableOf(
    ['Kernels shorter than ', ns(threshold)],
    [
      { id: 'phase', head: 'stage', cell: ({ kind }) => phaseLabel(kind) },
      { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels }) => countValue(kernels) },
      { id: 'short', head: 'short', ...number, cell: ({ short }) => countValue(short) },
      { id: 'count_share', head: 'of the kernels', ...number, cell: ({ count_share: n }) => ratio(n) },
      { id: 'time_share', head: 'of their time', ...number, cell: ({ time_share: n }) => ratio(n) },
    ],
    phases.filter(({ kind }) => kind === null || hasMarks(data)),
  ),
});

function kernelLaunches(
  kernels: TraceResult['launches']['kernels'],
  otherKernels: NonNullable<TraceResult['kernels']>,
): Block {
  const nameOf = namedKernels([...otherKernels, ...kernels.map(({ kernel: name }) => ({ name }))]);
  return {
    type: 'fold',
    level: 3,
    title: 'Launches of each kernel',
    blocks: [
      tableOf(
        'Mean of API call, queue and kernel; total from the start of the call to the end of the kernel',
        [
          {
            id: 'kernel',
            head: 'kernel',
            wraps: true,
            cell: ({ kernel }) => nameOf(kernel),
          },
          { id: 'api_call', head: 'API call', cell: ({ api_name: name }) => codeOr(name, noCall) },
          { id: 'count', head: 'n', ...number, cell: ({ count }) => ({ count }) },
          { id: 'total_ns', head: 'total', ...number, cell: ({ total }) => spread(total, 'mean_ns') },
          { id: 'call_ns', head: 'call', ...number, cell: ({ api }) => spread(api, 'mean_ns') },
          { id: 'queue_ns', head: 'queue', ...number, cell: ({ queue }) => spread(queue, 'mean_ns') },
          {
            id: 'kernel_ns',
            head: 'kernel',
            ...number,
            cell: ({ kernel_spread: kernelSpread }) => spread(kernelSpread, 'mean_ns'),
          },
        ],
        kernels,
        { filter: true },
      ),
    ],
  };
}

const callTable = (calls: TraceResult['api_calls']): Block => ({
  type: 'fold',
  level: 3,
  title: 'API calls',
  blocks: [
    tableOf(
      'Runtime and driver calls, by total time',
      [
        { id: 'call', head: 'call', cell: ({ name }) => ({ code: name }) },
        { id: 'count', head: 'n', ...number, cell: ({ count }) => ({ count }) },
        { id: 'share', head: 'share', ...number, cell: ({ share }) => ratio(share) },
        { id: 'total_ns', head: 'total', ...number, cell: ({ total_ns: n }) => ns(n) },
        { id: 'mean_ns', head: 'mean', ...number, cell: ({ mean_ns: n }) => ns(n) },
        { id: 'median_ns', head: 'median', ...number, cell: ({ median_ns: n }) => ns(n) },
        { id: 'max_ns', head: 'max', ...number, cell: ({ max_ns: n }) => ns(n) },
      ],
      calls,
    ),
  ],
});
