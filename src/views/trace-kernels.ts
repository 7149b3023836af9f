import { copyDirection } from '../vocabulary/bars.js';
import type { PhaseKind, TraceCopy, TraceResult } from '../model/documents/trace.js';
import { opClasses } from '../model/classes.js';
import { cutEnd } from '../vocabulary/cut.js';
import { classColors } from '../vocabulary/colors.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Row, Section, Text } from './block.js';
import { tableOf } from './table-of.js';
import { kernelTable } from './trace-kernel-table.js';
import { classTables, hasMarks } from './trace-series.js';
import { unitless, countValue, namedKernels, ns, number, ratio } from './trace-values.js';

/** Kernels shown without a click, and in text. */
const visibleKernels = 25;

export function kernelsSection(data: TraceResult): Section {
  const { kernels, kernels_total: total } = data;
  const options = { nameOf: namedKernels(kernels), hasPhases: hasMarks(data) };
  const table = (title: string, rows: typeof kernels): Block => kernelTable(title, rows, options);
  const others = kernels.slice(visibleKernels);
  return {
    id: 'kernels',
    title: 'Kernels',
    level: 2,
    blocks:
      kernels.length === 0
        ? [{ type: 'missing', what: 'No kernels.', why: 'The capture recorded none.' }]
        : [
            {
              type: 'text',
              text: [
                countValue(total.count),
                ' kernels of ',
                countValue(total.names),
                `${total.names === 1 ? ' name' : ' names'}, `,
                ns(total.total_ns),
                ' in all.',
              ],
            },
            table(
              `By total time${others.length > 0 ? `, the first ${visibleKernels}` : ''}`,
              kernels.slice(0, visibleKernels),
            ),
            ...(others.length > 0
              ? [
                  {
                    type: 'fold',
                    level: 3,
                    title: `${others.length} more${kernels.length < total.names ? ` of ${total.names - visibleKernels}` : ''}`,
                    blocks: [table('Further kernels, by total time', others)],
                  } satisfies Block,
                ]
              : []),
          ],
  };
}

/** Column order; a terminal fits only the first ones. */
const phaseOrder: readonly (PhaseKind | null)[] = [
  'decode',
  'prefill',
  'mixed',
  'training',
  'sampling',
  'load',
  'warmup',
  'other',
  'outside',
  null,
];
const maxPhaseColumns = 3;

/** Kernel time by class per mean instance of each phase; the page has every number of each phase. */
export function classesSection(data: TraceResult): Section | null {
  const tables = classTables(data);
  if (tables.length === 0) return null;
  const noun = data.source.gpu_used ? 'kernel' : 'operator';
  const detailed: Block[] = tables.map(({ kind, instances, rows }) =>
    tableOf(
      kind === null
        ? 'Whole capture'
        : `${phaseLabel(kind)}: share of its ${noun} time, and a mean of ${instances} instances`,
      [
        { id: 'class', head: 'class', cell: (row) => classLabels[row.class] },
        { id: 'share', head: 'share', ...number, cell: ({ share }) => ratio(share) },
        { id: 'total_ns', head: 'total', ...number, cell: ({ total_ns: n }) => ns(n) },
        { id: 'exclusive_ns', head: 'exclusive', ...number, cell: ({ exclusive_ns: n }) => ns(n) },
        { id: 'count', head: `${noun}s`, ...number, cell: ({ count }) => ({ count }) },
        { id: 'per_instance_ns', head: 'per instance', ...number, cell: ({ per_instance_ns: n }) => ns(n) },
        {
          id: 'per_instance',
          head: `${noun}s per instance`,
          ...number,
          cell: ({ per_instance: n }) => unitless(n),
        },
      ],
      rows,
    ),
  );
  return {
    id: 'classes',
    title: `Classes of ${noun}s by stage`,
    level: 2,
    blocks: [
      {
        type: 'chart',
        level: 3,
        label: `Share of each class in ${noun} time, by stage`,
        chart: {
          form: 'bars',
          kind: 'shares',
          unit: 'ns',
          rows: tables.map(({ kind }) => phaseLabel(kind)),
          series: opClasses
            .filter((name) => tables.some(({ rows }) => rows.some((row) => row.class === name)))
            .map((name) => ({
              name: classLabels[name],
              color: classColors[name],
              values: tables.map(({ rows }) => rows.find((row) => row.class === name)?.total_ns ?? 0),
            })),
        },
        behind: { type: 'fold', title: 'Every class of every stage', blocks: detailed },
      },
      instanceTable(data, tables, noun),
      { type: 'notes', items: unknownWork(data, noun) },
    ],
  };
}

