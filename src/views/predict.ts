import type { Document } from '../model/document.js';
import type { MeasuredStage, PredictResult, PredictStage } from '../model/documents/predict.js';
import { caseText } from '../vocabulary/kernel-cases.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { formatCount, formatRange, plural } from '../vocabulary/format.js';
import { bandwidthName, peaksSentence, peakTexts } from '../vocabulary/peaks.js';
import { weightFormatLabel } from '../vocabulary/weight-formats.js';
import type { Block, Text, Value, View } from './block.js';
import { type ColumnOf, tableOf } from './table-of.js';

/** A stage is marked if more than this share of it is outside the kernel table. */
const minMarkedShare = 0.1;
/** Maximum operations named per stage. */
const maxOps = 4;
/** Parts of a difference below this share of the measurement are left out. */
const minPartShare = 1 / 50;

/** Predicted times of a step, and measured ones if a session has them. */
export function predictView(document: Document<PredictResult>): View {
  const { data, issues } = document;
  const compared = data.stages.flatMap((stage) => stage.measured.map((measured) => ({ stage, measured })));
  return {
    command: 'predict',
    title: `${data.model.name} (${weightFormatLabel(data.weight_format)}) · ${data.device.name}`,
    document,
    session: { id: null, started_at: '' },
    lead: [{ type: 'text', text: peaks(data) }, stageTable(data), { type: 'text', text: columnText(data) }],
    sections: [
      ...(compared.length > 0
        ? [
            {
              id: 'measured',
              title: 'Predicted and measured',
              blocks: [
                measuredTable(compared, data),
                ...residuals(compared, data.device.kind === 'cpu'),
                ...errorText(data),
              ],
            },
          ]
        : []),
      ...(data.table ? [{ id: 'table', title: 'Kernel table', blocks: kernelTable(data) }] : []),
      {
        id: 'assumed',
        title: 'Assumptions',
        blocks: [
          {
            type: 'facts',
            items: [
              ...data.assumptions.map(({ id, text }) => ({ name: id, text })),
              { name: 'not modeled', text: data.not_modeled.join(', ') },
            ],
          },
          { type: 'issues', issues },
        ] satisfies Block[],
      },
    ],
  };
}

const peaks = ({ device, dtype }: PredictResult): string =>
  peaksSentence(
    peakTexts([
      [device.peak_dtype ?? dtype, device.peak_flops_per_s],
      [bandwidthName(device.bandwidth_level ?? null), device.bandwidth_bytes_per_s],
    ]),
  ) ?? '';

const number = { numeric: true } as const;

/** Phase and sizes; how kernels are launched and the output length only if they differ between rows. */
function shapeColumns<T>(rows: readonly T[], stageOf: (row: T) => PredictStage): ColumnOf<T>[] {
  const hasSeveralOutputs = new Set(rows.map((row) => stageOf(row).output_len)).size > 1;
  return [
    { id: 'phase', head: '', cell: (row) => stageOf(row).phase },
    { id: 'batch_size', head: 'batch', ...number, cell: (row) => ({ count: stageOf(row).batch_size }) },
    { id: 'input_len', head: 'prompt', ...number, cell: (row) => ({ count: stageOf(row).input_len }) },
    ...(new Set(rows.map((row) => stageOf(row).launch)).size > 1
      ? [{ id: 'launch', head: 'launches', cell: (row: T) => stageOf(row).launch }]
      : []),
    ...(hasSeveralOutputs
      ? [
          {
            id: 'output_len',
            head: 'output',
            ...number,
            drop: 1,
            cell: (row: T) => ({ count: stageOf(row).output_len }),
          },
        ]
      : []),
  ];
}

