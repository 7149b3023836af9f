import { byKernelKey, kernelKey } from '../../model/kernel-name.js';
import type { CountersResult, KernelCounters } from '../../model/documents/counters.js';
import { headlineTime } from '../../model/headline-time.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { literal } from '../../facts/trace/scope.js';
import { stepPhase } from '../../facts/trace/step-places.js';
import type { FindingContext } from './rule.js';
import { instanceWord } from './words.js';

/** Shorter kernels are dominated by launch cost, so a change inside them saves nothing (5 µs under ncu, which flushes caches). */
export const minKernelNs = 5000;
/** Share of a stage, or of the profiled launches, below which a problem is not reported. */
const minShare = 0.02;

export interface Saving {
  /** Share of the kernel's time that the change removes, 0 to 1. */
  low: number;
  expected: number;
  high: number;
}

export interface CountedKernel {
  name: string;
  grid: string | null;
  launches: number;
  /** Mean under ncu. */
  duration_ns: number;
  saving: Saving;
}

/** Savings of kernels, applied to a stage of the timeline; stage null: over the profiled launches only. */
export interface StageSaving {
  stage: PhaseKind | null;
  low_ms: number;
  expected_ms: number;
  high_ms: number;
  /** Time of the stage, or of all profiled launches. */
  total_ms: number;
  /** Time of the kernels. */
  kernel_ms: number;
  kernels: CountedKernel[];
  /** Classes of these kernels in the timeline. */
  classes: Set<string>;
}

interface PhaseTime {
  phase: PhaseKind;
  class: string;
  ns: number;
}

/**
 * Savings per stage: the kernels' time in that stage (from the timeline) times the saved share. Without a timeline, or if it lacks
 * these kernels, over the profiled launches. Returns only savings above the reporting threshold.
 */
export async function savingsByStage(
  context: FindingContext,
  counters: CountersResult,
  kernels: readonly CountedKernel[],
): Promise<StageSaving[]> {
  const savings = new Map<PhaseKind, StageSaving>();
  const namesOf = await timelineNames(context);
  let isInTimeline = false;
  for (const kernel of kernels) {
    for (const { phase, class: className, ns } of await phaseTimes(context, kernel, namesOf(kernel.name))) {
      isInTimeline = true;
      const waterfall = context.waterfalls.find(({ kind }) => kind === phase);
      const stageMs = waterfall && headlineTime(waterfall).value;
      if (!waterfall || !stageMs) continue;
      const phaseSaving = savings.get(phase) ?? emptySaving(phase, stageMs);
      savings.set(phase, phaseSaving);
      phaseSaving.classes.add(className);
      addKernel(phaseSaving, kernel, ns / 1e6 / waterfall.instances);
    }
  }
  if (!isInTimeline) {
    const totalSaving = emptySaving(null, profiledMs(counters.kernels));
    for (const kernel of kernels)
      addKernel(totalSaving, kernel, (kernel.duration_ns * kernel.launches) / 1e6);
    return worthReporting([totalSaving]);
  }
  return worthReporting([...savings.values()]);
}

const emptySaving = (stage: PhaseKind | null, total_ms: number): StageSaving => ({
  stage,
  low_ms: 0,
  expected_ms: 0,
  high_ms: 0,
  total_ms,
  kernel_ms: 0,
  kernels: [],
  classes: new Set(),
});

/** A change inside a kernel cannot make it shorter than an empty launch. */
function addKernel(saving: StageSaving, kernel: CountedKernel, ms: number): void {
  const maxShare = Math.max(0, 1 - minKernelNs / kernel.duration_ns);
  saving.kernels.push(kernel);
  saving.kernel_ms += ms;
  saving.low_ms += ms * Math.min(kernel.saving.low, maxShare);
  saving.expected_ms += ms * Math.min(kernel.saving.expected, maxShare);
  saving.high_ms += ms * Math.min(kernel.saving.high, maxShare);
}

function worthReporting(all: StageSaving[]): StageSaving[] {
  return all
    .filter(({ expected_ms, total_ms }) => expected_ms >= minShare * total_ms && expected_ms > 0)
    .toSorted((a, b) => b.expected_ms - a.expected_ms);
}

const profiledMs = (kernels: readonly KernelCounters[]) =>
  kernels.reduce((sum, { total_duration_ns: total }) => sum + (total.value ?? 0), 0) / 1e6;

/** The timeline's names of a kernel of ncu: the tools demangle differently. */
async function timelineNames({ scope, waterfalls }: FindingContext): Promise<(name: string) => string[]> {
  if (!scope || waterfalls.length === 0) return () => [];
  const rows = await scope.database.query<{ name: string; short_name: string | null }>(
    'SELECT DISTINCT name, short_name FROM phase_kernels',
  );
  const byName = byKernelKey(rows, ({ name }) => name);
  const byShortName = byKernelKey(rows, ({ short_name }) => short_name ?? '');
  return (name) => {
    const key = kernelKey(name);
    return (byName.get(key) ?? byShortName.get(key) ?? []).map((row) => row.name);
  };
}

/** Time of a kernel in each phase of the timeline: launches with the same grid, else with the same name. */
async function phaseTimes(
  { scope }: FindingContext,
  kernel: CountedKernel,
  names: readonly string[],
): Promise<PhaseTime[]> {
  if (!scope || names.length === 0) return [];
  const nameCondition = `name IN (${names.map(literal).join(', ')})`;
  const withSameGrid = await readPhaseTimes(
    scope.database,
    `${nameCondition} AND grid = ${literal(kernel.grid)}`,
  );
  return withSameGrid.length > 0 ? withSameGrid : readPhaseTimes(scope.database, nameCondition);
}

const readPhaseTimes = (database: SessionDatabase, condition: string) =>
  database.query<PhaseTime>(
    `SELECT ${stepPhase} AS phase, any_value(coalesce(class, 'other')) AS class, sum(exclusive_ns)::DOUBLE AS ns FROM phase_kernels WHERE ${condition} GROUP BY 1 ORDER BY ns DESC`,
  );

/** The stage in words, for kernels that are not in a timeline. */
export const placeWords = ({ stage }: StageSaving): string =>
  stage === null ? 'the time of the profiled launches' : instanceWord(stage);
