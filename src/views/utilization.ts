import { capitalize } from '../vocabulary/sentence.js';
import { pointLabel } from '../vocabulary/bench.js';
import type { Document } from '../model/document.js';
import type {
  Utilization,
  UtilizationResult,
  UtilizationStage,
  UtilizationStep,
} from '../model/documents/utilization.js';
import type { TracePhase } from '../model/documents/trace.js';
import type { Figure } from '../model/figure.js';
import { phaseLabel } from '../vocabulary/stages.js';
import type { Block, Section, Table, Text, View } from './block.js';
import { type ColumnOf, tableOf } from './table-of.js';

const maxSteps = 8;
const number = { numeric: true } as const;

/** MFU and MBU of every stage and step. @param formulas adds every input, its source and the formula with its numbers */
export function utilizationView(document: Document<UtilizationResult>, formulas: boolean): View {
  const { data, issues } = document;
  const { model, device, session } = data;
  const name = device.name ?? `unknown ${device.kind.toUpperCase()}`;
  return {
    command: 'utilization',
    title: [
      session.name ?? session.id,
      model ? `${model.name} ${model.dtype}` : 'no model',
      `${name}${device.devices > 1 ? ` × ${device.devices}` : ''}`,
    ].join(' · '),
    document,
    session: { id: session.id, started_at: '' },
    lead: [
      ...stageBlocks(data),
      { type: 'issues', issues },
      ...data.stages.flatMap((stage, index): Block[] => [
        ...stepBlocks(stage, data.steps[index] ?? [], data.stages),
        ...(formulas ? formulaBlocks(stage, data) : []),
      ]),
    ],
    sections: [],
  };
}

/** The summary for a program that ran without a profiler. */
export const utilizationBlocks = ({ data, issues }: Document<UtilizationResult>): Block[] => [
  { type: 'issues', issues },
  ...stageBlocks(data),
];

/** MFU and MBU of a timeline's stages; null without any. @param phases of the execution under the profiler */
export function utilizationSection(
  utilization: Utilization | null | undefined,
  phases: readonly TracePhase[] = [],
): Section | null {
  if (!utilization) return null;
  const { model, device, stages } = utilization;
  const deviceText = `${device.name ?? 'an unknown device'}${device.devices > 1 ? ` × ${device.devices}` : ''}`;
  return {
    id: 'utilization',
    title: 'MFU and MBU',
    // Times without a model are in other tables.
    level: model ? 2 : 3,
    blocks: model
      ? [
          {
            type: 'text',
            level: 3,
            text: `${model.name} in ${model.dtype} (${model.from}) on ${deviceText}. MFU = FLOPs / time / peak, MBU = bytes / time / bandwidth, of the work the model needs.`,
          },
          ...stageBlocks(utilization),
          { type: 'notes', items: otherBatches(stages, phases) ? [otherBatchesNote] : [] },
          {
            type: 'fold',
            level: 3,
            title: 'Inputs of the formulas',
            blocks: stages.flatMap((stage) => formulaBlocks(stage, utilization)),
          },
        ]
      : [
          {
            type: 'missing',
            what: 'Utilization is unknown.',
            why: `${capitalize(whyUnknown(stages))}: inferscope session set <session> --model <name>.`,
          },
        ],
  };
}

const otherBatchesNote =
  'Steps are those of the execution without the profiler, in which the server formed other batches than in the profiled one.';

/** Whether steps without the profiler have a batch size that the phases do not have. */
const otherBatches = (stages: readonly UtilizationStage[], phases: readonly TracePhase[]): boolean =>
  stages.some(
    ({ kind, profiled, batch_size: batch }) =>
      !profiled &&
      batch !== null &&
      phases.some(
        ({ kind: phase, by_batch: sizes }) =>
          phase === kind && sizes.length > 0 && !sizes.some(({ batch_size: size }) => size === batch),
      ),
  );

/** The reason of the first stage, since a session has one model. */
function whyUnknown(stages: readonly UtilizationStage[]): string {
  const unknown = stages.find(({ mfu }) => mfu.value === null);
  return unknown?.mfu.value === null ? unknown.mfu.reason.text : 'the session does not record its model';
}

function labelOf({ kind, point, batch_size }: UtilizationStage, stages: readonly UtilizationStage[]): string {
  const label = phaseLabel(kind);
  if (point !== null) return `${label} at ${pointLabel(point)}`;
  const sameKind = stages.filter((stage) => stage.kind === kind);
  return sameKind.length > 1 && batch_size !== null ? `${label}, batch ${batch_size}` : label;
}

