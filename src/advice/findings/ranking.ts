import { type Finding, severities } from '../../model/documents/explain.js';
import { launchingWithout } from './gain.js';
import type { FoundDraft, Rule } from './rule.js';
import type { StageTime } from './stage-times.js';
import { formatMs, formatPart, noValue } from '../../vocabulary/format.js';
import { capitalize } from '../../vocabulary/sentence.js';

export interface RuleFinding {
  rule: Pick<Rule, 'id' | 'references'>;
  draft: TitledDraft;
}

export type TitledDraft = FoundDraft & { title: string };

/** Share of a stage's time, scaled to the lower end of its interval, from which severity is high, and medium. */
const highShare = 0.2;
const mediumShare = 0.05;
/** Minimum share of a finding's gain that remains in its bars; below it, a larger finding hides it. */
const minRemainingShare = 0.5;
/** Minimum share of a stage's time that a finding about the host gains; then it hides larger findings with gains that the host limits. */
const minHostBoundShare = 0.3;

/**
 * Minimum ratio of the lower end of a stage's interval to its mean; below it, causes in the stage have low confidence.
 */
const minCertainty = 0.5;

interface Ranked {
  finding: Finding;
  /** Whether the gain removes idle time of the device or its work. */
  removes: 'idle' | 'busy';
  covers: readonly string[];
  paced_by: string | null;
  proportional: boolean;
  /** Whether the launches that remain leave less than half of the gain. */
  limited: boolean;
  /** Affected ms over the whole run that are certain. */
  certain_ms: number;
  /** Affected ms over the whole run. */
  run_ms: number;
  /** Whether its gain makes tokens cheaper, but neither their stage nor the run shorter. */
  per_token: boolean;
}

/**
 * Findings of all rules, largest certain affected ms over the whole run first: severity and order follow the lower end of the
 * stage's interval, so a stage of two instances that differ widely does not lead; equally certain ones by their affected ms. A gain that no what-if computes is limited to the bars
 * of its finding; bars claimed by two findings go to the larger one, and the other gets hidden_by unless half of its gain
 * remains or its gain is in proportion to what remains. So the sum of such visible gains never exceeds the stage's time.
 */
export function rankFindings(ruleFindings: readonly RuleFinding[], stages: readonly StageTime[]): Finding[] {
  const all = ruleFindings
    .map((draft) => rankOne(draft, stages))
    .toSorted(
      (a, b) =>
        b.certain_ms - a.certain_ms ||
        severityIndex(a) - severityIndex(b) ||
        b.run_ms - a.run_ms ||
        a.finding.id.localeCompare(b.finding.id, 'en'),
    );
  makeIdsUnique(all.map(({ finding }) => finding));
  // A benchmark has a stage of each kind per point: findings and their limits use the first point.
  const first = new Map(stages.toReversed().map((stage) => [stage.kind, stage]));
  for (const stage of first.values())
    shareBars(
      all.filter(({ finding }) => finding.stage === stage.kind),
      stage,
    );
  return stepsFirst(all, totalMs(stages)).map(({ finding }) => finding);
}

/**
 * A gain per token does not shorten a step, so its ms are not comparable: such findings come after those that shorten their
 * stage noticeably, regardless of size; of another stage, after those that shorten the run noticeably. Where requests wait, it does
 * shorten the run.
 */
function stepsFirst(all: readonly Ranked[], runMs: number): Ranked[] {
  const perToken = all.filter(({ per_token }) => per_token);
  const tokenStages = new Set(perToken.map(({ finding }) => finding.stage));
  const steps = all.filter(({ per_token }) => !per_token);
  const last = steps.findLastIndex(
    ({ finding: { stage, at_stake_share, gain, hidden_by }, certain_ms }) =>
      (at_stake_share ?? 0) >= mediumShare &&
      (tokenStages.has(stage) || certain_ms >= mediumShare * runMs) &&
      hidden_by === null &&
      gain !== null,
  );
  return steps.toSpliced(last + 1, 0, ...perToken);
}

const totalMs = (stages: readonly StageTime[]): number =>
  stages.reduce((sum, { instances, time_ms }) => sum + instances * time_ms, 0);

const severityIndex = ({ finding }: Ranked): number => severities.indexOf(finding.severity);

/** Affected ms of a draft, at most its bars, and their share of the stage or the run. */
function affectedBy(draft: FoundDraft, stages: readonly StageTime[]) {
  const stage = stages.find(({ kind }) => kind === draft.stage);
  const bars = stage ? draft.bars.filter((id) => stage.bars.has(id)) : draft.bars;
  const ceiling = stage ? Math.min(stage.time_ms, barSum(stage, bars)) : Infinity;
  const at_stake_ms = draft.at_stake_ms === null ? null : Math.min(draft.at_stake_ms, ceiling);
  const at_stake_share =
    at_stake_ms === null
      ? null
      : stage
        ? at_stake_ms / stage.time_ms
        : (draft.share ?? runShare(draft.run_ms ?? at_stake_ms, stages));
  return { stage, bars, ceiling, at_stake_ms, at_stake_share };
}

