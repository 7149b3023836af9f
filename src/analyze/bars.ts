import type { Breakdown, StepBar } from '../model/documents/profile.js';
import { kernelParts } from './waterfall/split.js';

/** Of a stage, from which on the profiled pass and the clean one are not the same run. */
export const doubtfulUnattributed = 0.1;

/** Of the measured time that the bars leave unexplained, signed. */
export const unattributedShare = (bars: readonly { id: string; ms: number }[], measuredMs: number): number =>
  measuredMs > 0 ? (bars.find(({ id }) => id === 'unattributed')?.ms ?? 0) / measuredMs : 0;

export interface BarInput {
  /** W of the clean execution, ms. */
  measuredMs: number;
  /** The engine's call within W, clean, ms. */
  callMs: number;
  /** Sampling within W, clean, ms. */
  samplingMs: number;
  /** max(Σ F/P, Σ B/BW), ms. */
  rooflineMs: number;
  breakdown: Breakdown;
}

/**
 * From the roofline to the measured time (waterfall.md): kernels from the profiled execution, host time from the clean
 * one. What the profiler added to the call is taken out of the gaps between operators first, then out of those at the
 * edges; what neither can hold, because the profiled operators themselves took more or less than in the clean
 * execution, is `unattributed` and may be negative. The bars sum to measuredMs exactly.
 */
export function stepBars({ measuredMs, callMs, samplingMs, rooflineMs, breakdown }: BarInput): StepBar[] {
  let overheadMs = breakdown.stage_ms - callMs;
  const take = (gapMs: number) => {
    const taken = Math.min(gapMs, Math.max(0, overheadMs));
    overheadMs -= taken;
    return gapMs - taken;
  };
  const dispatchMs = take(breakdown.gaps_between_operators_ms);
  const edgesMs = take(breakdown.gaps_at_edges_ms);
  const classes = breakdown.by_class.map((row) => ({
    class: row.class,
    ms: row.ms,
    necessaryMs: row.necessary_ms,
  }));
  const bars: StepBar[] = [
    ...kernelParts(rooflineMs, classes).map((part): StepBar => ({
      ...part,
      confidence: part.id === 'roofline' || part.id === 'serial' ? 'low' : 'medium',
    })),
    { id: 'host.runtime_dispatch', ms: dispatchMs, confidence: 'medium' },
    { id: 'host.runtime_call', ms: edgesMs, confidence: 'medium' },
    { id: 'host.sampling', ms: samplingMs, confidence: 'high' },
    { id: 'host.loop', ms: measuredMs - callMs - samplingMs, confidence: 'high' },
  ];
  const shown = bars.filter((bar) => bar.ms !== 0);
  const unattributed = measuredMs - shown.reduce((sum, bar) => sum + bar.ms, 0);
  return [...shown, { id: 'unattributed', ms: unattributed, confidence: 'medium' }];
}
