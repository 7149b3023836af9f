import type { Document } from '../../model/document.js';
import type {
  Utilization,
  UtilizationResult,
  UtilizationStage,
  UtilizationStep,
} from '../../model/documents/utilization.js';
import type { Figure } from '../../model/figure.js';
import {
  formatCount,
  formatFigure,
  formatFigureWithInterval,
  formatNumber,
  formatQuantity,
  isAccountingFault,
  nbsp,
  noValue,
} from '../format.js';
import { stageTexts, utilizationShare } from '../utilization-share.js';
import { missingReasons } from '../words.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

const stepsShown = 8;
const right = (head: string) => ({ head, align: 'right' as const });

const share = (figure: Figure): string =>
  `${utilizationShare(figure)}${isAccountingFault(figure) ? colour.red(' !') : ''}`;

function labelOf({ kind, point, batch_size }: UtilizationStage, stages: readonly UtilizationStage[]): string {
  const same = stages.filter((one) => one.kind === kind);
  if (point !== null) return `${kind} ${inert(point)}`;
  return same.length > 1 && batch_size !== null ? `${kind}, batch ${batch_size}` : kind;
}

/** Stage, time, MFU, MBU, bound; the refined MFU and the roof's share where there are any. */
export function utilizationTable({ stages }: Pick<Utilization, 'stages'>, width: number): string {
  const refined = stages.some(({ executed }) => executed.mfu.value !== null);
  const roofs = stages.some(({ roof_share }) => roof_share.value !== null);
  return textTable(
    [
      { head: 'stage', flexible: true },
      right('time'),
      right('tok/s'),
      right('MFU'),
      ...(refined ? [right('refined')] : []),
      right('MBU'),
      ...(roofs ? [right('of roof')] : []),
      { head: 'bound' },
    ],
    stages.map((stage) => [
      colour.bold(labelOf(stage, stages)),
      formatFigure(stage.time_ms),
      stage.tokens_per_s.value === null ? noValue : formatNumber(stage.tokens_per_s.value),
      share(stage.mfu),
      ...(refined ? [share(stage.executed.mfu)] : []),
      share(stage.mbu),
      ...(roofs ? [share(stage.roof_share)] : []),
      stage.bound ?? noValue,
    ]),
    { width },
  );
}

/** Below the table: what is missing and why, faults, and what the executed work says. */
export function utilizationNotes(utilization: Utilization, width: number): string[] {
  const { stages } = utilization;
  const reasons = missingReasons(
    stages.flatMap((stage): [string, Figure][] => [
      [`${stage.kind} MFU`, stage.mfu],
      [`${stage.kind} MBU`, stage.mbu],
    ]),
  );
  const said = new Set(stageTexts(stages, ({ kind }) => kind));
  return [...reasons, ...said].flatMap((text) => hanging('  ', inert(text), width));
}

/** `inferscope session utilization`: at most 80 columns, readable without colour. */
export function utilizationText(
  { data, tool_version, issues }: Document<UtilizationResult>,
  { width: columns, explain }: { width: number; explain: boolean },
): string {
  const width = readingWidth(columns);
  const { model, device, session, stages, steps } = data;
  const title = [
    `inferscope ${tool_version}`,
    'utilization',
    model ? `${inert(model.name)} ${model.dtype}` : 'no model',
    `${device.name === null ? `unknown ${device.kind.toUpperCase()}` : inert(device.name)}${device.devices > 1 ? ` × ${device.devices}` : ''}`,
    inert(session.title),
  ].join(' · ');
  const lines = [...wrap(title, width), '', utilizationTable(data, width)];
  const notes = utilizationNotes(data, width);
  if (notes.length > 0) lines.push('', ...notes);
  for (const { text } of issues)
    lines.push('', ...hanging(`  ${colour.yellow('warning:')} `, inert(text), width));
  for (const [at, stage] of stages.entries()) {
    const own = steps[at] ?? [];
    if (own.length > 1) {
      lines.push('', `  ${colour.bold(`Steps of ${labelOf(stage, stages)}`)}`, stepTable(own, width));
      const rest = stage.steps - Math.min(own.length, stepsShown);
      if (rest > 0) lines.push(`  … and ${formatCount(rest)} more (--json has ${formatCount(own.length)})`);
    }
    if (explain) lines.push('', ...explained(stage, labelOf(stage, stages), data, width));
  }
  return withPlainSpaces(lines.join('\n'));
}

