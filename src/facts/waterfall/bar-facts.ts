import { barParts, classOfBar, isCopyBar } from '../../model/bars.js';
import type { WaterfallBar } from '../../model/documents/explain.js';
import { type CountedClasses, countedKey, minCoveredShare, inefficiencyParts } from './counter-parts.js';
import type { CopyNeed } from './group-needs.js';
import type { HostSplit } from './host-split.js';
import type { NecessaryTime } from './necessary.js';
import type { MeasuredTime, Part } from './split.js';
import type { GroupSums } from './window-rows.js';
import { formatMs, formatPercent } from '../../vocabulary/format.js';
import { classLabel } from '../../vocabulary/op-classes.js';

/** Parts of a bar for each group of stages. */
export type PartsByGroup = Map<string, WaterfallBar['parts']>;

/** Number of kernels, copies or gaps behind a bar, per mean instance. */
export function countOf(id: string, { counts }: GroupSums): number | null {
  const { head, tail } = barParts(id);
  const opClass = classOfBar(id);
  if (opClass !== null) return counts.get(`class.${opClass}`) ?? 0;
  if (head === 'exposed_comm' && tail !== '' && tail !== 'wire') return null;
  if (head === 'exposed_comm') return counts.get('class.communication') ?? 0;
  if (['program', 'between_operators', 'framework'].includes(tail)) return counts.get('host') ?? null;
  return counts.get(id) ?? null;
}

/** Rows of a bar's query that come from arithmetic, not from recorded rows. */
export function constantsOf(
  id: string,
  { ms, rawMs, slowerMs, mean }: { ms: number; rawMs: number; slowerMs: number; mean: MeasuredTime },
): { label: string; ms: number }[] {
  const { head, tail } = barParts(id);
  const parts: { label: string; ms: number }[] = [];
  const add = (label: string, value: number) => {
    if (Math.abs(value) > 1e-9) parts.push({ label, ms: value });
  };
  if (head === 'inefficiency' || head === 'nonessential') {
    const measuredMs = (mean.classes as Map<string, number>).get(tail) ?? 0;
    add('(roofline limit, model arithmetic)', rawMs - measuredMs);
  }
  if (head === 'exposed_copy') {
    add('(roofline limit of the link)', rawMs - (mean.copies.get(tail) ?? 0));
  }
  if (head === 'host' && tail !== 'loading_code') {
    const loading = mean.idle.host.get('loading_code') ?? 0;
    if (tail === 'program' || tail === 'between_operators') add('(in host.loading_code)', -loading);
  }
  if (head === 'unattributed') add('(not covered by intervals)', rawMs - mean.idle.unattributed);
  const differenceLabel =
    head === 'unattributed' ? '(clean execution minus the bars)' : '(removed: profiler overhead)';
  add('(the clean execution is slower)', slowerMs);
  add(differenceLabel, ms - rawMs - slowerMs);
  return parts;
}

/** Explains a bar that is computed, and why a bar is negative. */
export function noteOf(
  id: string,
  ms: number,
  {
    sums: { mean, group, earlier },
    raw,
    parts,
    need,
    throttledShare,
  }: {
    sums: GroupSums;
    /** Parts that still contain profiler overhead. */
    raw: readonly Part[];
    parts: readonly Part[];
    need: NecessaryTime | CopyNeed | null;
    /** Share of the data sheet's peak that was measured for the model's dtype; null if clocks were not throttled then. */
    throttledShare: number | null;
  },
): string | null {
  const { head, tail } = barParts(id);
  const needsLink = need !== null && 'link' in need;
  if (id === 'roofline') return rooflineNote(group.kind, needsLink);
  if (id === 'device_dependency' && earlier.size > 0) {
    const hiddenMs = [...earlier.values()].reduce((sum, value) => sum + value, 0);
    return `for ${formatMs(hiddenMs)} of it the device still ran kernels launched before the stage`;
  }
  if (needsLink && isCopyBar(id, 'htod')) {
    const exposedMs = mean.copies.get(tail) ?? 0;
    return ms < 0
      ? `${formatMs(exposedMs)} of copies are exposed, less than the link needs: others overlap with kernels, or the link is faster than assumed`
      : `${formatMs(exposedMs)} measured minus the roofline: slower than the link allows`;
  }
  if (id === 'serial') {
    return 'Σ over operations of max(FLOPs / peak, bytes / bandwidth), minus the roofline: cost of serial operations';
  }
  if (id === 'profiler_overhead') return profilerNote;
  const cleanNote = id === 'unattributed' ? cleanTimeNote(raw, parts) : null;
  if (cleanNote !== null) return cleanNote;
  // Sums differ by rounding.
  if (ms > -1e-6) return null;
  if (head === 'inefficiency') {
    const measuredMs = (mean.classes as Map<string, number>).get(tail) ?? 0;
    if (measuredMs === 0) return 'no kernel of this class: its work is in kernels of other classes (fused)';
    // At the data sheet's peak the limit would be shorter by this share at most.
    if (throttledShare !== null && measuredMs >= throttledShare * (measuredMs - ms))
      return 'faster than its roofline limit: clocks were throttled when the peak was measured';
    return 'faster than its roofline limit: data came from a cache, or model, dtype, sizes or peaks do not match the run';
  }
  if (head === 'unattributed')
    return `activities cut by the window's edges count in proportion: the other bars are ${formatMs(Math.abs(ms))} longer than the stage`;
  if (head === 'serial')
    return 'serial operations take less than the roofline of the whole: an assumption does not hold';
  return 'negative: an assumption does not hold';
}

