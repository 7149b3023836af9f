import { isIdleBar } from '../../model/bars.js';
import type { ExplainResult, Finding, StageWaterfall, VerifyResult } from '../../model/documents/explain.js';
import { minGainErrorShare } from '../../model/gain-error.js';
import { headlineTime } from '../../model/headline-time.js';
import { type StagePair, whyNotGraded } from './stage-pairs.js';
import { pointLabel } from '../../vocabulary/bench.js';
import { formatMs, formatPercent } from '../../vocabulary/format.js';

export type ChangeVerdict = VerifyResult['changes'][number];
type OldOutcome = Exclude<ChangeVerdict['outcome'], 'new'>;

/** Shares of the time a finding affected before: below the first it is gone, from the second on it is still there. */
const goneShare = 0.1;
const sameShare = 0.7;

/**
 * Outcome of each finding of the earlier session with expected and achieved gain, and new findings. Info findings are left
 * out where they are new, still there, or without an expected gain: those are about the measurement. If several findings of a stage are gone or smaller, its gain is divided in proportion
 * to their expected gains, because their effects cannot be separated. The gain of a finding hidden by a larger one in the same
 * bars is part of that of the larger one.
 */
export function findingOutcomes(
  { findings: before, stages }: Pick<ExplainResult, 'findings' | 'stages'>,
  { findings: after, withheld, stages: stagesAfter }: Pick<ExplainResult, 'findings' | 'withheld' | 'stages'>,
  pairs: readonly StagePair[],
): ChangeVerdict[] {
  const outcomes = before.map((finding) => {
    const scale = pairs.find((pair) => pair.before.kind === finding.stage)?.scale ?? 1;
    const gain = gainPerStep(
      finding,
      stages.find(({ kind }) => kind === finding.stage),
    );
    const whyNot = after.some(({ id }) => id === finding.id)
      ? null
      : whyNotJudged(finding, stages, stagesAfter);
    return {
      finding,
      gain,
      ...(whyNot === null
        ? outcomeOf(finding, after, scale, withheld)
        : { outcome: 'not_judged' as const, findingAfter: null, notJudgedWhy: whyNot }),
    };
  });
  const allReduced = outcomes.filter(({ outcome }) => outcome === 'gone' || outcome === 'smaller');
  const reduced = allReduced.filter(({ gain }) => gain !== null);
  const hiderOf = (finding: Finding) => reduced.find(({ finding: { id } }) => id === finding.hidden_by);
  const withOwnGain = reduced.filter(({ finding }) => {
    if (finding.hidden_by === null) return true;
    const hider = hiderOf(finding);
    // Hidden by a finding in other bars: its gain becomes visible when that one is gone. In the same bars it is part of that one.
    return hider !== undefined && !isPartOf(finding, hider.finding);
  });
  const shown = outcomes.filter(
    ({ finding, gain, outcome }) =>
      finding.severity !== 'info' || (gain !== null && outcome !== 'still_there'),
  );
  const numberOf = (id: string | null): string => {
    const index = shown.findIndex(({ finding }) => finding.id === id);
    return index < 0 ? 'another finding' : `finding ${index + 1}`;
  };
  const old = shown.map((entry): ChangeVerdict => {
    const { finding, gain } = entry;
    const pair = pairs.find((stagePair) => stagePair.before.kind === finding.stage) ?? null;
    const sharing = withOwnGain.filter((other) => other.finding.stage === finding.stage);
    const unmeasured = allReduced.find(
      (other) =>
        other.gain === null &&
        other.finding.stage === finding.stage &&
        (other.finding.at_stake_ms ?? 0) > (gain?.expected_ms ?? 0),
    );
    const grade = gradeOf(entry, pair, {
      sharing,
      unmeasured,
      hider: numberOf(finding.hidden_by),
      isHiderReduced: hiderOf(finding) !== undefined,
    });
    return {
      finding: finding.id,
      stage: finding.stage,
      title: finding.title,
      outcome: entry.outcome,
      expected_ms: gain?.expected_ms ?? null,
      low_ms: gain?.low_ms ?? null,
      high_ms: gain?.high_ms ?? null,
      ...(typeof grade === 'string'
        ? { achieved_ms: null, achieved_error_ms: null, error: null, as_expected: null, text: grade }
        : {
            achieved_ms: grade.achieved_ms,
            achieved_error_ms: grade.error_ms,
            error: grade.error,
            as_expected: grade.as_expected,
            text: gradeText(entry, grade),
          }),
    };
  });
  const idsBefore = new Set(before.map(({ id }) => id));
  const newFindings = after.filter(({ id, severity }) => !idsBefore.has(id) && severity !== 'info');
  return [...old, ...newFindings.map(newFinding)];
}

