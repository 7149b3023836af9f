import type { Document } from '../../model/document.js';
import type { MeasuredStage, PredictResult, PredictStage } from '../../model/documents/predict.js';
import type { Figure } from '../../model/figure.js';
import {
  formatCount,
  formatFigure,
  formatMs,
  formatNumber,
  formatPercent,
  nbsp,
  noValue,
} from '../format.js';
import { colour } from './colour.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

const right = (head: string): TextColumn => ({ head, align: 'right' });
const shape = ({ batch_size, context_len }: PredictStage) => [
  formatCount(batch_size),
  formatCount(context_len),
];
const ratio = ({ value }: Figure) => (value === null ? noValue : `${value.toFixed(2)}×`);

/** "4.40 ms ~" where more than a tenth is beyond the table. */
function byTable({ predicted_ms, predicted_error, beyond_table_share }: PredictStage): string[] {
  const far = (beyond_table_share ?? 0) > 0.1;
  return [
    `${formatFigure(predicted_ms)}${far ? `${nbsp}~` : ''}`,
    predicted_error === null ? noValue : `±${nbsp}${formatPercent(predicted_error)}`,
  ];
}

/** "1.9–5.5 ms": where measurements are expected, by recorded stages. */
const range = ({ launched_range_ms: ms }: PredictStage): string =>
  ms === null ? noValue : `${formatNumber(ms[0], 2)}–${formatMs(ms[1])}`;

function stagesTable({ stages, table }: PredictResult, width: number): string {
  return textTable(
    [
      { head: '' },
      right('batch'),
      right('context'),
      right('roofline'),
      ...(table ? [] : [right('one by one')]),
      right('launched'),
      ...(table ? [right('by table'), right('error')] : [right('expected')]),
      { head: 'bound' },
    ],
    stages.map((stage) => [
      stage.phase,
      ...shape(stage),
      formatFigure(stage.roofline_ms),
      ...(table ? [] : [formatFigure(stage.roofline_serial_ms)]),
      formatFigure(stage.launched_ms),
      ...(table ? byTable(stage) : [range(stage)]),
      stage.limited_by === 'host' ? 'host' : (stage.bound ?? noValue),
    ]),
    { width },
  );
}

function measuredTable({ stages, table }: PredictResult, width: number): string {
  const rows = stages.flatMap((stage) => stage.measured.map((one) => ({ stage, one })));
  return textTable(
    [
      { head: '' },
      right('batch'),
      right('context'),
      right('measured'),
      right(table ? 'by table' : 'launched'),
      right('ratio'),
      right('roofline'),
      right('ratio'),
      { head: 'of', flexible: true },
    ],
    rows.map(({ stage, one }) => [
      stage.phase,
      ...shape(stage),
      formatFigure(one.ms),
      formatFigure(table ? stage.predicted_ms : stage.launched_ms),
      ratio(table ? one.table_ratio : one.launched_ratio),
      formatFigure(stage.roofline_ms),
      ratio(one.roofline_ratio),
      inert(one.what),
    ]),
    { width },
  );
}

/** The larger parts first, those under a fiftieth of the measurement left out. */
function residualWords({ ms, residual }: MeasuredStage): string | null {
  const whole = ms.value;
  if (whole === null) return null;
  const told = residual
    .filter((part) => Math.abs(part.ms) > whole / 50)
    .toSorted((a, b) => Math.abs(b.ms) - Math.abs(a.ms));
  if (told.length === 0) return null;
  return told
    .map((part) => `${part.cause} ${part.ms > 0 ? '+' : '−'}${formatMs(Math.abs(part.ms))}`)
    .join(' · ');
}

/** The operations of a stage that take longest; the figures of all are in the JSON. */
function largest({ ops }: PredictStage): string {
  const total = ops.reduce((sum, one) => sum + (one.predicted_us ?? 0) * one.count, 0);
  return ops
    .map((one) => ({ ...one, all: (one.predicted_us ?? 0) * one.count }))
    .toSorted((a, b) => b.all - a.all)
    .slice(0, 4)
    .map(
      (one) => `${one.op} ${formatPercent(one.all / total)}${one.how === 'measured' ? '' : ` (${one.how})`}`,
    )
    .join(' · ');
}

