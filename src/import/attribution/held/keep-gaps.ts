import type { Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { gapParts } from '../gap-parts.js';
import { stageOf } from './calls.js';
import { computed, direct, type HeldColumn, keepRows, sameInAll, together } from './columns.js';
import type { HeldDeviceTimes } from './held-devices.js';
import type { HeldEvents } from './held-trace.js';
import type { Launched } from './launched.js';

/** The parts of a gap in the order of gapParts; the same rule as gapPartsSql. */
type Parts = Float64Array;

/** Writes the table gaps. */
export async function keepGaps(
  workbench: Workbench,
  context: ImportContext,
  calls: HeldEvents,
  kernels: Launched,
  copies: Launched,
  times: HeldDeviceTimes,
): Promise<void> {
  const { gaps } = times;
  const of = (row: number): Launched => (gaps.activity[row]! < 0 ? copies : kernels);
  const at = (row: number): number =>
    gaps.activity[row]! < 0 ? -1 - gaps.activity[row]! : gaps.activity[row]!;
  const one: Parts = new Float64Array(gapParts.length);
  const gap: Gap = { idle: 0, start: 0, callStart: 0, callEnd: 0, waiting: 0, latency: 0 };
  const tids = calls.shapes['tid'] ?? new Float64Array();
  const columns = together(5 + gapParts.length, (into, from, count) => {
    const [dur, tid, stage, correlation, cause, ...parts] = into;
    for (let i = 0; i < count; i++) {
      const row = from + i;
      const { events, call, place } = of(row);
      const activity = at(row);
      const launch = call[activity]!;
      const known = launch >= 0;
      gap.idle = gaps.idle_ns[row]!;
      gap.start = events.start_ns[activity]!;
      gap.waiting = gaps.waiting_ns[row]!;
      if (gaps.inGraph[row] === 1) {
        gap.callStart = gap.callEnd = gap.idle;
        gap.latency = times.graphNode.latencyNs;
      } else {
        gap.callStart = known ? calls.start_ns[launch]! : Number.NaN;
        gap.callEnd = known ? gap.callStart + calls.dur_ns[launch]! : Number.NaN;
        gap.latency = times.launch.latencyNs;
      }
      splitGap(one, gap);
      let largest = 0;
      for (let p = 0; p < one.length; p++) {
        parts[p]![i] = one[p]!;
        if (one[p]! > one[largest]!) largest = p;
      }
      cause![i] = largest;
      dur![i] = gap.start - gap.idle;
      tid![i] = known ? tids[calls.shape[launch]!]! : Number.NaN;
      stage![i] = stageOf(place[activity]!);
      correlation![i] = events.correlation[activity]!;
    }
  });
  const shaped = (name: string) => shapeColumn(name, kernels.events, copies.events, of, at);
  const [dur_ns, tid, stage_id, correlation, cause, ...parts] = columns;
  await keepRows(workbench, context, 'gaps', gaps.count, {
    start_ns: direct(gaps.idle_ns),
    dur_ns: dur_ns!,
    pid: shaped('pid'),
    tid: tid!,
    rank: shaped('rank'),
    device: shaped('device'),
    context: shaped('context'),
    stage_id: stage_id!,
    correlation: correlation!,
    ...Object.fromEntries(gapParts.map((name, index) => [`${name}_ns`, parts[index]!])),
    cause: { ...cause!, texts: gapParts },
  });
}

interface Gap {
  idle: number;
  start: number;
  /** NaN: an orphan. */
  callStart: number;
  callEnd: number;
  waiting: number;
  latency: number;
}

function splitGap(into: Parts, { idle, start, callStart: from, callEnd: to, waiting, latency }: Gap): void {
  into.fill(0);
  if (Number.isNaN(from)) {
    into[5] = start - idle;
    return;
  }
  const begin = Math.max(Math.min(from, start), idle);
  const end = Math.max(Math.min(to, start), idle);
  into[0] = waiting;
  into[1] = begin - idle - waiting;
  into[2] = end - begin;
  into[3] = Math.min(start - end, latency);
  into[4] = Math.max(start - end - latency, 0);
}

/** One value when kernels and copies all have the same. */
function shapeColumn(
  name: string,
  kernels: HeldEvents,
  copies: HeldEvents,
  of: (row: number) => Launched,
  at: (row: number) => number,
): HeldColumn | string | number | null {
  const values = [...(kernels.shapes[name] ?? []), ...(copies.shapes[name] ?? [])];
  const same = sameInAll(Float64Array.from(values));
  if (same !== undefined) return same;
  return computed((row) => {
    const { events } = of(row);
    return events.shapes[name]![events.shape[at(row)]!]!;
  });
}
