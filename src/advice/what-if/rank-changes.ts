import { classOfBar } from '../../model/bars.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import { isMember, jobCauses, memberRanges, type Pace } from '../findings/job-causes.js';
import { rankName } from '../../vocabulary/ranks.js';
import { ranksOf, slowRank } from '../findings/rank-times.js';
import type { FindingContext } from '../findings/rule.js';
import type { StageFacts } from '../findings/stage-facts.js';
import { type Effect, type JobState, type StageState, unchanged } from './stage-state.js';

/** Effects of other ranks on a stage of the rank shown; null for a capture of one rank. */
export async function jobState(context: FindingContext, stage: StageFacts): Promise<JobState | null> {
  const ranks = await ranksOf(context, stage);
  const slow = slowRank(ranks);
  if (slow === null) return null;
  const { focus } = context.scope!.source;
  const causes = await jobCauses(context, stage);
  const link = causes?.link ?? null;
  return {
    slow: {
      ...slow,
      isShownRank: slow.time.rank === focus.rank && slow.time.device === focus.device,
      pace: causes?.paces.slow ?? null,
    },
    link: link && {
      ranks: memberRanges(link),
      isShownRank: isMember(link, focus.rank),
      lostMs: link.lost_ms,
      pace: causes!.paces.link,
    },
    rest: null,
  };
}

const isSkew = (id: string): boolean => id === 'exposed_comm.skew';
const isWire = (id: string): boolean => id === 'exposed_comm.wire';

/**
 * Removes a time from these bars, in proportion to each.
 * @returns the time removed: at most their sum
 */
function removeTime(bars: Map<string, number>, isSelected: (id: string) => boolean, ms: number): number {
  const selected = [...bars].filter(([id, barMs]) => isSelected(id) && barMs > 0);
  const sum = selected.reduce((total, [, barMs]) => total + barMs, 0);
  const part = Math.min(ms, sum);
  for (const [id, barMs] of selected) bars.set(id, barMs * (1 - part / sum));
  return part;
}

const howOf = (state: StageState, bars: ReadonlyMap<string, number>, why: string) =>
  new Map([...bars].flatMap(([id, ms]) => (ms === state.bars.get(id) ? [] : [[id, why] as const])));

const isSplit = ({ bars }: StageState): boolean => [...bars.keys()].some((id) => isSkew(id) || isWire(id));

/**
 * Removes a cause's delay, until another cause sets the pace; a later change that removes the other one removes the rest.
 * @param remove removes a share of the delay from the bars, and returns the time removed
 */
function removeDelay(
  state: StageState,
  { pace, lostMs }: { pace: Pace | null; lostMs: number },
  remove: (bars: Map<string, number>, share: number) => number,
): { removed: number; after: StageState; paced: string[] } {
  const { slow, link, rest } = state.job!;
  const bars = new Map(state.bars);
  const share = pace === null ? 1 : pace.ms / lostMs;
  const removed = remove(bars, share) + (rest?.(bars) ?? 0);
  const job: JobState = {
    slow: slow && { ...slow, pace: null },
    link: link && { ...link, pace: null },
    rest: share < 1 ? (later) => remove(later, 1 - share) : null,
  };
  const paced = pace === null ? [] : [`then ${pace.text}`];
  return { removed, after: { ...state, bars, job }, paced };
}

const notSplit = missing('not_paired', 'how long ranks wait for each other is not known');

/** The slowest rank takes as long as the others; the ranks that wait for it no longer do. */
export function withoutSlowRank(state: StageState): Effect | MissingFigure {
  const slow = state.job?.slow ?? null;
  if (slow === null) return unchanged(state, 'the capture has no ranks that wait for each other');
  if (slow.computeMs + slow.hostMs <= 0) return unchanged(state, 'no rank takes longer than the others');
  const slowMs = slow.computeMs + slow.hostMs;
  const { removed, after, paced } = removeDelay(state, { ...slow, lostMs: slowMs }, (bars, share) =>
    slow.isShownRank
      ? removeTime(bars, (id) => classOfBar(id) !== null, share * slow.computeMs) +
        removeTime(bars, (id) => state.idleBars.has(id), share * slow.hostMs)
      : removeTime(bars, isSkew, share * slowMs),
  );
  if (removed === 0 && !isSplit(state)) return notSplit;
  const name = rankName(slow.time);
  const how = slow.isShownRank
    ? slow.hasMoreWork
      ? `${name} does as much as the others`
      : `${name} as fast as the others`
    : `no longer waits for ${name}`;
  return {
    state: after,
    explanations: howOf(state, after.bars, how),
    lessMs: Math.max(spread * removed, paced.length > 0 ? 0 : slow.maxGainMs - removed),
    moreMs: Math.max(spread * removed, removed - slow.minGainMs),
    assumptions: [
      slow.hasMoreWork
        ? `the work of ${name} is spread over all ranks, and each takes their mean`
        : `${name} takes as long as the median of the other ranks`,
      ...paced,
    ],
  };
}

/** The group of ranks with the slow exchange becomes as fast as the fastest group with an equal exchange. */
export function withEqualLinks(state: StageState): Effect | MissingFigure {
  const link = state.job?.link ?? null;
  if (link === null) return unchanged(state, 'no group of ranks exchanges slower than the others');
  const { removed, after, paced } = removeDelay(state, link, (bars, share) =>
    removeTime(bars, link.isShownRank ? isWire : isSkew, share * link.lostMs),
  );
  if (removed === 0 && !isSplit(state)) return notSplit;
  const why = `ranks ${link.ranks} exchange as fast as the fastest other group`;
  return {
    state: after,
    explanations: howOf(state, after.bars, why),
    lessMs: spread * removed,
    moreMs: 0.5 * removed,
    assumptions: [why, ...paced],
  };
}

/** Error of a time that is the difference of two ranks' means. */
const spread = 0.1;