function stageTable({ stages, table, calibration }: PredictResult): Block {
  const tableColumns: ColumnOf<PredictStage>[] = [
    {
      id: 'predicted_ms',
      head: 'by table',
      ...number,
      cell: ({ predicted_ms, beyond_table_share: beyond }) =>
        (beyond ?? 0) > minMarkedShare ? [{ figure: predicted_ms }, ' ~'] : { figure: predicted_ms },
    },
    {
      id: 'predicted_error',
      head: 'error',
      ...number,
      cell: ({ predicted_error: error }) =>
        error === null ? { missing: 'error of its kernels unknown' } : ['± ', { n: error, unit: 'ratio' }],
    },
  ];
  // Without a calibration an issue says so.
  const rangeColumns: ColumnOf<PredictStage>[] =
    calibration.status === 'not_calibrated'
      ? []
      : [
          {
            id: 'launched_range_ms',
            head: 'expected',
            ...number,
            cell: ({ launched_range_ms: range }) =>
              range === null
                ? { missing: 'not calibrated for this fusion' }
                : formatRange(range[0], range[1], 'ms'),
          },
        ];
  return tableOf<PredictStage>(
    'Time per stage',
    [
      ...shapeColumns(stages, (stage) => stage),
      { id: 'roofline_ms', head: 'roofline', ...number, cell: ({ roofline_ms: figure }) => ({ figure }) },
      ...(table
        ? []
        : [
            {
              id: 'roofline_serial_ms',
              head: 'serial',
              ...number,
              cell: ({ roofline_serial_ms: figure }: PredictStage) => ({ figure }),
            },
          ]),
      { id: 'launched_ms', head: 'launched', ...number, cell: ({ launched_ms: figure }) => ({ figure }) },
      ...(table ? tableColumns : rangeColumns),
      {
        id: 'bound',
        head: 'bound',
        cell: ({ limited_by: limit, bound }) =>
          limit === 'host' ? 'host' : (bound ?? { missing: 'roof unknown' }),
      },
    ],
    stages,
  );
}

function columnText({ table, calibration }: PredictResult): Text {
  const { low_ratio: low, high_ratio: high, stages, source } = calibration;
  const limit = 'Roofline: max(Σ FLOPs / peak, Σ bytes / bandwidth), the lower limit.';
  const launched = 'Launched: kernels at their roofs, launched as assumed.';
  if (table) {
    return `${limit} ${launched} By table: measured kernels, interpolated; ~: more than a tenth of it is extrapolated.`;
  }
  return [
    `${limit} Serial: each operation at its own roof. ${launched}`,
    // Without a calibrated interval the table says so.
    ...(low === null || high === null
      ? []
      : [
          ' Expected: ',
          { n: low, unit: '' },
          ' to ',
          { n: high, unit: '' },
          ` times that, the range of 95 % of ${stages} recorded measurements (${source ?? ''}).`,
        ]),
  ];
}

type ComparedStage = { stage: PredictStage; measured: MeasuredStage };

const ratioText = (figure: MeasuredStage['table_ratio']): Text =>
  figure.value === null ? { missing: figure.reason.text } : [{ n: figure.value, unit: '' }, '×'];

const measuredTable = (rows: readonly ComparedStage[], { table }: PredictResult): Block =>
  tableOf<ComparedStage>(
    'Prediction compared with measurement',
    [
      ...shapeColumns(rows, ({ stage }) => stage),
      { id: 'measured_ms', head: 'measured', ...number, cell: ({ measured }) => ({ figure: measured.ms }) },
      {
        id: table ? 'predicted_ms' : 'launched_ms',
        head: table ? 'by table' : 'launched',
        ...number,
        cell: ({ stage }) => ({ figure: table ? stage.predicted_ms : stage.launched_ms }),
      },
      {
        id: table ? 'table_ratio' : 'launched_ratio',
        head: 'of measured',
        ...number,
        cell: ({ measured }) => ratioText(table ? measured.table_ratio : measured.launched_ratio),
      },
      {
        id: 'roofline_ms',
        head: 'roofline',
        ...number,
        cell: ({ stage }) => ({ figure: stage.roofline_ms }),
      },
      {
        id: 'roofline_ratio',
        head: 'roofline of measured',
        drop: 1,
        ...number,
        cell: ({ measured }) => ratioText(measured.roofline_ratio),
      },
      { id: 'what', head: 'measured by', drop: 0, cell: ({ measured }) => measured.what },
    ],
    rows,
  );

const residualLabels: Readonly<Record<MeasuredStage['residual'][number]['cause'], string>> = {
  'launch-bound': 'launches',
  'unfused-elementwise': 'unfused elementwise',
  attention: 'attention',
  gemm: 'GEMM',
  sampling: 'sampling',
  host: 'host',
  unattributed: 'not explained',
};

