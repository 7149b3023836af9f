import type { GapLatency } from './launch-latency.js';

/** Idle intervals with the API call that launched the activity after each; NaN: an orphan. */
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
 * Cuts the first `rows` gaps. All times are integers, so the parts sum to the gap exactly.
 * @param usual the time after the call's return is latency up to it and dependency beyond
 * @param parts filled, in the order of gapParts
 * @param cause filled with the largest part as an index into gapParts; of equal ones the earlier
 */
export function splitGaps(
  rows: number,
  gaps: GapTimes,
  usual: GapLatency,
  parts: readonly Float64Array[],
  cause: Float64Array,
): void {
  for (let i = 0; i < rows; i++) {
    const idle = gaps.start_ns[i]!;
    const start = idle + gaps.dur_ns[i]!;
    const node = gaps.in_graph[i] === 1;
    const known = node || !Number.isNaN(gaps.called_ns[i]!);
    // The gap before an orphan has no call to split it by.
    const from = known ? idle : start;
    const called = node || !known ? from : gaps.called_ns[i]!;
    const returned = node || !known ? from : gaps.returned_ns[i]!;
    const begin = Math.max(Math.min(called, start), from);
    const end = Math.max(Math.min(returned, start), from);
    const { latencyNs } = node ? usual.graphNode : usual.launch;
    const waited = gaps.waiting_ns[i]!;
    parts[0]![i] = waited;
    parts[1]![i] = begin - from - waited;
    parts[2]![i] = end - begin;
    parts[3]![i] = Math.min(start - end, latencyNs);
    parts[4]![i] = Math.max(start - end - latencyNs, 0);
    parts[5]![i] = from - idle;
    let max = 0;
    for (let part = 1; part < 6; part++) if (parts[part]![i]! > parts[max]![i]!) max = part;
    cause[i] = max;
  }
}
