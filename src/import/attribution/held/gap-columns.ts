import type { HeldColumn, HeldColumns } from '../../../model/workbench.js';
import { gapParts } from '../gap-parts.js';
import type { LatencyEstimate } from '../launch-latency.js';
import { asCodes, computed, direct, sameInAll, together } from './columns.js';
import type { HeldGaps } from './held-devices.js';
import type { Launched } from './launched.js';
import { stageOf } from './places.js';
import type { HeldEvents } from './held-events.js';

export interface GapsInput {
  gaps: HeldGaps;
  calls: HeldEvents;
  kernels: Launched;
  copies: Launched;
  /** Usual latencies of a launch and of a graph's node. */
  launch: LatencyEstimate;
  graphNode: LatencyEstimate;
}

/** duration, tid, stage, correlation, cause; then the parts in the order of gapParts. */
type Made = readonly [C, C, C, C, C, C, C, C, C, C, C];
type C = Float64Array;

export function gapColumns({ gaps, calls, kernels, copies, launch, graphNode }: GapsInput): HeldColumns {
  const of = (row: number): Launched => (gaps.activity[row]! < 0 ? copies : kernels);
  const at = (row: number): number =>
    gaps.activity[row]! < 0 ? -1 - gaps.activity[row]! : gaps.activity[row]!;
  const { activity: activities, idle_ns, waiting_ns, inGraph } = gaps;
  const { start_ns: callStart, dur_ns: callDur, shape: callShape } = calls;
  const tids = calls.shapes['tid'] ?? new Float64Array();
  const made = together(5 + gapParts.length, (into, from, count) => {
    const [dur, tid, stage, correlation, cause, ...parts] = into as Made;
    const [synchronization, host, overhead, latency, dependency, unknown] = parts;
    for (let i = 0; i < count; i++) {
      const row = from + i;
      const { events, call, place } = activities[row]! < 0 ? copies : kernels;
      const own = activities[row]!;
      const activity = own < 0 ? -1 - own : own;
      const launched = call[activity]!;
      const idle = idle_ns[row]!;
      const start = events.start_ns[activity]!;
      dur[i] = start - idle;
      tid[i] = launched < 0 ? Number.NaN : tids[callShape[launched]!]!;
      stage[i] = stageOf(place[activity]!);
      correlation[i] = events.correlation[activity]!;
      // The same rule as gapPartsSql. A graph's node has no call of its own.
      const node = inGraph[row] === 1;
      if (launched < 0 && !node) {
        synchronization[i] = host[i] = overhead[i] = latency[i] = dependency[i] = 0;
        unknown[i] = start - idle;
        cause[i] = 5;
        continue;
      }
      const called = node ? idle : callStart[launched]!;
      const returned = node ? idle : called + callDur[launched]!;
      const usual = node ? graphNode.latencyNs : launch.latencyNs;
      const begin = Math.max(Math.min(called, start), idle);
      const end = Math.max(Math.min(returned, start), idle);
      const waited = waiting_ns[row]!;
      const after = start - end;
      const h = begin - idle - waited;
      const o = end - begin;
      const l = Math.min(after, usual);
      const d = Math.max(after - usual, 0);
      synchronization[i] = waited;
      host[i] = h;
      overhead[i] = o;
      latency[i] = l;
      dependency[i] = d;
      unknown[i] = 0;
      // Of equal ones the first.
      const most = Math.max(waited, h, o, l, d);
      cause[i] = waited === most ? 0 : h === most ? 1 : o === most ? 2 : l === most ? 3 : 4;
    }
  });
  const shaped = (name: string) => shapeColumn(name, kernels.events, copies.events, of, at);
  const [dur_ns, tid, stage_id, correlation, cause, ...parts] = made;
  return {
    start_ns: direct(gaps.idle_ns),
    dur_ns: { source: dur_ns! },
    pid: shaped('pid'),
    tid: { source: tid! },
    rank: shaped('rank'),
    device: shaped('device'),
    context: shaped('context'),
    stage_id: { source: stage_id! },
    correlation: { source: correlation! },
    ...Object.fromEntries(gapParts.map((name, index) => [`${name}_ns`, { source: parts[index]! }])),
    cause: { source: asCodes(cause!), texts: gapParts },
  };
}

/** One value when kernels and copies all have the same. */
function shapeColumn(
  name: string,
  kernels: HeldEvents,
  copies: HeldEvents,
  of: (row: number) => Launched,
  at: (row: number) => number,
): HeldColumn {
  const values = [...(kernels.shapes[name] ?? []), ...(copies.shapes[name] ?? [])];
  const same = sameInAll(Float64Array.from(values));
  if (same !== undefined) return same;
  return computed((row) => {
    const { events } = of(row);
    return events.shapes[name]![events.shape[at(row)]!]!;
  });
}