function expectedWords({ table, calibration }: PredictResult): string {
  const { low_ratio: low, high_ratio: high, stages, source } = calibration;
  if (table) return '';
  if (low === null || high === null) return ' Expected: not calibrated for this engine and device.';
  return ` Expected: ${low.toFixed(2)} to ${high.toFixed(2)} times that, which holds 95 % of measurements like ${stages} recorded ones (${source ?? ''}).`;
}

/** What `inferscope predict` prints, at most 80 columns, readable without colour. */
export function predictSummary(
  { data, issues, tool_version }: Document<PredictResult>,
  { width: columns }: { width: number },
): string {
  const width = readingWidth(columns);
  const { model, device, table } = data;
  const title = [
    `inferscope${nbsp}${tool_version}`,
    'predict',
    `${inert(model.name)} (${data.weight_format})`,
    inert(device.name),
  ].join(' · ');
  const roofs = [
    `${formatFigure(device.peak_flops_per_s)} ${device.peak_dtype ?? data.dtype}`,
    formatFigure(device.bandwidth_bytes_per_s),
    device.peak_flops_per_s.value === null ? '' : inert(device.peak_flops_per_s.source),
  ].filter(Boolean);
  const lines = [
    ...wrap(title, width),
    ...wrap(`roofs: ${roofs.join(', ')}`, width),
    '',
    stagesTable(data, width),
    '',
    ...hanging(
      '  ',
      `roofline: max(Σ FLOPs / peak, Σ bytes / bandwidth), nothing is faster.${table ? '' : ' One by one: each operation at its own roof.'} Launched: kernels at their roofs, launched as assumed.${expectedWords(data)}${table ? ' By table: measured kernels, interpolated; ~ more than a tenth of it beyond the table.' : ''}`,
      width,
    ),
  ];
  if (data.stages.some(({ measured }) => measured.length > 0)) {
    lines.push('', colour.bold('  Predicted and measured'), measuredTable(data, width));
    const residuals = data.stages.flatMap((stage) =>
      stage.measured.flatMap((one) => {
        const words = residualWords(one);
        return words === null ? [] : [{ stage, words }];
      }),
    );
    for (const { stage, words } of residuals) {
      lines.push(
        ...hanging(
          `  ${stage.phase} b${stage.batch_size} c${stage.context_len}: `,
          `measured − predicted: ${words}`,
          width,
        ),
      );
    }
    if (data.error) {
      const { stages, median, worst, decode_median, decode_worst } = data.error;
      const decode =
        decode_median === null || decode_worst === null
          ? ''
          : `; decode: median ${formatPercent(decode_median)}, worst ${formatPercent(decode_worst)}`;
      lines.push(
        ...hanging(
          `  error of ${data.error.of === 'table' ? 'the table' : 'the launched time'}: `,
          `median ${formatPercent(median)}, worst ${formatPercent(worst)} over ${stages} stages${decode}`,
          width,
        ),
      );
    }
  }
  if (table) {
    const last = data.stages.findLast(({ phase }) => phase === 'decode') ?? data.stages.at(-1);
    lines.push('', colour.bold('  Kernel table'));
    lines.push(
      ...hanging('  ', `${formatCount(table.cases)} cases of ${table.sessions.map(inert).join(', ')}`, width),
      textTable(
        [
          { head: 'left out one by one' },
          right('cases'),
          right('median error'),
          right('worst'),
          { head: 'at', flexible: true },
        ],
        table.validation.map((one) => [
          one.kernel,
          formatCount(one.cases),
          formatPercent(one.median_error),
          formatPercent(one.worst_error),
          inert(one.worst_case),
        ]),
        { width },
      ),
    );
    if (last) {
      lines.push(
        ...hanging(`  ${last.phase} b${last.batch_size} c${last.context_len}: `, largest(last), width),
      );
    }
  }
  lines.push('', colour.bold('  Assumed'));
  for (const { text } of data.assumptions) lines.push(...hanging('  · ', inert(text), width));
  lines.push(...hanging('  Not modelled: ', data.not_modelled.join(', '), width));
  for (const { severity, text } of issues) lines.push(...hanging(`  ${severity}: `, inert(text), width));
  return withPlainSpaces(lines.join('\n'));
}
