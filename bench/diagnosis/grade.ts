import type { ExplainResult, Finding } from '../../src/model/documents/explain.js';
import { type ClaimRow, claimsOf, isTrue, type MeasuredClaim } from './claims.js';
import { type Median, medianOf } from './median.js';
import { textTable } from './text-table.js';
import { isPartOf } from '../../src/advice/verify/finding-outcomes.js';

/** An entry of faults.json. */
export interface PlantedFault {
  id: string;
  /** The fault, and what its repaired twin does instead. */
  planted: string;
  /** Rules that name this cause; any of them is correct as the first finding. */
  rules: string[];
  /** Kind of stage with the fault; all kinds if missing. */
  stage?: 'prefill' | 'decode';
  /** For each further fault, which the first one may hide: the rules that name it. */
  also?: string[][];
  /** Rules of other causes that the repair also removes, if they fire: their gains add up. */
  repaired_too?: string[];
  /** Rules that are also correct for the repaired twin, each with the reason. */
  true_of_twin?: Record<string, string>;
  /** How a generated program was made: claims of twins on transformers and vLLM are measured. */
  family?: Family;
  /** Why the gain is not graded; missing if it is. */
  no_gain?: string;
  /** Whether the fault costs host time, so that kernel and copy times say nothing about the gain. */
  host?: boolean;
}

/** An entry of generated.json. */
export interface GeneratedProgram {
  id: string;
  half:
    | 'development'
    | 'earlier'
    | 'validation'
    | 'combined'
    | 'stock-development'
    | 'stock-earlier'
    | 'stock-validation'
    | 'stock-combined'
    | 'engine-validation'
    | 'engine-combined';
  stage: 'prefill' | 'decode';
  planted: string;
  /** For each planted cause, the rules that name it. */
  causes: string[][];
  host?: boolean;
  /** As in faults.json. */
  repaired_too?: string[];
  true_of_twin?: Record<string, string>;
  /** Public issue threads that report the fault. */
  issues?: string[];
}

/** How the programs of a half were made: from decoder.py, on transformers (stock), or on vLLM (engine). */
export type Family = 'decoder' | 'stock' | 'engine';
export const familyOf = (half: GeneratedProgram['half']): Family =>
  half.startsWith('stock') ? 'stock' : half.startsWith('engine') ? 'engine' : 'decoder';

export const plantedIn = ({
  id,
  half,
  stage,
  planted,
  causes,
  host,
  repaired_too,
  true_of_twin,
}: GeneratedProgram): PlantedFault => ({
  id,
  stage,
  planted,
  rules: causes[0]!,
  also: causes.slice(1),
  family: familyOf(half),
  ...(true_of_twin ? { true_of_twin } : {}),
  ...(host ? { host } : {}),
  ...(repaired_too ? { repaired_too } : {}),
});

/** A file written by capture.py's mode `time`. */
export interface Timing {
  fault: string;
  kind: string;
  /** Sequences or rows per stage if the variants differ; times are scaled to the fault's number. */
  per: Record<Variant, number>;
  pairs: Record<Variant, { wall_ms: number; device_ms: number }>[];
  /** Sums of one traced run, ms per stage. */
  device?: Record<Variant, { kernel_ms: number; copy_ms: number; kernels: number }>;
}
export type Variant = 'fault' | 'fixed';

export interface Row {
  id: string;
  /** Rank of the planted fault among the findings of its session, from 1; null if it is not named. */
  place: number | null;
  first: string | null;
  named: Finding | null;
  /** Hidden faults that are named, out of those planted. */
  hidden: { named: number; planted: number };
  /** Whether a step of the faulty program has a roofline, with no model or size given by a user. */
  roofline: boolean;
  /** Planted rules that still fire in the twin. */
  still_in_twin: string[];
  /** False findings of the twin. */
  false_alarms: string[];
  /** Findings of the twin that claim 5 % of a stage or more, which nobody measured. */
  not_measured: string[];
  claims: ClaimRow[];
  wall: Record<Variant, Median>;
  graded_on: 'wall' | 'gpu' | null;
  achieved_ms: number | null;
  expected_ms: number | null;
  /** (expected − achieved) / achieved. */
  error: number | null;
}

/** Stages that a model's sizes give a roofline. */
const stepKinds: ReadonlySet<string> = new Set(['prefill', 'decode', 'mixed']);

/** Maximum half-width of a gain's 95 % interval, relative to the gain, for comparing an expected gain with it. */
const gainKnown = 0.25;

const unique = (claims: readonly ClaimRow[]) => [...new Set(claims.map(({ rule }) => rule))];

