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
export interface LatencySamples {
  add(ns: number): void;
  estimate(): LatencyEstimate;
}

export function latencySamples(): LatencySamples {
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
