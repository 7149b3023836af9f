import { isIdleBar } from '../../model/bars.js';
import type { ExplainResult, Finding, VerifyResult } from '../../model/documents/explain.js';
import type { StagePair } from './stage-pairs.js';
import { formatMs, formatPercent } from '../../vocabulary/format.js';

export type ChangeVerdict = VerifyResult['changes'][number];
type OldOutcome = Exclude<ChangeVerdict['outcome'], 'new'>;

/** Shares of the former stake: below the first a finding is gone, above the second it is still present. */
const goneShare = 0.1;
const sameShare = 0.7;

/**
 * Outcome of every finding of the earlier session with expected and achieved gain, and new findings. If several changes were
 * made in one stage, its gain is divided in proportion to the expected gains, because their effects cannot be separated.
 * Findings hidden by a larger one in the same bars have their gain in that one.
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
  const goneFindings = outcomes.filter(
    ({ outcome, finding }) => (outcome === 'gone' || outcome === 'smaller') && gainOf(finding) !== null,
  );
  const separable = goneFindings.filter(({ finding }) => {
    if (finding.hidden_by === null) return true;
    const hider = goneFindings.find((candidate) => candidate.finding.id === finding.hidden_by)?.finding;
    // Hidden by a finding in other bars: its gain becomes visible when that one is gone. In the same bars it is part of that one.
    return hider !== undefined && !finding.bars.some((id) => hider.bars.includes(id));
  });
  const old = outcomes
    .filter(({ finding, outcome }) => finding.severity !== 'info' || outcome !== 'still_there')
    .map(({ finding, outcome, findingAfter }): ChangeVerdict => {
      const pair = pairs.find((stagePair) => stagePair.before.kind === finding.stage) ?? null;
      const sharing = separable
        .filter((entry) => entry.finding.stage === finding.stage)
        .map((entry) => entry.finding);
      return gradeFinding(finding, outcome, findingAfter, pair, sharing);
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

function outcomeOf(
  finding: Finding,
  after: readonly Finding[],
  scale: number,
  withheld: boolean,
): { outcome: OldOutcome; findingAfter: Finding | null } {
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

function gradeFinding(
  finding: Finding,
  outcome: OldOutcome,
  findingAfter: Finding | null,
  pair: StagePair | null,
  sharing: readonly Finding[],
): ChangeVerdict {
  const gain = gainOf(finding);
  const base = {
    finding: finding.id,
    stage: finding.stage,
    title: finding.title,
    outcome,
    expected_ms: gain?.expected_ms ?? null,
    low_ms: gain?.low_ms ?? null,
    high_ms: gain?.high_ms ?? null,
  };
  const ungraded = (text: string): ChangeVerdict => ({
    ...base,
    achieved_ms: null,
    error: null,
    within_interval: null,
    text,
  });
  if (outcome === 'not_judged')
    return ungraded(
      'Not judged: the machine was busy during the later session, and noise can cause this finding.',
    );
  if (outcome === 'still_there') {
    const stakeMs = findingAfter?.at_stake_ms ?? null;
    if (stakeMs === null) return ungraded('Still there.');
    return ungraded(
      `Still there: it affects ${formatMs(stakeMs)}, before ${formatMs(finding.at_stake_ms ?? 0)}.`,
    );
  }
  const verb =
    outcome === 'gone' ? 'Gone' : `Smaller, it still affects ${formatMs(findingAfter?.at_stake_ms ?? 0)}`;
  if (!gain) return ungraded(`${verb}; no gain was predicted.`);
  if (finding.stage === null) return ungraded(`${verb}; it has no single stage, so no stage time shows it.`);
  if (!pair) return ungraded(`${verb}; the later session has no such stage to compare.`);
  if (!sharing.includes(finding))
    return ungraded(`${verb}; its gain was hidden by ${finding.hidden_by} and is included there.`);
  const achieved = achievedOf(finding, pair, sharing);
  if (achieved === null) return ungraded(`${verb}; the stage time varies too much to measure the gain.`);
  const error = Math.abs(achieved.ms) < 1e-6 ? null : (gain.expected_ms - achieved.ms) / achieved.ms;
  const isWithinError =
    achieved.ms >= gain.low_ms - achieved.errorMs && achieved.ms <= gain.high_ms + achieved.errorMs;
  const isInInterval = achieved.ms >= gain.low_ms && achieved.ms <= gain.high_ms;
  const place = `${isWithinError ? 'inside' : 'outside'} the interval${isWithinError && !isInInterval ? ` within the measurement error of ± ${formatMs(achieved.errorMs)}` : ''}`;
  const words =
    achieved.ms <= 0
      ? `the stage got no faster (${formatMs(-achieved.ms)} slower)`
      : `${formatMs(achieved.ms)} achieved${sharing.length > 1 ? ` as its share of ${sharing.length} changes` : ''}${error === null ? '' : `, expected gain ${formatPercent(Math.abs(error))} too ${error > 0 ? 'high' : 'low'}`}`;
  return {
    ...base,
    achieved_ms: achieved.ms,
    error: achieved.ms > 0 ? error : null,
    within_interval: isWithinError,
    text: `${verb}: ${formatMs(gain.expected_ms)} expected (${formatMs(gain.low_ms)} to ${formatMs(gain.high_ms)}), ${words}, ${place}.`,
  };
}

/** Minimum uncertainty of a difference of two means, as a share: machines drift between runs. */
const minErrorShare = 0.05;

/** The stage's gain and its uncertainty; null if kernels and copies are graded, which do not include idle time. */
function achievedOf(
  finding: Finding,
  { verdict, wall }: StagePair,
  sharing: readonly Finding[],
): { ms: number; errorMs: number } | null {
  const sum = sharing.reduce((total, entry) => total + gainOf(entry)!.expected_ms, 0);
  const part = sum > 0 ? gainOf(finding)!.expected_ms / sum : 1;
  const names = sharing.flatMap(({ bars }) => bars);
  // Kernels and copies do not include idle time.
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
    within_interval: null,
    text: stake === null ? 'New.' : `New: ${formatMs(stake)} affected.`,
  };
}