/** The draft with its title, which has the affected share as the finding has it. */
export function withTitle(draft: FoundDraft, stages: readonly StageTime[]): TitledDraft {
  const { title } = draft;
  if (typeof title === 'string') return { ...draft, title };
  const { stage, at_stake_share: share } = affectedBy(draft, stages);
  // A share of the run is not one of the stage.
  const isKnown = share !== null && (stage ?? draft.share) !== undefined;
  return { ...draft, title: title(isKnown ? formatPart(share, 1) : noValue) };
}

function rankOne({ rule, draft }: RuleFinding, stages: readonly StageTime[]): Ranked {
  const {
    run_ms: statedMs,
    share: _share,
    removes = 'busy',
    covers = [],
    paced_by = null,
    proportional = false,
    launches,
    noise: _noise,
    queued,
    severity = 'info',
    ...rest
  } = draft;
  const { stage, bars, ceiling, at_stake_ms, at_stake_share } = affectedBy(draft, stages);
  const certainty = stage && stage.time_ms > 0 ? stage.low_ms / stage.time_ms : 1;
  const unlimited = draft.gain && { per: 'stage' as const, ...draft.gain };
  const gain = unlimited && limitToHost(unlimited, removes, launches ?? 0, stage);
  const runMs = statedMs ?? (at_stake_ms ?? 0) * (stage?.instances ?? 1);
  return {
    removes,
    limited: gain !== null && gain.expected_ms < minRemainingShare * unlimited!.expected_ms,
    covers,
    paced_by,
    proportional,
    per_token: gain?.per === 'token' && queued !== true,
    certain_ms: certainty * runMs,
    run_ms: runMs,
    finding: {
      id: draft.stage === null ? rule.id : `${rule.id}:${draft.stage}`,
      rule: rule.id,
      severity: at_stake_share === null ? severity : severityOf(certainty * at_stake_share),
      ...rest,
      confidence: certainty < minCertainty ? 'low' : rest.confidence,
      cause: capitalize(rest.cause),
      bars,
      at_stake_ms,
      at_stake_share,
      gain: gain && clampGain(gain, at_stake_ms ?? Infinity, ceiling, stage),
      hidden_by: null,
      references: rule.references,
    },
  };
}

/** Sum of the bars; the whole stage if there are none. */
function barSum(stage: StageTime, bars: readonly string[]): number {
  if (stage.bars.size === 0 || bars.length === 0) return stage.time_ms;
  return bars.reduce((sum, id) => sum + Math.max(0, stage.bars.get(id) ?? 0), 0);
}

function runShare(ms: number, stages: readonly StageTime[]): number | null {
  const run = totalMs(stages);
  return run > 0 ? ms / (run + ms) : null;
}

function severityOf(share: number): Finding['severity'] {
  return share >= highShare ? 'high' : share >= mediumShare ? 'medium' : 'low';
}

/**
 * Host and device work at the same time, so a step without some kernels still takes as long as the host needs for the launches that
 * remain.
 */
function limitToHost(
  gain: NonNullable<Finding['gain']>,
  removes: Ranked['removes'],
  launches: number,
  stage: StageTime | undefined,
): NonNullable<Finding['gain']> {
  if (removes !== 'busy' || gain.per === 'token' || gain.what_if !== null || !stage) return gain;
  const remaining = (ms: number) => launchingWithout(ms, stage.launches, launches);
  const host_ms = remaining(stage.own_host_ms ?? stage.launching_ms);
  const byLaunchesMs = Math.max(stage.busy_ms, stage.launching_ms) - remaining(stage.launching_ms);
  // The host's time is its own work and its waits.
  const maxMs = Math.max(
    0,
    stage.own_host_ms === null ? byLaunchesMs : stage.time_ms - host_ms - stage.copying_ms,
  );
  if (gain.expected_ms <= maxMs) return gain;
  return {
    ...gain,
    expected_ms: maxMs,
    // The host may be as slow in another process as under the profiler.
    low_ms: Math.max(0, Math.min(gain.low_ms, maxMs, byLaunchesMs)),
    host_ms,
    assumption: `${gain.assumption} The host needs ${formatMs(host_ms)} for the launches that remain, which limits the gain.`,
  };
}

function clampGain(
  gain: NonNullable<Finding['gain']>,
  stake: number,
  ceiling: number,
  stage: StageTime | undefined,
): NonNullable<Finding['gain']> {
  // A gain per token does not shrink the stage's bars. A what-if recomputes all bars, including the roofline.
  if (gain.per === 'token' || gain.what_if !== null) return gain;
  const expected_ms = Math.max(0, Math.min(gain.expected_ms, stake, ceiling));
  return {
    ...gain,
    expected_ms,
    low_ms: Math.max(0, Math.min(gain.low_ms, expected_ms)),
    high_ms: Math.max(expected_ms, Math.min(gain.high_ms, ceiling)),
    after_ms: stage ? stage.time_ms - expected_ms : gain.after_ms,
  };
}

