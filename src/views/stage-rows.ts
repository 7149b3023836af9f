import type { ExplainResult, StageWaterfall } from '../model/documents/explain.js';
import { mapFigure } from '../model/figure.js';
import { halfInterval } from '../model/half-interval.js';
import { busyMs, headlineQuantiles, headlineTime, idleIn, isProfiled } from '../model/headline-time.js';
import { formatFactor, formatMs, formatPart } from '../vocabulary/format.js';
import { peaksSentence } from '../vocabulary/peaks.js';
import type { Text, Value } from './block.js';
import { leadingStages, stageName } from './explain-series.js';

/** Maximum stages in a summary. */
const maxStages = 3;

/**
 * One row per leading stage: name, time, throughput, distance from the roofline, and the idle share of the GPU, or without a trace whether
 * the stage is compute-bound or memory-bound.
 */
export function stageRows(data: Pick<ExplainResult, 'stages' | 'machine'>): Text[][] {
  return leadingStages(data, maxStages).full.map((stage) => [
    stageName(stage),
    timeOf(stage, data.machine.busy),
    throughputOf(stage),
    rooflineText(stage),
    boundText(stage),
  ]);
}

/** Adds median and 10th percentile if the machine was busy: other programs affect these least. */
function timeOf(stage: StageWaterfall, busy: boolean): Text {
  const { median, p10 } = headlineQuantiles(stage);
  const quantiles =
    busy && median !== null && p10 !== null
      ? ` (median ${formatMs(median)}, fastest tenth ${formatMs(p10)})`
      : '';
  const time = headlineTime(stage);
  return isProfiled(stage)
    ? [{ figure: time }, `, profiled${quantiles}`]
    : [{ figure: time, spread: 'interval' }, quantiles];
}

function throughputOf(stage: StageWaterfall): Text {
  const time = headlineTime(stage);
  const tokens = stage.new_tokens;
  if (tokens === null || !time.value) return '';
  // With the digits that the interval of the time supports.
  return { figure: mapFigure(time, 'tok/s', 'new tokens / time', (ms) => (tokens / ms) * 1e3) };
}

function rooflineText(stage: StageWaterfall): Text {
  const time = headlineTime(stage);
  const ms = time.value;
  const half = halfInterval(time) ?? 0;
  const roofline = stage.roofline_ms;
  if (roofline.value === null || ms === null) return 'roofline unknown';
  const limit: Value = { n: roofline.value, unit: 'ms' };
  const factor = ms / roofline.value;
  return factor < 1.05
    ? ['at its roofline (', limit, ')']
    : [`${formatFactor(factor, half / roofline.value)} roofline (`, limit, ')'];
}

function boundText(stage: StageWaterfall): Text {
  const ms = headlineTime(stage).value;
  if (stage.source === 'trace' && ms !== null)
    return `GPU idle ${formatPart(idleIn(ms, busyMs(stage)).share, 1)}`;
  return stage.bound === null ? '' : `${stage.bound}-bound`;
}

/** Reasons why leading stages have no roofline, each once; with the stage names if another leading stage has a roofline. */
export function unknownRooflines(data: Pick<ExplainResult, 'stages'>): string[] {
  const leading = leadingStages(data, maxStages).full;
  const reasons = new Map<string, string[]>();
  for (const stage of leading)
    if (stage.roofline_ms.value === null) {
      const { text } = stage.roofline_ms.reason;
      reasons.set(text, [...(reasons.get(text) ?? []), stageName(stage)]);
    }
  const hasRoofline = leading.some(({ roofline_ms: { value } }) => value !== null);
  return [...reasons].map(
    ([text, names]) => `No roofline${hasRoofline ? ` (${names.join(', ')})` : ''}: ${text}.`,
  );
}

/** The peaks behind the rooflines of the leading stages: those of the first stage that has a roofline. */
export function rooflinePeaks(data: Pick<ExplainResult, 'stages'>): string[] {
  const leading = leadingStages(data, maxStages).full;
  const sentence = peaksSentence(leading.find(({ roofline_ms: { value } }) => value !== null)?.roofs ?? []);
  return sentence === null ? [] : [sentence];
}