/** A gain per token makes no stage shorter, so it promises no time. */
const promises = ({ severity, gain }: Finding) =>
  (severity === 'high' || severity === 'medium') &&
  gain !== null &&
  gain.per !== 'token' &&
  gain.expected_ms > 0;

/**
 * Whether a generated twin's device is idle without a profiler for at least half of what a finding about waits promises. Every program
 * waits for its last result, so the cause is known and only the time is measured.
 */
function isIdleEnough({ rule, gain }: Finding, timing: Timing | null): boolean {
  if (rule !== 'synchronization_every_step' || !timing?.device) return false;
  const { kernel_ms: kernels, copy_ms: copies } = timing.device.fixed;
  const wall = medianOf(timing.pairs.map(({ fixed }) => fixed.wall_ms)).median;
  return wall - kernels - copies >= 0.5 * gain!.expected_ms;
}

/** Compares the findings for a fault and its twin with the measured gain of the repair. */
export function grade(
  fault: PlantedFault,
  explained: Record<Variant, ExplainResult>,
  timing: Timing | null,
  measured: readonly MeasuredClaim[] = [],
): Row {
  const findings = explained.fault.findings.filter(({ severity }) => severity !== 'info');
  const also = fault.also ?? [];
  const causes = [fault.rules, ...also];
  const places = causes.map((rules) => findings.findIndex(({ rule }) => rules.includes(rule)));
  const found = places.filter((place) => place >= 0);
  const first = found.length === 0 ? -1 : Math.min(...found);
  const named = findings[first] ?? null;
  const twin = explained.fixed.findings.filter(({ severity }) => severity !== 'info');
  const planted = new Set(causes.flat());
  const still = twin.filter(
    (finding) =>
      planted.has(finding.rule) &&
      finding.severity !== 'low' &&
      (fault.stage === undefined || finding.stage === null || finding.stage === fault.stage),
  );
  const excused = fault.true_of_twin ?? {};
  const isMeasured = fault.family === 'stock' || fault.family === 'engine';
  const claims = isMeasured ? claimsOf(fault.id, explained.fixed, measured) : [];
  const alarms = isMeasured
    ? claims
        .filter(({ rule, stage }) => !still.some((one) => one.rule === rule && one.stage === stage))
        .filter((claim) => !isTrue(claims, claim))
    : [];
  const { wall, gain, graded_on } = achievedBy(timing, fault.host ?? false);
  // A hidden fault appears only after the first one is repaired, as in the twin, so their gains add up, unless one is part of the other.
  const gains = places.map((place) => {
    const finding = findings[place];
    const hider = places.map((other) => findings[other]).find((other) => other?.id === finding?.hidden_by);
    if (finding && hider && isPartOf(finding, hider)) return 0;
    const gain = finding?.gain;
    return gain?.per === 'token' ? gain.expected_ms * (timing?.per.fault ?? 1) : gain?.expected_ms;
  });
  const more = findings
    .filter(
      (finding) =>
        fault.repaired_too?.includes(finding.rule) &&
        finding !== named &&
        finding.stage === named?.stage &&
        finding.hidden_by === null,
    )
    .map(({ gain }) => gain?.expected_ms ?? 0);
  const expected = gains.every((one) => one !== undefined)
    ? [...gains, ...more].reduce((sum, one) => sum + one, 0)
    : null;
  const graded = fault.no_gain === undefined && gain !== null && expected !== null;
  return {
    id: fault.id,
    place: first < 0 ? null : first + 1,
    first: findings[0]?.rule ?? null,
    named,
    hidden: {
      planted: also.length,
      named: Math.max(0, found.length - 1),
    },
    roofline: explained.fault.stages.some(
      ({ kind, roofline_ms }) => stepKinds.has(kind) && roofline_ms.value !== null,
    ),
    still_in_twin: still.map(({ rule }) => rule),
    false_alarms: isMeasured
      ? unique(alarms.filter(({ outcome }) => outcome === 'false'))
      : twin
          .filter((finding) => promises(finding) && !(finding.rule in excused) && !still.includes(finding))
          .filter((finding) => !isIdleEnough(finding, timing))
          .map(({ rule }) => rule),
    not_measured: unique(alarms.filter(({ outcome }) => outcome === 'not measured')),
    claims,
    wall,
    graded_on: fault.no_gain === undefined ? graded_on : null,
    achieved_ms: fault.no_gain === undefined ? gain : null,
    expected_ms: expected,
    error: graded ? (expected - gain) / gain : null,
  };
}