/** A rule with two findings in one stage has two ids. */
function makeIdsUnique(all: readonly Finding[]): void {
  const idCounts = new Map<string, number>();
  for (const finding of all) {
    const times = (idCounts.get(finding.id) ?? 0) + 1;
    idCounts.set(finding.id, times);
    if (times > 1) finding.id = `${finding.id}:${times}`;
  }
}

/**
 * Bars go to the larger gain; then a finding hides smaller ones that gain little before its own change, and one about the host those with
 * gains that the host limits.
 */
function shareBars(all: readonly Ranked[], stage: StageTime): void {
  const remaining = new Map([...stage.bars].map(([id, ms]) => [id, Math.max(0, ms)]));
  const largestTakers = new Map<string, { id: string; ms: number }>();
  let rest = stage.time_ms;
  // A gain from more sequences per step does not shorten the step: it neither hides other findings nor is hidden.
  const shortening = all
    .filter(({ finding: { gain } }) => gain !== null && gain.expected_ms > 0 && gain.per !== 'token')
    .toSorted((a, b) => b.finding.gain!.expected_ms - a.finding.gain!.expected_ms);
  for (const ranked of shortening) {
    const { finding, proportional } = ranked;
    const gain = finding.gain!;
    const covering = shortening.find((candidate) => isCoveredBy(candidate, ranked));
    if (covering) {
      finding.hidden_by = covering.finding.id;
      continue;
    }
    const free =
      remaining.size === 0 || finding.bars.length === 0
        ? rest
        : Math.min(
            rest,
            finding.bars.reduce((sum, id) => sum + (remaining.get(id) ?? 0), 0),
          );
    const [largest] = shortening;
    // The first gain has all bars: one of a what-if may be larger than those of its finding.
    if (!proportional && free < minRemainingShare * gain.expected_ms && finding !== largest!.finding) {
      finding.hidden_by = largestTaker(finding, largestTakers) ?? largest!.finding.id;
      continue;
    }
    const remainingMs = proportional
      ? (gain.expected_ms * free) / barSum(stage, finding.bars)
      : Math.min(gain.expected_ms, free);
    finding.gain = clampGain(gain, remainingMs, free, stage);
    rest -= remainingMs;
    takeBars(finding, remainingMs, remaining, largestTakers);
  }
  // A larger cause also hides findings without a gain that it covers.
  for (const ranked of all.filter(({ finding: { gain } }) => (gain?.expected_ms ?? 0) <= 0))
    ranked.finding.hidden_by ??=
      shortening.find((candidate) => isCoveredBy(candidate, ranked))?.finding.id ?? null;
  for (const [index, { finding, paced_by }] of all.entries()) {
    const pacing = all.slice(0, index).find((larger) => larger.finding.rule === paced_by);
    if (pacing) finding.hidden_by ??= pacing.finding.id;
  }
  const host = shortening.find(({ finding, removes }) => removes === 'idle' && finding.hidden_by === null);
  if (!host) return;
  const hostMs = host.finding.gain!.expected_ms;
  const isMost = hostMs >= minHostBoundShare * stage.time_ms;
  for (const { finding, limited } of all)
    if (limited && (isMost || finding.gain!.expected_ms < hostMs)) finding.hidden_by ??= host.finding.id;
}

/** Whether a finding explains another one, which promises no more than it may bring. */
function isCoveredBy(covering: Ranked, { finding: covered, covers }: Ranked): boolean {
  if (covering.finding === covered || !covering.covers.includes(covered.rule)) return false;
  const { expected_ms, high_ms } = covering.finding.gain!;
  // Where each covers the other, the larger one explains the smaller one.
  const most = covers.includes(covering.finding.rule) ? expected_ms : high_ms;
  return most >= (covered.gain?.expected_ms ?? 0);
}

function largestTaker(
  finding: Finding,
  largestTakers: ReadonlyMap<string, { id: string; ms: number }>,
): string | null {
  const takers = finding.bars.flatMap((id) => largestTakers.get(id) ?? []).toSorted((a, b) => b.ms - a.ms);
  return takers[0]?.id ?? null;
}

function takeBars(
  finding: Finding,
  ms: number,
  remaining: Map<string, number>,
  largestTakers: Map<string, { id: string; ms: number }>,
): void {
  let claimed = ms;
  for (const id of finding.bars) {
    const takenMs = Math.min(claimed, remaining.get(id) ?? 0);
    remaining.set(id, (remaining.get(id) ?? 0) - takenMs);
    claimed -= takenMs;
    if (takenMs > (largestTakers.get(id)?.ms ?? 0)) largestTakers.set(id, { id: finding.id, ms: takenMs });
  }
}
