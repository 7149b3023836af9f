import type { GapLatency } from './launch-latency.js';

/** Idle intervals, with start and end of the API call that launched the activity after each; NaN: an orphan. */
export interface GapTimes {
  start_ns: Float64Array;
  dur_ns: Float64Array;
  called_ns: Float64Array;
  returned_ns: Float64Array;
  /** Part of the time before the call that its thread spent in synchronizing calls. */
  waiting_ns: Float64Array;
  /** 1: between nodes of one CUDA graph; the launch call has already returned, so the host has no influence. */
  in_graph: Float64Array | Uint8Array;
}

/**
 * Splits the first `rows` gaps into their parts. All times are integers, so the parts sum to the gap exactly.
 * @param latency usual launch latencies: time after the call's return counts as launch latency up to the usual one, the rest as a dependency
 * @param parts filled, in the order of gapParts
 * @param cause filled with the largest part as an index into gapParts; of equal ones the earlier
 */
export function splitGaps(
  rows: number,
  gaps: GapTimes,
  latency: GapLatency,
  parts: readonly Float64Array[],
  cause: Float64Array,
): void {
  for (let i = 0; i < rows; i++) {
    const gapStart = gaps.start_ns[i]!;
    const gapEnd = gapStart + gaps.dur_ns[i]!;
    const isNode = gaps.in_graph[i] === 1;
    const hasCall = isNode || !Number.isNaN(gaps.called_ns[i]!);
    // The gap before an orphan has no call to split it by.
    const splitStart = hasCall ? gapStart : gapEnd;
    const called = isNode || !hasCall ? splitStart : gaps.called_ns[i]!;
    const returned = isNode || !hasCall ? splitStart : gaps.returned_ns[i]!;
    const callStart = Math.max(Math.min(called, gapEnd), splitStart);
    const callEnd = Math.max(Math.min(returned, gapEnd), splitStart);
    const { latencyNs } = isNode ? latency.graphNode : latency.launch;
    const waited = gaps.waiting_ns[i]!;
    parts[0]![i] = waited;
    parts[1]![i] = callStart - splitStart - waited;
    parts[2]![i] = callEnd - callStart;
    parts[3]![i] = Math.min(gapEnd - callEnd, latencyNs);
    parts[4]![i] = Math.max(gapEnd - callEnd - latencyNs, 0);
    parts[5]![i] = splitStart - gapStart;
    let max = 0;
    for (let part = 1; part < 6; part++) if (parts[part]![i]! > parts[max]![i]!) max = part;
    cause[i] = max;
  }
}