/** Why the later session cannot show whether a finding of a stage is gone; null if it can. */
function whyNotJudged(
  { stage }: Finding,
  before: readonly StageWaterfall[],
  after: readonly StageWaterfall[],
): string | null {
  if (stage === null) return missingLoads(before, after);
  const sourcesOf = (stages: readonly StageWaterfall[]) =>
    new Set(stages.filter(({ kind }) => kind === stage).map(({ source }) => source));
  const [from, to] = [sourcesOf(before), sourcesOf(after)];
  if (to.size === 0) return 'the later session has no such stage';
  const isBare = [...to].every((source) => source === 'record') && !from.has('record');
  return isBare
    ? 'the later session ran without a profiler, so what its stage consists of is not known'
    : null;
}

/** Loads that only the earlier session has: what a finding about a load would show there is not known. */
function missingLoads(before: readonly StageWaterfall[], after: readonly StageWaterfall[]): string | null {
  const loadsOf = (stages: readonly StageWaterfall[]) =>
    stages.flatMap(({ source, point }) => (source === 'serving' && point !== null ? [point] : []));
  const later = loadsOf(after);
  const missing = [...new Set(loadsOf(before))].filter((point) => !later.includes(point));
  return missing.length === 0
    ? null
    : `the later session has no load at ${missing.map((point) => pointLabel(point)).join(', ')}`;
}

/** Whether the gain of a finding is part of the gain of the larger one that hides it: both remove time of the same bars. */
export const isPartOf = (hidden: Finding, hider: Finding): boolean =>
  hidden.bars.some((id) => hider.bars.includes(id));

type Gain = NonNullable<Finding['gain']>;

/**
 * The gain per step, in which sessions are compared: one per token times the tokens of a step; null without an expected gain.
 * @param stage of the finding, in the earlier session
 */
function gainPerStep({ gain }: Finding, stage: StageWaterfall | undefined): Gain | null {
  if (!gain || gain.expected_ms <= 0) return null;
  if (gain.per !== 'token') return gain;
  const stepMs = stage && headlineTime(stage).value;
  if (!stepMs) return gain;
  // A whole number, which gain and step time have only nearly.
  const tokens = Math.max(1, Math.round(stepMs / (gain.after_ms + gain.expected_ms)));
  return {
    ...gain,
    expected_ms: gain.expected_ms * tokens,
    low_ms: gain.low_ms * tokens,
    high_ms: gain.high_ms * tokens,
  };
}

type Withheld = ExplainResult['withheld'][number];

/** A finding of the earlier session, and what the later session says about it. */
interface FindingOutcome {
  finding: Finding;
  /** Per step. */
  gain: Gain | null;
  outcome: OldOutcome;
  /** The same finding, if it is still found. */
  findingAfter: Finding | null;
  /** Why the later session cannot show it; null unless not judged. */
  notJudgedWhy: string | null;
}

function outcomeOf(
  finding: Finding,
  after: readonly Finding[],
  scale: number,
  withheld: readonly Withheld[],
): Omit<FindingOutcome, 'finding' | 'gain'> {
  const findingAfter = after.find(({ id }) => id === finding.id) ?? null;
  const same = withheld.find(({ rule, stage }) => rule === finding.rule && stage === finding.stage);
  if (!findingAfter) {
    const notJudgedWhy = same ? `the later session withholds such findings (${same.reason.text})` : null;
    return { outcome: same ? 'not_judged' : 'gone', findingAfter, notJudgedWhy };
  }
  const [was, is] = [finding.at_stake_ms, findingAfter.at_stake_ms];
  if (was === null || is === null || was <= 0)
    return { outcome: 'still_there', findingAfter, notJudgedWhy: null };
  const ratio = (is * scale) / was;
  return {
    outcome: ratio < goneShare ? 'gone' : ratio < sameShare ? 'smaller' : 'still_there',
    findingAfter,
    notJudgedWhy: null,
  };
}

/** The achieved gain of a finding compared with the expected one. */
interface Grade {
  gain: Gain;
  achieved_ms: number;
  error_ms: number;
  /** As in the document. */
  error: number | null;
  as_expected: boolean;
  /** Gain of the whole stage, and the number of findings that share it. */
  stage_ms: number;
  sharing: number;
}

/**
 * The grade of a finding, or why it has none.
 * @param others `sharing`: findings of the stage that may share its gain; `unmeasured`: a larger one that is gone or smaller, without an
 * expected gain; `hider`: the finding that hides this one, by its number, and whether it is gone or smaller
 */
