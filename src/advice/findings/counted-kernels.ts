import { bareKernelName } from '../../model/kernel-name.js';
import type { CountersResult, KernelCounters } from '../../model/documents/counters.js';
import { headlineTime } from '../../model/headline-time.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { SessionDatabase } from '../../session/query.js';
import { literal } from '../../facts/trace/scope.js';
import type { FindingContext } from './rule.js';
import { aStage } from './words.js';

/** Shorter kernels take what any launch takes: nothing inside them is worth a change (ncu flushes caches: 5 µs there). */
export const leastKernelNs = 5000;
/** Of a stage, or of the profiled launches: below it a fault of a kernel is not worth a line. */
export const leastShare = 0.02;

export interface Saving {
  /** Shares of the kernel's time that the change removes, 0 to 1. */
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

/** Savings of kernels, carried to a stage of the timeline; stage null: over the profiled launches alone. */
export interface StageSaving {
  stage: PhaseKind | null;
  low_ms: number;
  expected_ms: number;
  high_ms: number;
  /** Of the stage, or all profiled launches together. */
  whole_ms: number;
  /** Time of the kernels themselves. */
  kernel_ms: number;
  kernels: CountedKernel[];
  /** Of these kernels, by the timeline. */
  classes: Set<string>;
}

interface PhaseTime {
  phase: PhaseKind;
  class: string;
  ns: number;
}

/**
 * What savings of single kernels are worth in each stage: their own time there, by the timeline, times the share. Without a
 * timeline, or where it does not hold these kernels, over the profiled launches. Only what is worth a line comes back.
 */
export async function savingsByStage(
  context: FindingContext,
  counters: CountersResult,
  kernels: readonly CountedKernel[],
): Promise<StageSaving[]> {
  const found = new Map<PhaseKind, StageSaving>();
  let placed = false;
  for (const kernel of kernels) {
    for (const { phase, class: className, ns } of await phaseTimes(context, kernel)) {
      placed = true;
      const waterfall = context.waterfalls.find(({ kind }) => kind === phase);
      const whole = waterfall && headlineTime(waterfall).value;
      if (!waterfall || !whole) continue;
      const own = found.get(phase) ?? nothing(phase, whole);
      found.set(phase, own);
      own.classes.add(className);
      add(own, kernel, ns / 1e6 / waterfall.instances);
    }
  }
  if (!placed) {
    const own = nothing(null, profiledMs(counters.kernels));
    for (const kernel of kernels) add(own, kernel, (kernel.duration_ns * kernel.launches) / 1e6);
    return worthALine([own]);
  }
  return worthALine([...found.values()]);
}

const nothing = (stage: PhaseKind | null, whole_ms: number): StageSaving => ({
  stage,
  low_ms: 0,
  expected_ms: 0,
  high_ms: 0,
  whole_ms,
  kernel_ms: 0,
  kernels: [],
  classes: new Set(),
});

/** No change inside a kernel makes it shorter than any launch is. */
function add(to: StageSaving, kernel: CountedKernel, ms: number): void {
  const most = Math.max(0, 1 - leastKernelNs / kernel.duration_ns);
  to.kernels.push(kernel);
  to.kernel_ms += ms;
  to.low_ms += ms * Math.min(kernel.saving.low, most);
  to.expected_ms += ms * Math.min(kernel.saving.expected, most);
  to.high_ms += ms * Math.min(kernel.saving.high, most);
}

function worthALine(all: StageSaving[]): StageSaving[] {
  return all
    .filter(({ expected_ms, whole_ms }) => expected_ms >= leastShare * whole_ms && expected_ms > 0)
    .toSorted((a, b) => b.expected_ms - a.expected_ms);
}

const profiledMs = (kernels: readonly KernelCounters[]) =>
  kernels.reduce((sum, { total_duration_ns: total }) => sum + (total.value ?? 0), 0) / 1e6;

/** Time of a kernel in each phase of the timeline: launches of the same grid, else of the name. */
async function phaseTimes(
  { scope, waterfalls }: FindingContext,
  kernel: CountedKernel,
): Promise<PhaseTime[]> {
  if (!scope || waterfalls.length === 0) return [];
  const named = `(name = ${literal(kernel.name)} OR short_name = ${literal(kernel.name)})`;
  const same = await inPhases(scope.database, `${named} AND grid = ${literal(kernel.grid)}`);
  return same.length > 0 ? same : inPhases(scope.database, named);
}

const inPhases = (database: SessionDatabase, condition: string) =>
  database.query<PhaseTime>(
    `SELECT phase, any_value(coalesce(class, 'other')) AS class, sum(exclusive_ns)::DOUBLE AS ns FROM focus_kernels WHERE ${condition} GROUP BY phase ORDER BY ns DESC`,
  );

/** Where the counters alone tell the stage, in words; for kernels that no timeline places. */
export const placeWords = ({ stage }: StageSaving): string =>
  stage === null ? 'the profiled launches' : aStage(stage);

/** A kernel's name as a line bears it. */
export const shortName = (name: string): string => {
  const plain = bareKernelName(name);
  return plain.length > 60 ? `${plain.slice(0, 59)}…` : plain;
};
