import type { KernelCounters } from '../../model/documents/counters.js';
import type { WaterfallBar } from '../../model/documents/explain.js';
import { byKernelKey, kernelKey } from '../../model/kernel-name.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { analyzeCounters } from '../counters/counters.js';
import type { TraceScope } from '../trace/scope.js';

/** Time of those kernels of a class that ncu counted, split by cause. Times and counts are per mean instance, in ms. */
interface CountedClass {
  /** Exclusive time of the counted kernels. */
  ms: number;
  /** Time that their measured bytes and FLOPs take at the roofs. */
  atRoofMs: number;
  causes: WaterfallBar['parts'];
}

export type CountedClasses = ReadonlyMap<string, CountedClass>;

export const countedKey = (group: string, className: string): string => `${group} ${className}`;

interface KernelRow {
  grp: string;
  class: string;
  name: string;
  short_name: string | null;
  grid: string | null;
  instances: number;
  ns: number;
  n: number;
}

/**
 * Matches kernels of the timeline with ncu's by name, which the tools demangle differently, and by grid where recorded,
 * and sums the counters per class. Empty without counters.
 * @param roofs FLOP/s and B/s of the necessary times; null if unknown
 */
export async function countedClasses(
  session: Session,
  scope: TraceScope,
  roofs: { flops: number | null; bandwidth: number | null },
): Promise<CountedClasses> {
  const classesByStage = new Map<string, CountedClass>();
  if (!hasSubject(session.manifest, 'counters')) return classesByStage;
  const { kernels } = (await analyzeCounters(session)).data;
  if (kernels.length === 0) return classesByStage;
  const countedByKey = byKernelKey(kernels, ({ name }) => name);
  await scope.need('spans', 'members');
  const rows = await scope.database.query<KernelRow>(
    `WITH total AS (SELECT grp, count(*) AS instances FROM spans GROUP BY grp)
     SELECT grp, class, name, short_name, grid, instances, sum(ns)::DOUBLE AS ns, count(*) AS n FROM (
       SELECT grp, coalesce(k.class, 'other') AS class, name, short_name, grid, coalesce(exclusive_ns, 0) AS ns
       FROM (SELECT *, unnest(list_distinct([step_id, CASE WHEN phase = 'sampling' THEN phase_id END])) AS member FROM phase_kernels) k
       JOIN members m ON m.stage_id = k.member)
       JOIN total USING (grp) GROUP BY ALL`,
  );
  for (const row of rows) {
    const sameName =
      countedByKey.get(kernelKey(row.name)) ?? countedByKey.get(kernelKey(row.short_name ?? '')) ?? [];
    const counters = sameName.find(({ grid }) => grid === row.grid) ?? sameName[0];
    if (counters) addKernel(classesByStage, row, counters, roofs);
  }
  return classesByStage;
}

function addKernel(
  classes: Map<string, CountedClass>,
  row: KernelRow,
  counted: KernelCounters,
  { flops, bandwidth }: { flops: number | null; bandwidth: number | null },
): void {
  const key = countedKey(row.grp, row.class);
  const countedClass = classes.get(key) ?? { ms: 0, atRoofMs: 0, causes: [] };
  classes.set(key, countedClass);
  const ms = row.ns / row.instances / 1e6;
  const launches = row.n / row.instances;
  const { flop, dram_bytes } = counted.roofline;
  const seconds = Math.max(
    flops === null ? 0 : (flop.value ?? 0) / flops,
    bandwidth === null ? 0 : (dram_bytes.value ?? 0) / bandwidth,
  );
  const atRoofMs = Math.min(ms, seconds * 1e3 * launches);
  countedClass.ms += ms;
  countedClass.atRoofMs += atRoofMs;
  // Assigns the time above the roofline of the measured traffic to its causes in order: partial waves, occupancy, stalls.
  let remaining = ms - atRoofMs;
  const take = (label: string, amount: number) => {
    const partMs = Math.min(remaining, Math.max(0, amount));
    remaining -= partMs;
    if (partMs > 0) addCause(countedClass.causes, label, partMs, launches);
  };
  const waves = counted.waves.value;
  if (waves !== null && waves > 0)
    take('tail: the last wave of blocks is not full', ms * (1 - waves / Math.ceil(waves)));
  const { theoretical, limited_by } = counted.occupancy;
  if (theoretical.value !== null) {
    const by = limited_by.length > 0 ? `, by ${limited_by.join(', ')}` : '';
    take(`occupancy is limited${by}`, remaining * (1 - theoretical.value / 100));
  }
  const [stall] = counted.stalls;
  take(
    stall ? `stalls, mostly ${stall.reason}: ${stall.meaning}` : 'stalls (warp states not collected)',
    remaining,
  );
}

function addCause(causes: WaterfallBar['parts'], label: string, ms: number, count: number): void {
  const cause = causes.find((cause) => cause.label === label);
  if (!cause) causes.push({ label, ms, count });
  else {
    cause.ms += ms;
    cause.count = (cause.count ?? 0) + count;
  }
}

/** Minimum share of a class's time that ncu counted for the counters to describe the whole class. */
export const minCoveredShare = 0.8;

/**
 * Splits inefficiency.<class> by cause; the parts sum to the bar. Kernels without counters are one part. If the counted
 * kernels exceed the bar, parts are scaled in proportion.
 */
export function inefficiencyParts(
  counted: CountedClass,
  classMs: number,
  necessaryMs: number,
): WaterfallBar['parts'] {
  const barMs = classMs - necessaryMs;
  if (!(barMs > 0)) return [];
  const countedNecessaryMs = classMs > 0 ? necessaryMs * Math.min(1, counted.ms / classMs) : 0;
  const excess = {
    label: 'more bytes or FLOPs than needed',
    ms: counted.atRoofMs - countedNecessaryMs,
    count: null,
  };
  const parts = [excess, ...counted.causes.toSorted((a, b) => b.ms - a.ms)].filter(({ ms }) => ms > 0);
  const sumMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  if (sumMs > barMs) return parts.map((part) => ({ ...part, ms: (part.ms * barMs) / sumMs }));
  const uncountedMs = barMs - sumMs;
  return uncountedMs > 1e-3 * barMs
    ? [...parts, { label: 'kernels that ncu did not count', ms: uncountedMs, count: null }]
    : parts;
}