/** Time of kernels or operators without a stage or class. */
function unknownWork({ phases, classes }: TraceResult, noun: string): Text[] {
  const timeOf = (kind: PhaseKind | null, only?: string) =>
    classes
      .filter((phase) => phase.kind === kind)
      .flatMap(({ rows }) => rows)
      .reduce((sum, row) => sum + (only === undefined || row.class === only ? row.total_ns : 0), 0);
  const total = Math.max(timeOf(null), 1);
  const [outside, graphs] = [timeOf('outside') / total, timeOf(null, 'graph') / total];
  return [
    ...(outside >= 0.05 && phases.every(({ kind }) => kind !== 'outside')
      ? [[ratio(outside), ` of ${noun} time is outside all marked stages and not included in their figures.`]]
      : []),
    ...(graphs > 0.5
      ? ['CUDA graphs were recorded whole, so their kernels are unknown. Capture again with graph nodes.']
      : []),
  ];
}

function instanceTable({ phases }: TraceResult, tables: ReturnType<typeof classTables>, noun: string): Block {
  const shownTables = tables
    .filter(({ kind }) =>
      phases.length === 1 && hasMarks({ phases }) ? kind === phases[0]!.kind : kind !== 'outside',
    )
    .toSorted((a, b) => phaseOrder.indexOf(a.kind) - phaseOrder.indexOf(b.kind))
    .slice(0, maxPhaseColumns);
  const classes = (tables[0]?.rows ?? [])
    .map((row) => row.class)
    .filter((name) => shownTables.some(({ rows }) => rows.some((row) => row.class === name)));
  return {
    type: 'table',
    title: `Time of ${noun}s in a mean instance, and its share`,
    columns: [
      { id: 'class', head: 'class' },
      ...shownTables.flatMap(({ kind }) => [
        { id: `${kind ?? 'all'}_ns`, head: phaseLabel(kind), ...number },
        { id: `${kind ?? 'all'}_share`, head: '', ...number },
      ]),
    ],
    rows: classes.map((name): Row => ({
      cells: [
        classLabels[name],
        ...shownTables.flatMap(({ rows }): Text[] => {
          const row = rows.find((classRow) => classRow.class === name);
          return row ? [ns(row.per_instance_ns), ratio(row.share)] : ['', ''];
        }),
      ],
    })),
  };
}

export function copiesSection({ copies, phases }: TraceResult): Section {
  const totals = copies.filter(({ phase }) => phase === null);
  return {
    id: 'copies',
    title: 'Copies',
    level: 2,
    blocks:
      copies.length === 0
        ? [{ type: 'missing', what: 'No copies.', why: 'The capture recorded no copy or memset.' }]
        : [
            copyTable('Whole capture; exposed: time without overlap', totals),
            ...(hasMarks({ phases }) ? [copiesByPhase(copies)] : []),
          ],
  };
}

const copiesByPhase = (copies: readonly TraceCopy[]): Block => ({
  type: 'fold',
  level: 3,
  title: 'By stage',
  blocks: [
    copyTable(
      'By stage, direction and memory',
      copies.filter(({ phase }) => phase !== null),
    ),
  ],
});

const copyTable = (title: string, copies: readonly TraceCopy[]): Block =>
  tableOf(
    title,
    [
      ...(copies.some(({ phase }) => phase !== null)
        ? [{ id: 'phase', head: 'stage', cell: ({ phase }: TraceCopy) => phaseLabel(phase) }]
        : []),
      { id: 'kind', head: 'direction', cell: ({ kind }) => copyDirection(kind) },
      {
        id: 'memory',
        head: 'memory',
        cell: ({ memory }) => memory ?? { missing: 'the memory was not recorded' },
      },
      { id: 'count', head: 'count', ...number, cell: ({ count }) => ({ count }) },
      { id: 'bytes', head: 'bytes', ...number, cell: ({ bytes }) => ({ n: bytes, unit: 'B' }) },
      { id: 'total_ns', head: 'total', ...number, cell: ({ total_ns: n }) => ns(n) },
      { id: 'exclusive_ns', head: 'exposed', ...number, cell: ({ exclusive_ns: n }) => ns(n) },
      {
        id: 'bytes_per_s',
        head: 'bandwidth',
        ...number,
        cell: ({ bandwidth_bytes_per_s: figure }) => ({ figure }),
      },
      { id: 'mean_ns', head: 'mean', ...number, drop: 1, cell: ({ mean_ns: n }) => ns(n) },
      { id: 'max_ns', head: 'max', ...number, drop: 0, cell: ({ max_ns: n }) => ns(n) },
    ],
    copies,
  );