export const profilerNote =
  'mean under the profiler minus mean of the clean execution; removed from host and launch bars first';

/** Explains a part of `unattributed` that only makes the bars sum to the clean time; null if almost none. */
export function cleanTimeNote(raw: readonly Part[], parts: readonly Part[]): string | null {
  const unattributedMs = (list: readonly Part[]) => list.find(({ id }) => id === 'unattributed')?.ms ?? 0;
  const ms = unattributedMs(parts) - unattributedMs(raw);
  if (Math.abs(ms) < 1e-6) return null;
  return ms < 0
    ? 'without the profiler the stage was shorter by more than its host time; the other bars are as long as under it'
    : 'the clean execution took longer than the one under the profiler';
}

function rooflineNote(kind: GroupSums['group']['kind'], needsLink: boolean): string {
  if (needsLink) return 'bytes from the host, once over the link; disk time is not known';
  switch (kind) {
    case 'request':
      return 'Σ over its steps of max(Σ FLOPs / peak, Σ bytes / bandwidth): a step waits for the token of the previous one';
    case 'warmup':
      return 'Σ over the steps marked inside of max(Σ FLOPs / peak, Σ bytes / bandwidth)';
    case 'sampling':
      return 'logits read once, token id written: bytes / bandwidth';
    default:
      return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  }
}

/** Parts of an inefficiency bar by hardware counters, with high confidence if ncu counted most of the class. */
export function splitByCounters(
  id: string,
  {
    counters: counterFacts,
    key,
    mean,
    ms,
  }: { counters: CountedClasses; key: string; ms: number } & Pick<GroupSums, 'mean'>,
): Partial<Pick<WaterfallBar, 'parts' | 'confidence' | 'confidence_why' | 'better_capture'>> {
  const { head, tail } = barParts(id);
  const counters = counterFacts.get(countedKey(key, tail));
  const classMs = (mean.classes as Map<string, number>).get(tail) ?? 0;
  if (head !== 'inefficiency' || !counters || !(ms > 0)) return {};
  const parts = inefficiencyParts(counters, classMs, classMs - ms);
  const share = classMs > 0 ? counters.ms / classMs : 0;
  if (share < minCoveredShare) return { parts };
  return {
    parts,
    confidence: 'high',
    confidence_why: `counters of ncu for ${formatPercent(Math.min(1, share))} of its time`,
    better_capture: null,
  };
}

/** The largest known parts of a bar. */
export function partsOf(
  id: string,
  {
    host,
    waits,
    unknown,
    sums,
    ms,
  }: { host: HostSplit; waits: PartsByGroup; unknown: PartsByGroup; sums: GroupSums; ms: number },
): WaterfallBar['parts'] {
  const { key, level } = sums.group;
  if (ms <= 0) return [];
  if (id === 'device_dependency') {
    return [...sums.earlier]
      .toSorted((a, b) => b[1] - a[1])
      .map(([name, earlierMs]) => ({
        label: `${classLabel(name)} of earlier stages`,
        ms: earlierMs,
        count: null,
      }));
  }
  if (level === 'inner') return [];
  if (classOfBar(id) === 'other') return unknown.get(key) ?? [];
  if (id === 'synchronization') return waits.get(key) ?? [];
  if (id === 'host.framework') return host.insideParts.get(key) ?? [];
  const split = host.framework === null ? 'host.program' : 'host.between_operators';
  return id === split ? (host.parts.get(key) ?? []) : [];
}