const share = (figure: Figure): Text => ({ figure, utilization: true });

/** A mean step of each stage, and what the figures include. */
function stageBlocks({ stages }: Pick<Utilization, 'stages'>): Block[] {
  const columns: ColumnOf<UtilizationStage>[] = [
    { id: 'stage', head: 'stage', wraps: true, cell: (stage) => labelOf(stage, stages) },
    { id: 'steps', head: 'n', ...number, drop: 2, cell: ({ steps }) => ({ count: steps }) },
    { id: 'time_ms', head: 'time', ...number, cell: ({ time_ms: figure }) => ({ figure }) },
    { id: 'tokens_per_s', head: 'tok/s', ...number, cell: ({ tokens_per_s: rate }) => withoutUnit(rate) },
    { id: 'flops', head: 'FLOPs', ...number, drop: 1, cell: ({ flops: figure }) => ({ figure }) },
    { id: 'bytes', head: 'bytes', ...number, drop: 1, cell: ({ bytes: figure }) => ({ figure }) },
    { id: 'mfu', head: 'MFU', ...number, cell: ({ mfu }) => share(mfu) },
    {
      id: 'executed_mfu',
      head: 'executed MFU',
      meaning: 'of the GEMMs and attention that ran',
      ...number,
      cell: ({ executed }) => share(executed.mfu),
    },
    {
      id: 'executed_over_necessary',
      head: 'executed / necessary',
      ...number,
      drop: 0,
      cell: ({ executed: { over_necessary: over } }) =>
        over.value === null ? { figure: over } : [{ n: over.value, unit: '' }, '×'],
    },
    { id: 'mbu', head: 'MBU', ...number, cell: ({ mbu }) => share(mbu) },
    {
      id: 'roof_share',
      head: 'of roof',
      meaning: 'relative to measured peaks',
      ...number,
      cell: ({ roof_share: roof }) => share(roof),
    },
    { id: 'bound', head: 'bound', cell: ({ bound }) => bound ?? { missing: 'roof unknown' } },
  ];
  const profiled = stages.filter((stage) => stage.profiled).map((stage) => labelOf(stage, stages));
  const notes = [
    ...(profiled.length === 0
      ? []
      : [
          profiled.length === stages.length
            ? 'Times are under the profiler.'
            : `Times under the profiler: ${profiled.join(', ')}.`,
        ]),
    ...stages.flatMap((stage) =>
      stage.executed.text === null ? [] : [`${labelOf(stage, stages)}: ${stage.executed.text}`],
    ),
  ];
  return [tableOf('Mean per step', columns, stages), { type: 'notes', items: notes }];
}

const withoutUnit = (figure: Figure): Text =>
  figure.value === null ? { figure } : { n: figure.value, unit: figure.unit, bare: true };

function stepBlocks(
  stage: UtilizationStage,
  steps: readonly UtilizationStep[],
  stages: readonly UtilizationStage[],
): Block[] {
  if (steps.length < 2) return [];
  const ratio = (n: number | null, total: Figure): Text =>
    n === null ? { figure: total } : share({ value: n, unit: 'ratio', source: '' });
  const table: Table = tableOf(
    'The first steps',
    [
      {
        id: 'step',
        head: 'iteration.step',
        wraps: true,
        cell: ({ iteration, step_index: index }) =>
          [iteration, index].filter((part) => part !== null).join('.') || {
            missing: 'steps are not numbered',
          },
      },
      { id: 'wall_ns', head: 'time', ...number, cell: ({ wall_ns: n }) => ({ n, unit: 'ns' }) },
      { id: 'new_tokens', head: 'new', ...number, cell: ({ new_tokens: count }) => ({ count }) },
      {
        id: 'context_tokens',
        head: 'attended to',
        ...number,
        cell: ({ context_tokens_sum: count }) => ({ count }),
      },
      { id: 'flops', head: 'FLOPs', ...number, cell: ({ flops: n }) => ({ n, unit: 'FLOP' }) },
      { id: 'bytes', head: 'bytes', ...number, cell: ({ bytes: n }) => ({ n, unit: 'B' }) },
      { id: 'mfu', head: 'MFU', ...number, cell: ({ mfu }) => ratio(mfu, stage.mfu) },
      { id: 'mbu', head: 'MBU', ...number, cell: ({ mbu }) => ratio(mbu, stage.mbu) },
    ],
    steps.slice(0, maxSteps),
  );
  const remaining = stage.steps - table.rows.length;
  return [
    {
      type: 'heading',
      text: `First steps: ${labelOf(stage, stages)} (tokens of all sequences: new, attended to)`,
    },
    table,
    ...(remaining > 0
      ? [{ type: 'text', text: `… and ${remaining} more (--json has ${steps.length})` } satisfies Block]
      : []),
  ];
}