export const overlapSection = ({ overlap, source }: TraceResult): Section => ({
  id: 'overlap',
  title: 'Streams and overlap',
  level: 2,
  blocks: [
    tableOf(
      'Whole capture',
      [
        { id: 'what', head: '', cell: ([what]) => what },
        { id: 'time_ns', head: 'time', ...number, cell: ([, time]) => ns(time) },
        {
          id: 'overlapped_ns',
          head: 'overlapped by something else',
          ...number,
          cell: ([, , hidden]) => ns(hidden),
        },
      ],
      [
        ['compute kernels', overlap.compute_ns, overlap.compute_overlap_ns],
        ['communication', overlap.comm_ns, overlap.comm_hidden_ns],
        ['copies', overlap.copy_ns, overlap.copy_hidden_ns],
      ] satisfies [string, number, number][],
    ),
    {
      level: 3,
      ...tableOf(
        'Streams; starts and ends count from the first activity of the capture',
        [
          { id: 'stream', head: 'stream', cell: ({ stream }) => idOf(stream) },
          { id: 'context', head: 'context', cell: ({ context }) => idOf(context) },
          { id: 'kernels', head: 'kernels', ...number, cell: ({ kernels: count }) => ({ count }) },
          { id: 'kernel_ns', head: 'kernel time', ...number, cell: ({ kernel_ns: n }) => ns(n) },
          { id: 'copies', head: 'copies', ...number, cell: ({ copies: count }) => ({ count }) },
          { id: 'copy_ns', head: 'copy time', ...number, cell: ({ copy_ns: n }) => ns(n) },
          {
            id: 'start_ns',
            head: 'first start',
            ...number,
            cell: ({ start_ns: n }) => ns(n - source.start_ns),
          },
          { id: 'end_ns', head: 'last end', ...number, cell: ({ end_ns: n }) => ns(n - source.start_ns) },
        ],
        overlap.streams,
      ),
    },
  ],
});

const idOf = (id: number | null): Text => (id === null ? { missing: 'not recorded' } : String(id));

const verdictLabels = {
  scheduling: 'scheduling',
  kernels: 'kernels',
  allocation: 'allocation',
  cpu: 'computing on the CPU',
};

/** Operators of the capture; only those of the CPU if no GPU was used. */
export function operatorsSection({ operators, source }: TraceResult): Section | null {
  if (!operators) return null;
  const { rows, text, phase, self_cpu_total_ns: all } = operators;
  return {
    id: 'operators',
    title: 'Operators',
    level: 2,
    blocks: [
      { type: 'text', text },
      tableOf(
        `Operators of ${phaseLabel(phase)}; costs: the largest of scheduling (own host time), kernels and allocation`,
        [
          { id: 'operator', head: 'operator', wraps: true, cell: ({ name }) => ({ code: name }) },
          { id: 'calls', head: 'calls', ...number, cell: ({ count }) => ({ count }) },
          { id: 'self_cpu_ns', head: 'host, self', ...number, cell: ({ self_cpu_ns: n }) => ns(n) },
          ...(all
            ? [
                {
                  id: 'self_cpu_share',
                  head: 'share',
                  ...number,
                  drop: 6,
                  cell: ({ self_cpu_ns: n }: (typeof rows)[number]) => ratio(n / all),
                },
              ]
            : []),
          ...(source.gpu_used
            ? [
                {
                  id: 'device_ns',
                  head: 'device',
                  ...number,
                  cell: ({ device_ns: n }: (typeof rows)[number]) => ns(n),
                },
                {
                  id: 'costs',
                  head: 'costs',
                  cell: ({ verdict }: (typeof rows)[number]) => verdictLabels[verdict],
                },
                {
                  id: 'kernels',
                  head: 'kernels',
                  ...number,
                  drop: 4,
                  cell: ({ kernels: count }: (typeof rows)[number]) => ({ count }),
                },
              ]
            : []),
          { id: 'cpu_ns', head: 'host, with children', ...number, drop: 3, cell: ({ cpu_ns: n }) => ns(n) },
          {
            id: 'allocated_bytes',
            head: 'allocated',
            ...number,
            drop: 2,
            cell: ({ allocated_bytes: n }) =>
              n === null ? { missing: 'memory was not recorded' } : { n, unit: 'B' },
          },
          {
            id: 'allocation_ns',
            head: 'in allocator calls',
            ...number,
            drop: 1,
            cell: ({ allocation_ns: n }) => ns(n),
          },
          { id: 'shapes', head: 'most frequent shapes', drop: 5, cell: shapes },
          { id: 'called_from', head: 'called from', drop: 0, cell: calledFrom },
        ],
        rows,
        { filter: true, reasons: false },
      ),
    ],
  };
}

type Operator = NonNullable<TraceResult['operators']>['rows'][number];

const shapes = ({ shapes: all }: Operator): Text =>
  all[0]
    ? {
        text: cutEnd(all[0].input_shapes, 60),
        hint: all
          .slice(0, 6)
          .map(({ input_shapes: inputShapes, count }) => `${count} × ${inputShapes}`)
          .join('\n'),
      }
    : { missing: 'shapes were not recorded' };

const calledFrom = ({ call_path: path }: Operator): Text =>
  path.length > 0
    ? { text: path.slice(-2).join(' › '), hint: path.join(' › ') }
    : { missing: 'no caller was recorded' };