function achievedBy(
  timing: Timing | null,
  host: boolean,
): {
  wall: Record<Variant, Median>;
  gain: number | null;
  graded_on: Row['graded_on'];
} {
  const none = { median: NaN, low: NaN, high: NaN };
  if (!timing) return { wall: { fault: none, fixed: none }, gain: null, graded_on: null };
  const scale = (variant: Variant) => timing.per.fault / timing.per[variant];
  const medianMs = (variant: Variant) =>
    medianOf(timing.pairs.map((pair) => pair[variant].wall_ms * scale(variant)));
  const wall = { fault: medianMs('fault'), fixed: medianMs('fixed') };
  // Both variants of a pair ran in immediate succession, so that a slow period of the machine affects both.
  const {
    median: gain,
    low,
    high,
  } = medianOf(timing.pairs.map(({ fault, fixed }) => fault.wall_ms - fixed.wall_ms * scale('fixed')));
  if (Math.max(high - gain, gain - low) <= gainKnown * Math.abs(gain))
    return { wall, gain, graded_on: 'wall' };
  if (!timing.device || host) return { wall, gain: null, graded_on: null };
  const device = (variant: Variant) =>
    (timing.device![variant].kernel_ms + timing.device![variant].copy_ms) * scale(variant);
  const deviceGain = device('fault') - device('fixed');
  // A repair that also changes what the host does, or a traced run that differs, shows here.
  if (deviceGain < low || deviceGain > high) return { wall, gain: null, graded_on: null };
  return { wall, gain: deviceGain, graded_on: 'gpu' };
}

export interface Score {
  faults: number;
  first: number;
  named: number;
  rooflines: number;
  free_twins: number;
  false_alarms: number;
  /** Twins with claims that nobody measured. */
  not_measured: number;
  hidden: { named: number; planted: number };
  graded: number;
  median_error: number | null;
  within_a_quarter: number;
}

export function scoreOf(rows: readonly Row[]): Score {
  const errors = rows.flatMap(({ error }) => (error === null ? [] : [Math.abs(error)]));
  const count = (holds: (row: Row) => boolean) => rows.filter(holds).length;
  return {
    faults: rows.length,
    first: count(({ place }) => place === 1),
    named: count(({ place }) => place !== null),
    rooflines: count(({ roofline }) => roofline),
    free_twins: count(({ still_in_twin }) => still_in_twin.length === 0),
    false_alarms: rows.reduce((sum, { false_alarms }) => sum + false_alarms.length, 0),
    not_measured: count(({ not_measured }) => not_measured.length > 0),
    hidden: {
      named: rows.reduce((sum, { hidden }) => sum + hidden.named, 0),
      planted: rows.reduce((sum, { hidden }) => sum + hidden.planted, 0),
    },
    graded: errors.length,
    median_error: errors.length === 0 ? null : medianOf(errors).median,
    within_a_quarter: errors.filter((error) => error <= 0.25).length,
  };
}

const ms = (value: number | null) =>
  value === null || Number.isNaN(value) ? '–' : value >= 100 ? value.toFixed(0) : value.toPrecision(3);
const percent = (value: number | null) =>
  value === null ? '–' : `${value > 0 ? '+' : ''}${(value * 100).toFixed(0)} %`;

/** The table of docs/reference/diagnosis-scores.md. */
export function tableOf(rows: readonly Row[]): string {
  const head = [
    'fault',
    'place',
    'first finding',
    'twin',
    'ms before',
    'ms after',
    'gain',
    'expected',
    'error',
  ];
  const lines = rows.map((row) => [
    row.id,
    row.place === null ? 'not named' : String(row.place),
    row.first ?? 'none',
    row.still_in_twin.length + row.false_alarms.length === 0
      ? 'free'
      : [
          ...row.still_in_twin.map((rule) => `still ${rule}`),
          ...row.false_alarms.map((rule) => `false ${rule}`),
        ].join(', '),
    ms(row.wall.fault.median),
    ms(row.wall.fixed.median),
    `${ms(row.achieved_ms)}${row.graded_on === 'gpu' ? ' (GPU)' : ''}`,
    ms(row.expected_ms),
    percent(row.error),
  ]);
  return textTable(head, lines);
}

export function sentenceOf(score: Score): string {
  const median = score.median_error === null ? '–' : `${(score.median_error * 100).toFixed(0)} %`;
  return (
    `First finding: ${score.first} of ${score.faults} (named at all: ${score.named}). ` +
    `Roofline known: ${score.rooflines}. ` +
    `Hidden faults named: ${score.hidden.named} of ${score.hidden.planted}. ` +
    `Twins free of their fault: ${score.free_twins} of ${score.faults}; false alarms over the twins: ${score.false_alarms}${score.not_measured > 0 ? ` (${score.not_measured} twins have claims that were not measured)` : ''}. ` +
    `Expected against achieved gain: median error ${median} over ${score.graded}, ${score.within_a_quarter} within 25 %.`
  );
}
