import type { HeldColumn, HeldColumns } from '../../../model/workbench.js';
import { gapParts } from '../gap-parts.js';
import type { LatencyEstimate } from '../launch-latency.js';
import { asCodes, computed, direct, sameInAll, together } from './columns.js';
import type { HeldGaps } from './held-devices.js';
import type { HeldEvents } from './held-trace.js';
import type { Launched } from './launched.js';
import { stageOf } from './places.js';

/** The parts of a gap in the order of gapParts; the same rule as gapPartsSql. */
interface GapParts {
  synchronization: number;
  host: number;
  overhead: number;
  latency: number;
  dependency: number;
  unknown: number;
}

export interface GapsInput {
  gaps: HeldGaps;
  calls: HeldEvents;
  kernels: Launched;
  copies: Launched;
  /** Usual latencies of a launch and of a graph's node. */
  launch: LatencyEstimate;
  graphNode: LatencyEstimate;
}

export function gapColumns({ gaps, calls, kernels, copies, launch, graphNode }: GapsInput): HeldColumns {
  const of = (row: number): Launched => (gaps.activity[row]! < 0 ? copies : kernels);
  const at = (row: number): number =>
    gaps.activity[row]! < 0 ? -1 - gaps.activity[row]! : gaps.activity[row]!;
  const tids = calls.shapes['tid'] ?? new Float64Array();
  const parts: GapParts = { synchronization: 0, host: 0, overhead: 0, latency: 0, dependency: 0, unknown: 0 };
  const made = together(5 + gapParts.length, (into, from, count) => {
    const [dur, tid, stage, correlation, cause] = into;
    const [waits, host, overhead, latency, dependency, unknown] = into.slice(5);
    for (let i = 0; i < count; i++) {
      const row = from + i;
      const { events, call, place } = of(row);
      const activity = at(row);
      const launched = call[activity]!;
      const idle = gaps.idle_ns[row]!;
      const start = events.start_ns[activity]!;
      const inGraph = gaps.inGraph[row] === 1;
      const begin = inGraph ? idle : launched < 0 ? Number.NaN : calls.start_ns[launched]!;
      const end = inGraph ? idle : launched < 0 ? Number.NaN : begin + calls.dur_ns[launched]!;
      const usual = inGraph ? graphNode.latencyNs : launch.latencyNs;
      splitGap(parts, idle, start, begin, end, gaps.waiting_ns[row]!, usual);
      waits![i] = parts.synchronization;
      host![i] = parts.host;
      overhead![i] = parts.overhead;
      latency![i] = parts.latency;
      dependency![i] = parts.dependency;
      unknown![i] = parts.unknown;
      cause![i] = largest(parts);
      dur![i] = start - idle;
      tid![i] = launched < 0 ? Number.NaN : tids[calls.shape[launched]!]!;
      stage![i] = stageOf(place[activity]!);
      correlation![i] = events.correlation[activity]!;
    }
  });
  const shaped = (name: string) => shapeColumn(name, kernels.events, copies.events, of, at);
  const [dur_ns, tid, stage_id, correlation, cause, ...ofParts] = made;
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
    ...Object.fromEntries(gapParts.map((name, index) => [`${name}_ns`, { source: ofParts[index]! }])),
    cause: { source: asCodes(cause!), texts: gapParts },
  };
}

/** @param from when the call that launched the activity began, `to` when it ended; NaN: an orphan */
function splitGap(
  into: GapParts,
  idle: number,
  start: number,
  from: number,
  to: number,
  waiting: number,
  usualLatency: number,
): void {
  const known = !Number.isNaN(from);
  const begin = known ? Math.max(Math.min(from, start), idle) : idle;
  const end = known ? Math.max(Math.min(to, start), idle) : idle;
  const after = known ? start - end : 0;
  into.synchronization = known ? waiting : 0;
  into.host = known ? begin - idle - waiting : 0;
  into.overhead = end - begin;
  into.latency = Math.min(after, usualLatency);
  into.dependency = Math.max(after - usualLatency, 0);
  into.unknown = known ? 0 : start - idle;
}

/** Index in gapParts; of equal parts the first. */
function largest({ synchronization, host, overhead, latency, dependency, unknown }: GapParts): number {
  const most = Math.max(synchronization, host, overhead, latency, dependency, unknown);
  if (synchronization === most) return 0;
  if (host === most) return 1;
  if (overhead === most) return 2;
  if (latency === most) return 3;
  return dependency === most ? 4 : 5;
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