function gradeOf(
  entry: FindingOutcome,
  pair: StagePair | null,
  {
    sharing,
    unmeasured,
    hider,
    isHiderReduced,
  }: {
    sharing: readonly FindingOutcome[];
    unmeasured: FindingOutcome | undefined;
    hider: string;
    isHiderReduced: boolean;
  },
): Grade | string {
  const { finding, gain, outcome, findingAfter, notJudgedWhy } = entry;
  if (outcome === 'not_judged') return `Not judged: ${notJudgedWhy}.`;
  if (outcome === 'still_there') {
    const stakeMs = findingAfter?.at_stake_ms ?? null;
    return stakeMs === null
      ? 'Still there.'
      : `Still there: it affects ${formatMs(stakeMs)}, before ${formatMs(finding.at_stake_ms ?? 0)}.`;
  }
  const words = outcomeWords(entry);
  if (!gain) return `${words}; no gain was expected.`;
  if (finding.stage === null) return `${words}; it is not in one stage, so no stage time shows its gain.`;
  if (!pair) return `${words}; its stage is not compared between the sessions.`;
  if (!sharing.includes(entry))
    return isHiderReduced
      ? `${words}; the gain was hidden by ${hider} and is included there.`
      : `${words}; the gain is still hidden by ${hider}.`;
  if (unmeasured)
    return `${words}; not graded, because another finding with a larger effect and no expected gain is reduced, too: ${unmeasured.finding.title}.`;
  const why = whyNotGraded(pair);
  if (why !== null) return `${words}; not graded, because ${why}.`;
  const measured = sharing.filter(
    (other) => pair.verdict.graded_on === 'wall' || !isMostlyIdle(other.finding, pair.before),
  );
  if (!measured.includes(entry))
    return `${words}; the stage's wall time is too uncertain to measure the gain, and kernels and copies do not show it.`;
  const { ms, errorMs } = achievedOf(gain, pair, measured);
  return {
    gain,
    achieved_ms: ms,
    error_ms: errorMs,
    error: ms < 1e-6 ? null : (gain.expected_ms - ms) / ms,
    as_expected: ms >= gain.low_ms - errorMs && ms <= gain.high_ms + errorMs,
    stage_ms: pair.verdict.achieved_ms,
    sharing: measured.length,
  };
}

/** Whether a finding is mostly about idle time, which the time of kernels and copies does not include. */
function isMostlyIdle({ bars }: Finding, stage: StageWaterfall): boolean {
  const sumOf = (ids: readonly string[]) =>
    stage.bars.reduce((sum, { id, ms }) => sum + (ids.includes(id) ? Math.max(0, ms) : 0), 0);
  return bars.length > 0 && sumOf(bars.filter(isIdleBar)) > sumOf(bars) / 2;
}

const outcomeWords = ({ outcome, findingAfter }: FindingOutcome): string =>
  outcome === 'gone' ? 'Gone' : `Smaller (it still affects ${formatMs(findingAfter?.at_stake_ms ?? 0)})`;

function gradeText(
  entry: FindingOutcome,
  { gain, achieved_ms: ms, error_ms: errorMs, error, as_expected: isAsExpected, stage_ms, sharing }: Grade,
): string {
  const isInside = ms >= gain.low_ms && ms <= gain.high_ms;
  const achieved =
    ms <= 0
      ? `the stage got no faster${stage_ms < 0 ? ` (${formatMs(-stage_ms)} slower)` : ''}`
      : `${formatMs(ms)} achieved${sharing > 1 ? ` as its share of ${sharing} changes` : ''}${error === null ? '' : `, expected gain ${formatPercent(Math.abs(error))} too ${error > 0 ? 'high' : 'low'}`}`;
  const place = isInside
    ? 'inside the interval'
    : isAsExpected
      ? `inside the interval plus the measurement error of ± ${formatMs(errorMs)}`
      : 'outside the interval';
  return `${outcomeWords(entry)}: ${formatMs(gain.expected_ms)} expected (${formatMs(gain.low_ms)} to ${formatMs(gain.high_ms)}), ${achieved}, ${place}.`;
}

/** The part of the stage's gain that counts for a finding with this expected gain, and its uncertainty. */
function achievedOf(
  gain: Gain,
  { verdict, wall }: StagePair,
  sharing: readonly FindingOutcome[],
): { ms: number; errorMs: number } {
  const part = gain.expected_ms / sharing.reduce((sum, other) => sum + other.gain!.expected_ms, 0);
  const achieved = verdict.achieved_ms;
  const noise = verdict.graded_on === 'wall' ? (wall.noise_ms ?? 0) : 0;
  return { ms: part * achieved, errorMs: part * Math.max(noise, minGainErrorShare * Math.abs(achieved)) };
}

function newFinding({ id, stage, title, at_stake_ms: stake }: Finding): ChangeVerdict {
  return {
    finding: id,
    stage,
    title,
    outcome: 'new',
    expected_ms: null,
    low_ms: null,
    high_ms: null,
    achieved_ms: null,
    achieved_error_ms: null,
    error: null,
    as_expected: null,
    text: stake === null ? 'New.' : `New: ${formatMs(stake)} affected.`,
  };
}
