import type { MissingFigure } from '../../model/figure.js';
import { type Necessary, necessaryOf } from '../waterfall/necessary.js';
import { withHostLimit } from './host-limit.js';
import { classOfBar, type Effect, isKernelBar, type StageNeeds, type StageState } from './stage-state.js';

/**
 * What a kernel costs whatever it moves: launch within the device, first bytes, last stores. A kernel that adds two numbers
 * takes 1.0 to 1.5 µs on an H200 (docs/gpu-tour.md, medians of elementwise kernels at batch 1).
 */
export const fixedKernelMs = 1.2e-3;

export interface Scaling {
  after: StageNeeds;
  /** Factor for classes without necessary work: their bytes grow or shrink by it. */
  other: (name: string) => number;
  /** Factor for copies between host and device. */
  copies?: number;
  how: (name: string, factor: number) => string;
  assumptions: string[];
}

/**
 * Kernel time under other work: of each class a fixed part a kernel stays, the rest grows as its necessary time does.
 * The error: as if no part, or all of it, were fixed.
 */
export function scaledKernels(state: StageState, scaling: Scaling): Effect | MissingFigure {
  const { needs } = state;
  if ('reason' in needs) return needs;
  const before = necessaryOf(needs.model, needs.shape, needs.peaks);
  if ('reason' in before) return before;
  const after = necessaryOf(scaling.after.model, scaling.after.shape, scaling.after.peaks);
  if ('reason' in after) return after;
  // Operators of a CPU start within the runtime: that is a bar of its own.
  const fixedMs = state.onCpu ? 0 : fixedKernelMs;
  const times = classTimes(state, before);
  const next = new Map<string, number>();
  const how = new Map<string, string>();
  let lessMs = 0;
  let moreMs = 0;
  for (const [id, ms] of state.bars) {
    if (isKernelBar(id)) continue;
    next.set(id, id.startsWith('exposed_copy.') ? ms * (scaling.copies ?? 1) : ms);
    if (next.get(id) !== ms) how.set(id, scaling.how('copies', scaling.copies!));
  }
  const bars = new Map<string, number>([
    ['roofline', after.rooflineMs],
    ['serial', serialOf(after, times)],
  ]);
  for (const [name, ms] of times) {
    const [from, to] = [needOf(name, before, times), needOf(name, after, times)];
    const factor = from && to ? to / from : scaling.other(name);
    const fixed = Math.min(ms, (state.kernelCounts.get(name) ?? 0) * fixedMs);
    const scaled = fixed + (ms - fixed) * factor;
    const bounds = [scaled, ms * factor, additive(ms, from, to) ?? scaled];
    lessMs += scaled - Math.min(...bounds);
    moreMs += Math.max(...bounds) - scaled;
    const id = to === null ? `nonessential.${name}` : `inefficiency.${name}`;
    bars.set(id, scaled - (to ?? 0));
    how.set(id, scaling.how(name, factor));
  }
  how.set('roofline', 'necessary work over the peaks');
  how.set('serial', 'necessary work, one operation after another');
  for (const [id, ms] of next) bars.set(id, ms);
  const moved = withHostLimit(state, bars);
  return {
    state: { ...moved, needs: scaling.after },
    how,
    lessMs,
    moreMs,
    assumptions: [
      ...scaling.assumptions,
      `${fixedMs > 0 ? `of every kernel ${(fixedMs * 1e3).toFixed(1)} µs stay whatever it moves; the rest` : 'every operator'} follows its class's necessary time, at the share of it that was reached`,
    ],
  };
}

/** Measured time by class: bars are what is over the need, so the need is put back. */
function classTimes({ bars }: StageState, before: Necessary): Map<string, number> {
  const names = new Set([...bars.keys()].flatMap((id) => classOfBar(id) ?? []));
  const times = new Map<string, number>();
  for (const [id, ms] of bars) {
    const name = classOfBar(id);
    if (name === null) continue;
    const need = id.startsWith('inefficiency') ? (needOf(name, before, names) ?? 0) : 0;
    times.set(name, (times.get(name) ?? 0) + Math.max(0, ms + need));
  }
  return times;
}

/** A graph traced as one row, or all kernels of a benchmark, carry the need of all classes that have no bar of their own. */
function needOf(name: string, need: Necessary, names: { has(name: string): boolean }): number | null {
  if (name !== 'graph' && name !== 'kernels') return need.byClass.get(name as never) ?? null;
  return [...need.byClass].reduce(
    (sum, [own, ms]) => sum + (own === 'sampling' || names.has(own) ? 0 : ms),
    0,
  );
}

function serialOf(after: Necessary, times: ReadonlyMap<string, number>): number {
  const oneByOne = [...times.keys()].reduce((sum, name) => sum + (needOf(name, after, times) ?? 0), 0);
  return oneByOne - after.rooflineMs;
}

/** As if all that the class takes beyond its need were fixed. */
function additive(ms: number, from: number | null, to: number | null): number | null {
  return from === null || to === null ? null : Math.max(to, ms + to - from);
}
