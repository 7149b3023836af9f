import { isIdleBar } from '../../model/bars.js';
import type { ExplainResult, Finding, VerifyResult } from '../../model/documents/explain.js';
import type { StagePair } from './stage-pairs.js';
import { formatMs, formatPercent } from '../../vocabulary/format.js';

export type ChangeVerdict = VerifyResult['changes'][number];
type OldOutcome = Exclude<ChangeVerdict['outcome'], 'new'>;

/** Shares of the time a finding affected before: below the first it is gone, above the second it is still there. */
const goneShare = 0.1;
const sameShare = 0.7;

/**
 * Outcome of each finding of the earlier session with expected and achieved gain, and new findings. Info findings are left
 * out where they are new or still there. If several findings of a stage are gone or smaller, its gain is divided in proportion
 * to their expected gains, because their effects cannot be separated. The gain of a finding hidden by a larger one in the same
 * bars is part of that of the larger one.
 */
export function findingOutcomes(
  before: readonly Finding[],
  { findings: after, withheld }: Pick<ExplainResult, 'findings' | 'withheld'>,
  pairs: readonly StagePair[],
): ChangeVerdict[] {
  const outcomes = before.map((finding) => {
    const scale = pairs.find((pair) => pair.before.kind === finding.stage)?.scale ?? 1;
    const unknown = withheld.some(({ rule, stage }) => rule === finding.rule && stage === finding.stage);
    return { finding, ...outcomeOf(finding, after, scale, unknown) };
  });
  const reduced = outcomes
    .filter(
      ({ outcome, finding }) => (outcome === 'gone' || outcome === 'smaller') && gainOf(finding) !== null,
    )
    .map(({ finding }) => finding);
  const hiderOf = (finding: Finding) => reduced.find(({ id }) => id === finding.hidden_by);
  const withOwnGain = reduced.filter((finding) => {
    if (finding.hidden_by === null) return true;
    const hider = hiderOf(finding);
    // Hidden by a finding in other bars: its gain becomes visible when that one is gone. In the same bars it is part of that one.
    return hider !== undefined && !finding.bars.some((id) => hider.bars.includes(id));
  });
  const old = outcomes
    .filter(({ finding, outcome }) => finding.severity !== 'info' || outcome !== 'still_there')
    .map((entry): ChangeVerdict => {
      const { finding } = entry;
      const pair = pairs.find((stagePair) => stagePair.before.kind === finding.stage) ?? null;
      const sharing = withOwnGain.filter(({ stage }) => stage === finding.stage);
      const grade = gradeOf(entry, pair, sharing, hiderOf(finding) !== undefined);
      const gain = gainOf(finding);
      return {
        finding: finding.id,
        stage: finding.stage,
        title: finding.title,
        outcome: entry.outcome,
        expected_ms: gain?.expected_ms ?? null,
        low_ms: gain?.low_ms ?? null,
        high_ms: gain?.high_ms ?? null,
        ...(typeof grade === 'string'
          ? { achieved_ms: null, error: null, as_expected: null, text: grade }
          : {
              achieved_ms: grade.achieved_ms,
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

/** Converts a gain per token to a gain per step with the step's token count; sessions are compared per step. */
function gainOf({ gain, at_stake_ms: stake }: Finding) {
  if (!gain || gain.expected_ms <= 0) return null;
  if (gain.per === 'stage' || stake === null) return gain;
  const tokens = stake / gain.expected_ms;
  return {
    ...gain,
    expected_ms: stake,
    low_ms: gain.low_ms * tokens,
    high_ms: gain.high_ms * tokens,
  };
}

/** A finding of the earlier session, and the same one of the later session if it is still found. */
interface FindingOutcome {
  finding: Finding;
  outcome: OldOutcome;
  findingAfter: Finding | null;
}

function outcomeOf(
  finding: Finding,
  after: readonly Finding[],
  scale: number,
  withheld: boolean,
): Omit<FindingOutcome, 'finding'> {
  const findingAfter = after.find(({ id }) => id === finding.id) ?? null;
  if (!findingAfter) return { outcome: withheld ? 'not_judged' : 'gone', findingAfter };
  const [was, is] = [finding.at_stake_ms, findingAfter.at_stake_ms];
  if (was === null || is === null || was <= 0) return { outcome: 'still_there', findingAfter };
  const ratio = (is * scale) / was;
  return {
    outcome: ratio < goneShare ? 'gone' : ratio < sameShare ? 'smaller' : 'still_there',
    findingAfter,
  };
}

type Gain = NonNullable<ReturnType<typeof gainOf>>;

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
 * @param sharing findings of the stage that share its gain
 * @param isHiderReduced whether the finding that hides this one is gone or smaller
 */
function gradeOf(
  entry: FindingOutcome,
  pair: StagePair | null,
  sharing: readonly Finding[],
  isHiderReduced: boolean,
): Grade | string {
  const { finding, outcome, findingAfter } = entry;
  const gain = gainOf(finding);
  if (outcome === 'not_judged')
    return 'Not judged: the machine was busy during the later session, and noise can cause this finding.';
  if (outcome === 'still_there') {
    const stakeMs = findingAfter?.at_stake_ms ?? null;
    return stakeMs === null
      ? 'Still there.'
      : `Still there: it affects ${formatMs(stakeMs)}, before ${formatMs(finding.at_stake_ms ?? 0)}.`;
  }
  const words = outcomeWords(entry);
  if (!gain) return `${words}; no gain was expected.`;
  if (finding.stage === null) return `${words}; it is not in one stage, so no stage time shows its gain.`;
  if (!pair) return `${words}; the later session has no such stage to compare.`;
  if (!sharing.includes(finding))
    return isHiderReduced
      ? `${words}; its gain was hidden by ${finding.hidden_by} and is included there.`
      : `${words}; its gain is still hidden by ${finding.hidden_by}.`;
  const achieved = achievedOf(finding, pair, sharing);
  if (achieved === null) return `${words}; the stage time varies too much to measure the gain.`;
  const { ms, errorMs } = achieved;
  return {
    gain,
    achieved_ms: ms,
    error_ms: errorMs,
    error: ms < 1e-6 ? null : (gain.expected_ms - ms) / ms,
    as_expected: ms >= gain.low_ms - errorMs && ms <= gain.high_ms + errorMs,
    stage_ms: pair.verdict.achieved_ms,
    sharing: sharing.length,
  };
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

/** Minimum uncertainty of a difference of two means, as a share of the difference: machines drift between runs. */
const minErrorShare = 0.05;

/**
 * The part of the stage's gain that counts for this finding, and its uncertainty; null if only time of kernels and copies is
 * compared, and the findings are about idle time, which that does not include.
 */
function achievedOf(
  finding: Finding,
  { verdict, wall }: StagePair,
  sharing: readonly Finding[],
): { ms: number; errorMs: number } | null {
  const sum = sharing.reduce((total, entry) => total + gainOf(entry)!.expected_ms, 0);
  const part = sum > 0 ? gainOf(finding)!.expected_ms / sum : 1;
  const names = sharing.flatMap(({ bars }) => bars);
  if (verdict.graded_on === 'gpu' && names.length > 0 && names.every(isIdleBar)) return null;
  const achieved = verdict.achieved_ms;
  const noise = verdict.graded_on === 'wall' ? (wall.noise_ms ?? 0) : 0;
  return { ms: part * achieved, errorMs: part * Math.max(noise, minErrorShare * Math.abs(achieved)) };
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
    error: null,
    as_expected: null,
    text: stake === null ? 'New.' : `New: ${formatMs(stake)} affected.`,
  };
}
