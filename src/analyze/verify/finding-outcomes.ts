import type { Finding, VerifyResult } from '../../model/documents/explain.js';
import { formatNs } from '../trace/words.js';
import type { StagePair } from './stage-pairs.js';

export type ChangeVerdict = VerifyResult['changes'][number];

/** Of what was at stake before: less is gone, more than so much is still there. */
const goneShare = 0.1;
const sameShare = 0.7;

const ms = (value: number) => formatNs(value * 1e6);
const share = (value: number) => `${Math.round(100 * value)} %`;

/**
 * What became of every finding of the session before, with expected beside achieved, and what is new after. A stage's gain
 * belongs to its one change; where several changes were made in a stage, each is graded by the bars it names.
 */
export function findingOutcomes(
  before: readonly Finding[],
  after: readonly Finding[],
  pairs: readonly StagePair[],
): ChangeVerdict[] {
  const outcomes = before.map((finding) => {
    const scale = pairs.find((pair) => pair.before.kind === finding.stage)?.scale ?? 1;
    return { finding, ...outcomeOf(finding, after, scale) };
  });
  const made = outcomes.filter(
    ({ outcome, finding }) => outcome !== 'still_there' && gainOf(finding) !== null,
  );
  const old = outcomes.map(({ finding, outcome, left }): ChangeVerdict => {
    const pair = pairs.find((one) => one.before.kind === finding.stage) ?? null;
    const rivals = made.filter((one) => one.finding.stage === finding.stage);
    return graded(
      finding,
      outcome,
      left,
      pair,
      rivals.length,
      rivals.some((one) => one.finding.id === finding.hidden_by),
    );
  });
  const known = new Set(before.map(({ id }) => id));
  const fresh = after.filter(({ id, severity }) => !known.has(id) && severity !== 'info');
  return [...old, ...fresh.map(newFinding)];
}

const gainOf = ({ gain }: Finding) => (gain && gain.expected_ms > 0 ? gain : null);

function outcomeOf(
  finding: Finding,
  after: readonly Finding[],
  scale: number,
): { outcome: 'gone' | 'smaller' | 'still_there'; left: Finding | null } {
  const left = after.find(({ id }) => id === finding.id) ?? null;
  if (!left) return { outcome: 'gone', left };
  const [was, is] = [finding.at_stake_ms, left.at_stake_ms];
  if (was === null || is === null || was <= 0) return { outcome: 'still_there', left };
  const ratio = (is * scale) / was;
  return { outcome: ratio < goneShare ? 'gone' : ratio < sameShare ? 'smaller' : 'still_there', left };
}

function graded(
  finding: Finding,
  outcome: 'gone' | 'smaller' | 'still_there',
  left: Finding | null,
  pair: StagePair | null,
  changesInStage: number,
  hiderMade: boolean,
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
  if (outcome === 'still_there') {
    const at = left?.at_stake_ms ?? null;
    return ungraded(
      at === null
        ? 'Still there.'
        : `Still there: ${ms(at)} at stake${finding.at_stake_ms === null ? '' : `, ${ms(finding.at_stake_ms)} before`}.`,
    );
  }
  const verb = outcome === 'gone' ? 'Gone' : `Smaller, ${ms(left?.at_stake_ms ?? 0)} left at stake`;
  if (!gain) return ungraded(`${verb}; no gain was promised.`);
  if (!pair) return ungraded(`${verb}; the session after has no such stage to compare.`);
  if (finding.hidden_by !== null && !hiderMade)
    return ungraded(`${verb}; its gain was hidden by ${finding.hidden_by}, which is not mended.`);
  const achieved = achievedOf(finding, pair, changesInStage);
  if (achieved === null)
    return ungraded(`${verb}; W is too unsteady to grade idle time, and kernels and copies do not show it.`);
  const error = Math.abs(achieved) < 1e-6 ? null : (gain.expected_ms - achieved) / achieved;
  const inside = achieved >= gain.low_ms && achieved <= gain.high_ms;
  const words =
    achieved <= 0
      ? `the stage got no faster (${ms(-achieved)} slower)`
      : `${ms(achieved)} achieved${error === null ? '' : `, the expectation ${share(Math.abs(error))} too ${error > 0 ? 'high' : 'low'}`}`;
  return {
    ...base,
    achieved_ms: achieved,
    error: achieved > 0 ? error : null,
    within_interval: inside,
    text: `${verb}: ${ms(gain.expected_ms)} expected (${ms(gain.low_ms)} to ${ms(gain.high_ms)}), ${words}${inside ? ', inside the interval' : ', outside the interval'}.`,
  };
}

const idle = /^(launch_|synchronization|host|device_dependency)/;

/** The stage's own gain for its one change; of several, and of idle time where kernels are graded, that of the bars. */
function achievedOf(finding: Finding, { verdict }: StagePair, changesInStage: number): number | null {
  if (verdict.graded_on === 'gpu' && finding.bars.length > 0 && finding.bars.every((id) => idle.test(id)))
    return null;
  if (changesInStage <= 1) return verdict.achieved_ms;
  const own = verdict.bars.filter(({ id }) => finding.bars.includes(id));
  return own.length === 0 ? null : own.reduce((sum, bar) => sum + bar.before_ms - bar.after_ms, 0);
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
    text: stake === null ? 'New.' : `New: ${ms(stake)} at stake.`,
  };
}
