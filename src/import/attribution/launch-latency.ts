import type { Waiting } from './waiting.js';

/**
 * Usual time from the return of a launch call to the start of the kernel, measured in this capture: the 90th percentile
 * over launches on an idle device, capped at twice their median so that launches that wait for another stream's event do
 * not count. Idle time beyond it is a dependency.
 */
interface LatencyEstimate {
  latencyNs: number;
  /** 0: no launches were recorded and the value is assumed. */
  launches: number;
}

/** Used when the capture has no launch on an idle device: above the 24 captures of test/fixtures that have some, 0.3 to 4.8 µs. */
const assumedLatencyNs = 5000;

const binNs = 64;
const bins = 4096;

/** A histogram up to 262 µs with 64 ns bins, finer than the 1 µs at which gaps matter; constant memory. */
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
        let n = 0;
        for (let bin = 0; bin < bins; bin++) {
          n += counts[bin]!;
          if (n >= share * launches) return (bin + 1) * binNs;
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

/** Collects the idle intervals of all devices. */
export interface GapSamples {
  /**
   * Adds the interval [fromNs, toNs] before an activity.
   * @param inGraph between nodes of one graph
   * @param waiting waiting time of the thread that launched the activity with a call from calledNs to returnedNs (NaN: that call was not recorded)
   * @returns how much of the time before that call the thread waited
   */
  addGap(
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
    addGap(inGraph, isKernel, calledNs, returnedNs, waiting, fromNs, toNs) {
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
