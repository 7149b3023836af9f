import type { Waiting } from './waiting.js';

/**
 * How long a device needs from a launch call's return to the kernel's begin, as this capture shows it: the 90th
 * percentile of launches onto an idle device, and at most twice their median, so that launches that wait for another
 * stream's event do not count. What a gap holds beyond it is a dependency.
 */
export interface LatencyEstimate {
  latencyNs: number;
  /** 0: nothing was seen, the value is assumed. */
  launches: number;
}

/** Without an idle launch in the capture: the few microseconds that every recent device stays below. */
export const assumedLatencyNs = 5000;

const binNs = 64;
const bins = 4096;

/** A histogram up to 262 µs in steps of 64 ns, less than the 1 µs at which gaps matter: flat in memory. */
interface LatencySamples {
  add(ns: number): void;
  estimate(): LatencyEstimate;
}

function latencySamples(): LatencySamples {
  const counts = new Float64Array(bins);
  let launches = 0;
  return {
    add(ns) {
      counts[Math.min(bins - 1, Math.max(0, Math.floor(ns / binNs)))]!++;
      launches++;
    },
    estimate() {
      if (launches === 0) return { latencyNs: assumedLatencyNs, launches };
      const percentile = (share: number) => {
        let seen = 0;
        for (let bin = 0; bin < bins; bin++) {
          seen += counts[bin]!;
          if (seen >= share * launches) return (bin + 1) * binNs;
        }
        return bins * binNs;
      };
      return { latencyNs: Math.min(percentile(0.9), 2 * percentile(0.5)), launches };
    },
  };
}

/** Usual latencies of a launch and between the nodes of one CUDA graph. */
export interface GapLatency {
  launch: LatencyEstimate;
  graphNode: LatencyEstimate;
}

/** What the idle intervals of all devices say. */
export interface GapSamples {
  /**
   * Takes the interval [fromNs, toNs] before an activity.
   * @param inGraph between nodes of one graph
   * @param waiting of the thread that launched the activity, by a call from calledNs to returnedNs (NaN: an orphan)
   * @returns for how much of the time before that call the thread waited
   */
  take(
    inGraph: boolean,
    isKernel: boolean,
    calledNs: number,
    returnedNs: number,
    waiting: Waiting | undefined,
    fromNs: number,
    toNs: number,
  ): number;
  estimate(): GapLatency;
}

export function gapSamples(): GapSamples {
  const launch = latencySamples();
  const graphNode = latencySamples();
  return {
    take(inGraph, isKernel, calledNs, returnedNs, waiting, fromNs, toNs) {
      if (inGraph) {
        graphNode.add(toNs - fromNs);
        return 0;
      }
      if (isKernel && calledNs >= fromNs && returnedNs <= toNs) launch.add(toNs - returnedNs);
      return calledNs > fromNs ? (waiting?.within(fromNs, Math.min(calledNs, toNs)) ?? 0) : 0;
    },
    estimate: () => ({ launch: launch.estimate(), graphNode: graphNode.estimate() }),
  };
}
