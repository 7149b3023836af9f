import type { Utilization, UtilizationStage } from '../../model/documents/utilization.js';
import type { Figure } from '../../model/figure.js';
import { formatFigure, formatNumber, isAccountingFault, noValue } from '../format.js';
import { stageTexts, utilizationShare } from '../utilization-share.js';
import { missingReasons } from '../words.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert } from './text.js';

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
