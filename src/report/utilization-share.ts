import type { UtilizationStage } from '../model/documents/utilization.js';
import type { Figure } from '../model/figure.js';
import { formatNumber, formatPercent, nbsp, noValue } from './format.js';

/** A share of a peak: two digits also far below 1 %, where launch-bound programs are: 71 %, 4.2 %, 0.031 %. */
export function utilizationShare(figure: Figure): string {
  if (figure.value === null) return noValue;
  const percent = 100 * figure.value;
  return percent !== 0 && Math.abs(percent) < 0.1
    ? `${formatNumber(percent, 2)}${nbsp}%`
    : formatPercent(figure.value);
}

/** What is said below a table of stages: whose time the profiler is in, and what the executed work says. */
export const stageTexts = (
  stages: readonly UtilizationStage[],
  named: (stage: UtilizationStage) => string,
): string[] =>
  stages.flatMap((stage) => [
    ...(stage.profiled ? [`${named(stage)}: the time is that under the profiler.`] : []),
    ...(stage.executed.text === null ? [] : [`${named(stage)}: ${stage.executed.text}`]),
  ]);