function stepTable(steps: readonly UtilizationStep[], width: number): string {
  const asFigure = (value: number | null): Figure =>
    value === null ? { value, reason: { code: '', text: '' } } : { value, unit: 'ratio', source: '' };
  return textTable(
    [
      { head: 'step', flexible: true },
      right('time'),
      right('tokens'),
      right('context'),
      right('FLOPs'),
      right('bytes'),
      right('MFU'),
      right('MBU'),
    ],
    steps
      .slice(0, stepsShown)
      .map((step) => [
        [step.iteration, step.step_index].filter((one) => one !== null).join('.') || noValue,
        formatQuantity(step.wall_ns, 'ns'),
        formatCount(step.new_tokens),
        formatCount(step.context_tokens_sum),
        formatQuantity(step.flops, 'FLOP'),
        formatQuantity(step.bytes, 'B'),
        share(asFigure(step.mfu)),
        share(asFigure(step.mbu)),
      ]),
    { width },
  );
}

const counted = (value: number): string =>
  Number.isInteger(value) ? formatCount(value) : formatNumber(value);

const sourceOf = (figure: Figure): string =>
  figure.value === null ? `missing: ${figure.reason.text}` : figure.source;

/** Every input with where it comes from, then the formulas with these numbers in them. */
function explained(
  stage: UtilizationStage,
  label: string,
  { model }: UtilizationResult,
  width: number,
): string[] {
  const inputs: [string, Figure, ((figure: Figure) => string)?][] = [
    ['t', stage.time_ms, formatFigureWithInterval],
    ['FLOPs', stage.flops],
    ['bytes', stage.bytes],
    ['peak', stage.peak_flops_per_s],
    ['bandwidth', stage.peak_bandwidth_bytes_per_s],
  ];
  const put = (formula: string, figure: Figure, values: string): string[] =>
    hanging(
      '    ',
      `${formula} = ${figure.value === null ? `missing: ${figure.reason.text}` : `${values} = ${share(figure)}`}`,
      width,
    );
  const value = (figure: Figure) => formatFigure(figure);
  const sizes = [
    stage.batch_size === null ? null : `batch ${stage.batch_size}`,
    stage.new_tokens === null ? null : `${counted(stage.new_tokens)} new tokens`,
    stage.context_tokens_sum === null ? null : `${counted(stage.context_tokens_sum)} tokens attended to`,
  ].filter((one) => one !== null);
  const { executed } = stage;
  return [
    `  ${colour.bold(`How the figures of ${label} come about`)}`,
    ...(model ? hanging('    ', `model ${model.name} in ${model.dtype} (${model.from})`, width) : []),
    ...hanging(
      '    ',
      `mean step: ${sizes.join(', ') || 'sizes unknown'} (from ${stage.sizes_from || 'nothing'})`,
      width,
    ),
    ...inputs.flatMap(([name, figure, show]) =>
      hanging('    ', `${name} = ${(show ?? formatFigure)(figure)} — ${inert(sourceOf(figure))}`, width),
    ),
    ...put(
      'MFU = FLOPs / t / peak',
      stage.mfu,
      `${value(stage.flops)} / ${value(stage.time_ms)} / ${value(stage.peak_flops_per_s)}`,
    ),
    ...put(
      'MBU = bytes / t / bandwidth',
      stage.mbu,
      `${value(stage.bytes)} / ${value(stage.time_ms)} / ${value(stage.peak_bandwidth_bytes_per_s)}`,
    ),
    ...put('of roof = roof / t', stage.roof_share, `${value(stage.roof_ms)} / ${value(stage.time_ms)}`),
    ...put(
      'refined MFU = (GEMMs + attention) / t / peak',
      executed.mfu,
      `(${value(executed.gemm_flops)} + ${value(executed.attention_flops)}) / ${value(stage.time_ms)} / peak`,
    ),
    ...(executed.gemm_flops.value === null
      ? []
      : hanging(
          '    ',
          `GEMMs: ${executed.gemm_flops.source}; attention: ${sourceOf(executed.attention_flops)}`,
          width,
        )),
    ...(stage.work.length === 0
      ? []
      : [
          '',
          textTable(
            [
              { head: 'operation', flexible: true },
              right('times'),
              { head: 'in' },
              right('FLOPs'),
              right('bytes'),
            ],
            stage.work.map((op) => [
              op.name,
              formatCount(op.ops),
              op.dtype,
              op.flops === 0 ? `0${nbsp}FLOP` : formatQuantity(op.flops, 'FLOP'),
              formatQuantity(op.bytes, 'B'),
            ]),
            { width, indent: 4 },
          ),
        ]),
  ];
}
