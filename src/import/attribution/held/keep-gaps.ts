import type { Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { gapParts } from '../gap-parts.js';
import { stageOf } from './calls.js';
import { computed, type KeptColumn, keepRows, ofShape } from './columns.js';
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
  const parts = gapParts.map(() => new Float64Array(batch));
  const one: Parts = new Float64Array(gapParts.length);
  let done = -1;
  /** The parts of all rows of a batch, once for all its columns. */
  const split = (from: number, count: number): void => {
    if (done === from) return;
    done = from;
    for (let i = 0; i < count; i++) {
      const row = from + i;
      const { events, call } = of(row);
      const activity = at(row);
      const inGraph = gaps.inGraph[row] === 1;
      splitGap(one, {
        idle: gaps.idle_ns[row]!,
        start: events.start_ns[activity]!,
        callStart: inGraph ? gaps.idle_ns[row]! : callStart(calls, call[activity]!),
        callEnd: inGraph ? gaps.idle_ns[row]! : callEnd(calls, call[activity]!),
        waiting: gaps.waiting_ns[row]!,
        latency: inGraph ? times.graphNode.latencyNs : times.launch.latencyNs,
      });
      for (let p = 0; p < parts.length; p++) parts[p]![i] = one[p]!;
    }
  };
  const part = (index: number): KeptColumn => ({
    fill(into, from, count) {
      split(from, count);
      into.set(parts[index]!.subarray(0, count));
    },
  });
  const cause: KeptColumn = {
    texts: gapParts,
    fill(into, from, count) {
      split(from, count);
      for (let i = 0; i < count; i++) {
        let largest = 0;
        for (let p = 1; p < parts.length; p++) if (parts[p]![i]! > parts[largest]![i]!) largest = p;
        into[i] = largest;
      }
    },
  };
  const shaped = (name: string) => shapeColumn(name, kernels.events, copies.events, of, at);
  await keepRows(workbench, context, 'gaps', gaps.count, {
    start_ns: computed((row) => gaps.idle_ns[row]!),
    dur_ns: computed((row) => of(row).events.start_ns[at(row)]! - gaps.idle_ns[row]!),
    pid: shaped('pid'),
    tid: computed((row) => {
      const call = of(row).call[at(row)]!;
      return call < 0 ? Number.NaN : calls.shapes['tid']![calls.shape[call]!]!;
    }),
    rank: shaped('rank'),
    device: shaped('device'),
    context: shaped('context'),
    stage_id: computed((row) => stageOf(of(row).place[at(row)]!)),
    correlation: computed((row) => of(row).events.correlation[at(row)]!),
    ...Object.fromEntries(gapParts.map((name, index) => [`${name}_ns`, part(index)])),
    cause,
  });
}

const batch = 16_384;

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

const callStart = (calls: HeldEvents, call: number) => (call < 0 ? Number.NaN : calls.start_ns[call]!);
const callEnd = (calls: HeldEvents, call: number) =>
  call < 0 ? Number.NaN : calls.start_ns[call]! + calls.dur_ns[call]!;

/** One value when kernels and copies all have the same. */
function shapeColumn(
  name: string,
  kernels: HeldEvents,
  copies: HeldEvents,
  of: (row: number) => Launched,
  at: (row: number) => number,
): KeptColumn | string | number | null {
  const values = [...(kernels.shapes[name] ?? []), ...(copies.shapes[name] ?? [])];
  const same = ofShape(new Int32Array(), Float64Array.from(values));
  if (typeof same !== 'object' || same === null) return same;
  return computed((row) => {
    const { events } = of(row);
    return events.shapes[name]![events.shape[at(row)]!]!;
  });
}