const classOrKernel = (name: string): string =>
  (classLabels as Readonly<Record<string, string>>)[name] ?? name;

const nameOf = ({ phase, batch_size, input_len }: PredictStage): string =>
  `${phase}, batch ${batch_size}, prompt ${formatCount(input_len)}`;

/** Largest parts first. */
function residuals(rows: readonly ComparedStage[], isOnCpu: boolean): Block[] {
  const items = rows.flatMap(({ stage, measured: { ms, residual } }) => {
    const totalMs = ms.value;
    const parts =
      totalMs === null
        ? []
        : residual
            .filter((part) => Math.abs(part.ms) > totalMs * minPartShare)
            .toSorted((a, b) => Math.abs(b.ms) - Math.abs(a.ms));
    if (parts.length === 0) return [];
    const text = parts.flatMap((part, index): (string | Value)[] => [
      `${index === 0 ? 'measured − predicted: ' : ' · '}${isOnCpu && part.cause === 'launch-bound' ? 'runtime calls' : residualLabels[part.cause]} `,
      { n: part.ms, unit: 'ms', signed: true },
    ]);
    return [{ name: nameOf(stage), text }];
  });
  return items.length === 0 ? [] : [{ type: 'facts', items }];
}

function errorText({ error }: PredictResult): Block[] {
  if (!error) return [];
  const { stages, median, worst, decode_median: decode, decode_worst: decodeWorst } = error;
  const share = (n: number): Value => ({ n, unit: 'ratio' });
  return [
    {
      type: 'text',
      text: [
        `Error of ${error.predicted_by === 'table' ? 'the table' : 'the launched time'}: `,
        ...(stages === 1 ? [share(median)] : ['median ', share(median), ', worst ', share(worst)]),
        ` over ${plural(stages, 'stage')}`,
        ...(decode === null || decodeWorst === null || stages === 1
          ? []
          : [
              '; decode: ',
              ...(decode === decodeWorst
                ? [share(decode)]
                : ['median ', share(decode), ', worst ', share(decodeWorst)]),
            ]),
      ],
    },
  ];
}

function kernelTable({ table, stages }: PredictResult): Block[] {
  if (!table) return [];
  const last = stages.findLast(({ phase }) => phase === 'decode') ?? stages.at(-1);
  return [
    { type: 'text', text: [{ count: table.cases }, ` cases of ${table.sessions.join(', ')}`] },
    tableOf(
      'Each case predicted from all others',
      [
        { id: 'kernel', head: 'leave-one-out', cell: ({ kernel }) => validatedLabel(kernel) },
        { id: 'cases', head: 'cases', ...number, cell: ({ cases }) => ({ count: cases }) },
        {
          id: 'median_error',
          head: 'median error',
          ...number,
          cell: ({ median_error: n }) => ({ n, unit: 'ratio' }),
        },
        { id: 'worst_error', head: 'worst', ...number, cell: ({ worst_error: n }) => ({ n, unit: 'ratio' }) },
        {
          id: 'worst_case',
          head: 'at',
          wraps: true,
          cell: ({ worst_case: worstCase }) => caseText(worstCase),
        },
      ],
      table.validation,
    ),
    ...(last ? [{ type: 'facts', items: [{ name: nameOf(last), text: largest(last) }] } as const] : []),
  ];
}

/** Kernels; and those that only move bytes, as one line through their bytes predicts them. */
const validatedLabel = (kernel: string): string =>
  kernel === 'elementwise' ? 'elementwise, by bytes' : classOrKernel(kernel);

/** The longest operations of a stage; the document has all. */
function largest({ ops }: PredictStage): Text {
  const timed = ops
    .map((op) => ({ ...op, us: (op.predicted_us ?? 0) * op.count }))
    .toSorted((a, b) => b.us - a.us);
  const total = timed.reduce((sum, { us }) => sum + us, 0);
  return timed
    .slice(0, maxOps)
    .flatMap(({ op, us, method }, index): (string | Value)[] => [
      `${index === 0 ? '' : ' · '}${op} `,
      { n: us / total, unit: 'ratio' },
      method === 'measured' ? '' : ` (${method})`,
    ]);
}
