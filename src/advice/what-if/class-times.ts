import { isBarOf, isKernelBar, classOfBar } from '../../model/bars.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import { type NecessaryTime, necessaryOf } from '../../facts/waterfall/necessary.js';
import { withHostLimit } from './host-limit.js';
import { type Effect, type StageNeeds, type StageState, sumOf } from './stage-state.js';
import { formatMs } from '../../vocabulary/format.js';

/**
 * Latency of a kernel independent of its bytes: first loads, dependencies, last stores. Norms, attention and argmax of one
 * sequence take 2 to 11 µs each on an H200 and little more for many (test/fixtures/diagnosis, small_batch_decode); expected,
 * min and max.
 */
const latencyMs = { expected: 12e-3, min: 6e-3, max: 25e-3 };
/** The same for kernels with unknown bytes (layout copies and casts): their time above a launch may be data movement. */
const unknownLatencyMs = { expected: 2.5e-3, min: 1.5e-3, max: 12e-3 };
/** A copy of a few bytes (H200: 1.2 to 2 µs). */
const copyLatencyMs = 2e-3;
/** Relative difference of the mean size's roofline from the mean of the steps' rooflines: above it, bars cannot be split. */
const maxNeedDifference = 0.05;
/** By how much the reached share of the roof may change with shapes or dtypes: about half the range of `reachedShare`. */
const efficiencyError = 0.2;
/** Share of the roof that a kernel with enough work reaches: 0.62 to 0.99 of the measured roofs in 13 stages (test/fixtures/diagnosis). */
export const reachedShare = 0.7;

export interface Scaling {
  after: StageNeeds;
  /** Factor for classes without necessary work, which take `ms`: their bytes grow or shrink by it. */
  otherFactor: (name: string, ms: number) => number;
  /** Measured factors for classes with necessary work. */
  measuredFactors?: ReadonlyMap<string, number> | undefined;
  /** Factor for copies between host and device. */
  copies?: number;
  explain: (name: string, factor: number) => string;
  /** The peaks of the new roofline in words; default: those of the session. */
  peaks?: string;
  assumptions: string[];
}

export const noKernelTimes = missing(
  'no_kernel_times',
  'its kernels were not timed separately, so it is not known what would get longer or shorter',
);

/**
 * Kernel time for different work: per class the kernels' latency stays, and the rest scales with the necessary time at the
 * reached share of the roof.
 */
export function scaleKernels(state: StageState, scaling: Scaling): Effect | MissingFigure {
  const { needs } = state;
  if ('reason' in needs) return needs;
  const before = necessaryOf(needs.model, needs.shape, needs.peaks);
  if ('reason' in before) return before;
  const measuredRoofline = state.bars.get('roofline') ?? before.rooflineMs;
  if (Math.abs(before.rooflineMs - measuredRoofline) > maxNeedDifference * measuredRoofline) {
    return missing('steps_differ', "the stage's steps differ: no single size explains its roofline");
  }
  const after = necessaryOf(scaling.after.model, scaling.after.shape, scaling.after.peaks);
  if ('reason' in after) return after;
  const times = classTimes(state, before);
  if (times.size === 0) return noKernelTimes;
  const next = new Map<string, number>();
  const explanations = new Map<string, string>();
  let lessMs = 0;
  let moreMs = 0;
  for (const [id, ms] of state.bars) {
    if (isKernelBar(id)) continue;
    const latency = isBarOf(id, 'exposed_copy')
      ? Math.min(ms, (state.kernelCounts.get(id) ?? 0) * copyLatencyMs)
      : ms;
    next.set(id, latency + (ms - latency) * (scaling.copies ?? 1));
    if (next.get(id) !== ms) explanations.set(id, scaling.explain('copies', scaling.copies!));
  }
  const bars = new Map<string, number>([
    ['roofline', after.rooflineMs],
    ['serial', serialOf(after, times)],
  ]);
  for (const [name, ms] of times) {
    const [from, to] = [needOf(name, before, times), needOf(name, after, times)];
    const factor =
      scaling.measuredFactors?.get(name) ?? (from && to ? to / from : scaling.otherFactor(name, ms));
    const count = state.onCpu ? 0 : (state.kernelCounts.get(name) ?? 0);
    const aboveNeed = Math.max(0, ms - (from ?? 0) / reachedShare);
    const withLatency = (latency: number): number => {
      const latencyPart = Math.min(aboveNeed, count * latency);
      return latencyPart + (ms - latencyPart) * factor;
    };
    const { expected, min, max } = from === null ? unknownLatencyMs : latencyMs;
    const scaled = withLatency(expected);
    const bounds = [scaled, withLatency(min), withLatency(max)];
    // Different work reaches a different share of the roof.
    const otherError = Math.abs(factor - 1) > 0.01 ? efficiencyError * scaled : 0;
    lessMs += scaled - Math.min(...bounds) + otherError;
    moreMs += Math.max(...bounds) - scaled + otherError;
    const id = to === null ? `nonessential.${name}` : `inefficiency.${name}`;
    bars.set(id, scaled - (to ?? 0));
    // A class that the change leaves as it is needs no explanation.
    if (Math.abs(factor - 1) >= 0.005) explanations.set(id, scaling.explain(name, factor));
  }
  // Profiler overhead is a share of the operators' time.
  const slower = next.get('unattributed') ?? 0;
  if (state.onCpu && slower < 0) next.set('unattributed', slower * (sumOf(bars) / kernelMs(state.bars)));
  explanations.set('roofline', `necessary work over the ${scaling.peaks ?? 'peaks'}`);
  explanations.set('serial', 'necessary work, one operation after another');
  for (const [id, ms] of next) bars.set(id, ms);
  const moved = withHostLimit(state, bars);
  return {
    state: { ...moved, needs: scaling.after },
    explanations,
    ...errorsOf(moved, lessMs, moreMs),
    assumptions: [
      ...scaling.assumptions,
      state.onCpu
        ? 'every operator class scales with its roofline limit, at the share of it that was reached'
        : `what a kernel takes above its roofline is latency, which stays, up to ${formatMs(latencyMs.expected)} per kernel (${formatMs(latencyMs.min)} to ${formatMs(latencyMs.max)} for the interval); the rest grows or shrinks with the roofline of its class`,
    ],
  };
}

