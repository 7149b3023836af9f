import type { ExplainResult, Finding } from '../../src/model/documents/explain.js';
import { headlineTime } from '../../src/model/headline-time.js';
import { medianOf } from './median.js';
import { textTable } from './text-table.js';

/** An entry of test/fixtures/diagnosis-claims: a repaired twin without and with the advice of a finding, in turn; ms per stage or run. */
export interface MeasuredClaim {
  program: string;
  rule: string;
  stage: string | null;
  /** How the advice was carried out. */
  variant: string;
  pairs: { before: number; after: number }[];
}

/** What a finding of a twin promises, and what its advice brought; shares of the stage, or of the run. */
export interface ClaimRow {
  program: string;
  rule: string;
  stage: string | null;
  variant: string | null;
  expected: number;
  achieved: number | null;
  /** false: less than half came true, beyond the noise of the measurement. */
  outcome: 'true' | 'false' | 'not measured';
}

/** Minimum share of a stage or of the run that a finding must promise to be a claim. */
const minClaim = 0.05;
/** Share of a promise that must come true. */
const minTrue = 0.5;
/**
 * Minimum time before a change, as a share of the time that the session states. Below it the measurement had a faster host than the
 * capture, where less waits for the host: it can confirm a claim, but not refute it.
 */
const minComparable = 0.75;

/** Share of its stage that a finding promises, of the run if it has no stage; null without a gain, or with a gain per token. */
export function promisedShare(finding: Finding, { stages }: Pick<ExplainResult, 'stages'>): number | null {
  const { gain, stage, at_stake_share } = finding;
  if (gain === null || gain.per === 'token') return null;
  if (stage === null) return at_stake_share;
  const ms = timeOf(stage, stages);
  return ms === null || ms === 0 ? null : gain.expected_ms / ms;
}

/** Time of a kind of stage, ms; null if the session does not have it. */
function timeOf(stage: string | null, stages: ExplainResult['stages']): number | null {
  const waterfall = stages.find(({ kind }) => kind === stage);
  return waterfall ? headlineTime(waterfall).value : null;
}

/** Claims of a twin against their measurements; a row for each way to carry out the advice. */
export function claimsOf(
  program: string,
  explained: Pick<ExplainResult, 'stages' | 'findings'>,
  measured: readonly MeasuredClaim[],
): ClaimRow[] {
  return explained.findings.flatMap((finding): ClaimRow[] => {
    const { rule, stage, severity } = finding;
    const expected = severity === 'info' ? null : promisedShare(finding, explained);
    if (expected === null || expected < minClaim) return [];
    const claim = { program, rule, stage, expected };
    const ways = measured.filter(
      (one) => one.program === program && one.rule === rule && one.stage === stage,
    );
    if (ways.length === 0) return [{ ...claim, variant: null, achieved: null, outcome: 'not measured' }];
    return ways.map(({ variant, pairs }) => {
      const { median, high } = medianOf(pairs.map(({ before, after }) => (before - after) / before));
      const isTrue = median >= minTrue * expected || high >= minTrue * expected;
      const before = medianOf(pairs.map((pair) => pair.before)).median;
      const isComparable = before >= minComparable * (timeOf(stage, explained.stages) ?? 0);
      const outcome = isTrue ? 'true' : isComparable ? 'false' : 'not measured';
      return { ...claim, variant, achieved: median, outcome };
    });
  });
}

/** A claim is true if a way to carry out its advice made it so. */
export const isTrue = (
  rows: readonly ClaimRow[],
  { rule, stage }: Pick<ClaimRow, 'rule' | 'stage'>,
): boolean => rows.some((row) => row.rule === rule && row.stage === stage && row.outcome === 'true');

/** Claims that no measurement made true, for claims.py to measure. */
export function openClaims(rows: readonly ClaimRow[]): Pick<ClaimRow, 'program' | 'rule' | 'stage'>[] {
  const claims = rows.map(({ program, rule, stage }) => ({ program, rule, stage }));
  const isFirst = (claim: Pick<ClaimRow, 'program' | 'rule' | 'stage'>, index: number) =>
    claims.findIndex(
      (one) => one.program === claim.program && one.rule === claim.rule && one.stage === claim.stage,
    ) === index;
  const ofProgram = (program: string) => rows.filter((row) => row.program === program);
  return claims.filter((claim, index) => isFirst(claim, index) && !isTrue(ofProgram(claim.program), claim));
}

const percent = (share: number | null) => (share === null ? '–' : `${(share * 100).toFixed(1)} %`);

const outcomes = { true: 'yes', false: 'no', 'not measured': 'not measured' };

/** A line per claim, for tuning a rule. */
export const claimLines = (rows: readonly ClaimRow[]): string[] =>
  rows.map(
    ({ program, rule, stage, variant, expected, achieved, outcome }) =>
      `  ${program} ${rule} ${stage ?? 'run'}${variant === null ? '' : ` by ${variant}`}: promised ${percent(expected)}, achieved ${percent(achieved)}, came true: ${outcomes[outcome]}`,
  );

const groupBy = <T>(items: readonly T[], keyOf: (item: T) => string): [string, T[]][] => {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups].toSorted(([a], [b]) => a.localeCompare(b));
};

/** The table of docs/reference/diagnosis-scores.md: a row per rule, stage and way to carry out its advice. */
export function claimsTable(rows: readonly ClaimRow[]): string {
  const head = ['rule', 'stage', 'carried out as', 'claims', 'came true', 'promised', 'achieved'];
  const groups = groupBy(rows, ({ rule, stage, variant }) =>
    [rule, stage ?? 'run', variant ?? '–'].join(' | '),
  );
  const lines = groups.map(([key, group]) => {
    const middle = (shares: readonly (number | null)[]) => {
      const known = shares.filter((share) => share !== null);
      return percent(known.length === 0 ? null : medianOf(known).median);
    };
    return [
      ...key.split(' | '),
      String(group.length),
      group.some(({ achieved }) => achieved === null)
        ? 'not measured'
        : String(group.filter(({ outcome }) => outcome === 'true').length),
      middle(group.map(({ expected }) => expected)),
      middle(group.map(({ achieved }) => achieved)),
    ];
  });
  return textTable(head, lines);
}

export function claimsSentence(rows: readonly ClaimRow[]): string {
  const each = groupBy(rows, ({ program, rule, stage }) => [program, rule, stage].join(' ')).map(
    ([, ways]) => ways,
  );
  const measured = each.filter((ways) => ways.some(({ outcome }) => outcome !== 'not measured'));
  const cameTrue = measured.filter((ways) => ways.some(({ outcome }) => outcome === 'true'));
  return `Claims of 5 % and more in twins: ${each.length}. Measured: ${measured.length}. At least half of the promise came true: ${cameTrue.length}.`;
}