/** Every input with its source, then the formulas with these numbers. */
function formulaBlocks(stage: UtilizationStage, { stages, model }: Utilization): Block[] {
  const { flops, bytes, time_ms: time, executed } = stage;
  const label = labelOf(stage, stages);
  const sizeText = (n: number, unit: string): Text => [
    Number.isInteger(n) ? { count: n } : { n, unit: '' },
    ` ${unit}`,
  ];
  const sizes = [
    ...(stage.batch_size === null ? [] : [`batch ${stage.batch_size}`]),
    ...(stage.new_tokens === null
      ? []
      : [sizeText(stage.new_tokens, stage.new_tokens === 1 ? 'new token' : 'new tokens')]),
    ...(stage.context_tokens_sum === null ? [] : [sizeText(stage.context_tokens_sum, 'tokens attended to')]),
  ];
  const inputs: [name: string, figure: Figure][] = [
    ['t', time],
    ['FLOPs', flops],
    ['bytes', bytes],
    ['peak', stage.peak_flops_per_s],
    ['bandwidth', stage.peak_bandwidth_bytes_per_s],
    // Without executed FLOPs the executed MFU shows why.
    ...(executed.mfu.value === null
      ? []
      : ([
          ['GEMMs', executed.gemm_flops],
          ['attention', executed.attention_flops],
        ] satisfies [string, Figure][])),
  ];
  // One missing input explains most of the others.
  const namesByReason = new Map<string, string>();
  const missing = (name: string, reason: string): string => {
    const first = namesByReason.get(reason);
    if (first !== undefined) return `missing, as ${first}`;
    namesByReason.set(reason, name);
    return `missing: ${reason}`;
  };
  const formula = (name: string, how: string, result: Figure, terms: Text): { name: string; text: Text } => ({
    name,
    text: [
      `${how} = `,
      ...(result.value === null
        ? [missing(name, result.reason.text)]
        : [...[terms].flat(), ' = ', ...[share(result)].flat()]),
    ],
  });
  const quotient = (...all: Figure[]): Text =>
    all.flatMap((figure, index) => [...(index === 0 ? [] : [' / ']), { figure }]);
  return [
    { type: 'heading', text: `Formulas of ${label}` },
    {
      type: 'facts',
      items: [
        ...(model ? [{ name: 'model', text: `${model.name} in ${model.dtype} (${model.from})` }] : []),
        {
          name: 'mean step',
          text: [
            ...(sizes.length === 0
              ? ['sizes unknown']
              : sizes.flatMap((size, index) => [...(index === 0 ? [] : [', ']), ...[size].flat()])),
            stage.sizes_from ? ` (from ${stage.sizes_from})` : '',
          ],
        },
        ...inputs.map(([name, figure]) => ({
          name,
          text: (figure.value === null
            ? missing(name, figure.reason.text)
            : [{ figure, spread: 'interval' }, ` — ${figure.source}`]) satisfies Text,
        })),
        formula('MFU', 'FLOPs / t / peak', stage.mfu, quotient(flops, time, stage.peak_flops_per_s)),
        formula(
          'MBU',
          'bytes / t / bandwidth',
          stage.mbu,
          quotient(bytes, time, stage.peak_bandwidth_bytes_per_s),
        ),
        formula('of roof', 'roof / t', stage.roof_share, quotient(stage.roof_ms, time)),
        formula('executed MFU', '(GEMMs + attention) / t / peak', executed.mfu, [
          '(',
          { figure: executed.gemm_flops },
          ' + ',
          { figure: executed.attention_flops },
          ') / ',
          ...[quotient(time, stage.peak_flops_per_s)].flat(),
        ]),
      ],
    },
    ...(stage.work.length === 0
      ? []
      : [
          tableOf(
            `Operations of ${label}, a mean step`,
            [
              { id: 'operation', head: 'operation', wraps: true, cell: ({ name }) => name },
              { id: 'ops', head: 'count', ...number, cell: ({ ops }) => ({ count: ops }) },
              { id: 'dtype', head: 'dtype', cell: ({ dtype }) => dtype },
              { id: 'flops', head: 'FLOPs', ...number, cell: ({ flops: n }) => ({ n, unit: 'FLOP' }) },
              { id: 'bytes', head: 'bytes', ...number, cell: ({ bytes: n }) => ({ n, unit: 'B' }) },
            ],
            stage.work,
          ),
        ]),
  ];
}