/** Shorter kernels do not shorten host time; longer kernels fill idle time first. */
const errorsOf = (
  { bars, hostMs, launchIdleMs }: StageState,
  lessMs: number,
  moreMs: number,
): Pick<Effect, 'lessMs' | 'moreMs'> => ({
  lessMs: hostMs === null ? lessMs : Math.min(lessMs, Math.max(0, sumOf(bars) - hostMs)),
  moreMs: Math.max(0, moreMs - launchIdleMs),
});

const kernelMs = (bars: ReadonlyMap<string, number>): number =>
  [...bars].reduce((sum, [id, ms]) => sum + (isKernelBar(id) ? ms : 0), 0);

/** The same times with other peaks: kernel bars are time above the need, so all of them change, but not their sum. */
export function rebase(state: StageState, needs: StageNeeds): StageState | MissingFigure {
  if ('reason' in state.needs) return state.needs;
  const from = necessaryOf(state.needs.model, state.needs.shape, state.needs.peaks);
  if ('reason' in from) return from;
  const to = necessaryOf(needs.model, needs.shape, needs.peaks);
  if ('reason' in to) return to;
  const times = classTimes(state, from);
  const bars = new Map<string, number>([
    ['roofline', to.rooflineMs],
    ['serial', serialOf(to, times)],
  ]);
  for (const [name, ms] of times) {
    const need = needOf(name, to, times);
    bars.set(`${need === null ? 'nonessential' : 'inefficiency'}.${name}`, ms - (need ?? 0));
  }
  for (const [id, ms] of state.bars) if (!isKernelBar(id)) bars.set(id, ms);
  return { ...state, bars, needs };
}

/** Measured time by class: bars are time above the need, so the need is added back. */
function classTimes({ bars }: StageState, before: NecessaryTime): Map<string, number> {
  const names = new Set([...bars.keys()].flatMap((id) => classOfBar(id) ?? []));
  const times = new Map<string, number>();
  for (const [id, ms] of bars) {
    const name = classOfBar(id);
    if (name === null) continue;
    const need = isBarOf(id, 'inefficiency') ? (needOf(name, before, names) ?? 0) : 0;
    times.set(name, (times.get(name) ?? 0) + Math.max(0, ms + need));
  }
  return times;
}

/** A graph traced as one row, or all kernels of a benchmark, has the need of all classes without their own bar, except sampling. */
function needOf(name: string, need: NecessaryTime, names: { has(name: string): boolean }): number | null {
  if (name !== 'graph' && name !== 'kernels') return need.byClass.get(name as never) ?? null;
  return [...need.byClass].reduce(
    (sum, [opClass, ms]) => sum + (opClass === 'sampling' || names.has(opClass) ? 0 : ms),
    0,
  );
}

function serialOf(after: NecessaryTime, times: ReadonlyMap<string, number>): number {
  const oneByOne = [...times.keys()].reduce((sum, name) => sum + (needOf(name, after, times) ?? 0), 0);
  return oneByOne - after.rooflineMs;
}
