import { explainedBars } from '../model/headline-time.js';
import type { Finding, StageWaterfall } from '../model/documents/explain.js';
import { barCountNoun } from '../vocabulary/bars.js';
import { formatCount, roundMeanCount } from '../vocabulary/format.js';
import type { Part, Text } from './block.js';

/** Mean number of kernels (on a CPU: operators), copies or gaps of a bar, as in sentences; null below one. */
export function countOfBar(
  { id, count }: { id: string; count: number | null },
  isCpu: boolean,
): Exclude<Part, string> | null {
  if (count === null || count < 0.95) return null;
  const mean = roundMeanCount(count);
  const [singular, several] = barCountNoun(id, isCpu);
  return { count: mean, unit: formatCount(mean) === '1' ? singular : several };
}

/** Whether the stage's classes are operators on the CPU instead of kernels. */
export const isOnCpu = ({ source }: StageWaterfall): boolean =>
  source === 'profile' || source === 'operators';

/** Minimum share of a bar that is named with a finding: small ones do not change the sum. */
const minNamedShare = 0.001;

/**
 * The bars that contain a finding's time, as the waterfall shows them: a finding can be part of a bar, or take time from several. Null
 * without a waterfall.
 */
export function barsOfFinding(
  { stage: kind, bars: ids }: Pick<Finding, 'stage' | 'bars'>,
  stages: readonly StageWaterfall[],
): Text | null {
  const stage = stages.find((candidate) => candidate.kind === kind && candidate.name === null);
  if (!stage) return null;
  const barsInFinding = explainedBars(stage.bars).bars.filter(({ id }) => ids.includes(id));
  const shownBars = barsInFinding.filter(({ share }) => Math.abs(share) >= minNamedShare);
  if (shownBars.length === 0) return null;
  return shownBars.flatMap((bar, index): Part[] => {
    const count = countOfBar(bar, isOnCpu(stage));
    return [
      `${index === 0 ? '' : ', '}${bar.label} `,
      { n: bar.share, unit: 'ratio' },
      ...(count === null ? [] : [' (', count, ')']),
    ];
  });
}
