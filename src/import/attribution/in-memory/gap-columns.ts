import { gapParts } from '../../../model/bars.js';
import type { InMemoryColumn, InMemoryColumns } from '../../../model/workbench.js';
import { splitGaps } from '../gap-parts.js';
import type { GapLatency } from '../launch-latency.js';
import { asCodes, computedColumn, directColumn, sharedValue, columnsTogether } from './columns.js';
import type { GapArrays } from './sweep-devices.js';
import type { LaunchedActivities } from './place-activities.js';
import { stageOf } from './places.js';
import type { InMemoryEvents } from './events.js';

interface GapsInput extends GapLatency {
  gaps: GapArrays;
  calls: InMemoryEvents;
  kernels: LaunchedActivities;
  copies: LaunchedActivities;
}

/** duration, tid, stage, correlation, cause, call's start and end; then the parts in the order of gapParts. */
type Made = readonly [C, C, C, C, C, C, C, ...C[]];
type C = Float64Array;

export function gapColumns(input: GapsInput): InMemoryColumns {
  const { gaps, calls, kernels, copies } = input;
  const launchedOf = (row: number): LaunchedActivities => (gaps.activity[row]! < 0 ? copies : kernels);
  const activityOf = (row: number): number =>
    gaps.activity[row]! < 0 ? -1 - gaps.activity[row]! : gaps.activity[row]!;
  const { start_ns: callStart, dur_ns: callDur, shape: callShape } = calls;
  const tids = calls.shapes['tid'] ?? new Float64Array();
  const columnBuffers = columnsTogether(7 + gapParts.length, (into, from, count) => {
    const [dur, tid, stage, correlation, cause, called, returned, ...parts] = into as Made;
    const start_ns = gaps.idle_ns.subarray(from, from + count);
    for (let i = 0; i < count; i++) {
      const row = from + i;
      const { events, call, place } = launchedOf(row);
      const activity = activityOf(row);
      const callRow = call[activity]!;
      dur[i] = events.start_ns[activity]! - start_ns[i]!;
      tid[i] = callRow < 0 ? Number.NaN : tids[callShape[callRow]!]!;
      stage[i] = stageOf(place[activity]!);
      correlation[i] = events.correlation[activity]!;
      called[i] = callRow < 0 ? Number.NaN : callStart[callRow]!;
      returned[i] = callRow < 0 ? Number.NaN : called[i]! + callDur[callRow]!;
    }
    const waiting_ns = gaps.waiting_ns.subarray(from, from + count);
    const in_graph = gaps.inGraph.subarray(from, from + count);
    const times = { start_ns, dur_ns: dur, called_ns: called, returned_ns: returned, waiting_ns, in_graph };
    splitGaps(count, times, input, parts, cause);
  });
  const perShape = (name: string) => shapeColumn(name, kernels.events, copies.events, launchedOf, activityOf);
  const [dur_ns, tid, stage_id, correlation, cause, , , ...parts] = columnBuffers;
  return {
    start_ns: directColumn(gaps.idle_ns),
    dur_ns: { source: dur_ns! },
    pid: perShape('pid'),
    tid: { source: tid! },
    rank: perShape('rank'),
    device: perShape('device'),
    context: perShape('context'),
    stage_id: { source: stage_id! },
    correlation: { source: correlation! },
    ...Object.fromEntries(gapParts.map((name, index) => [`${name}_ns`, { source: parts[index]! }])),
    cause: { source: asCodes(cause!), texts: gapParts },
  };
}

/** A single value if all kernels and copies share it. */
function shapeColumn(
  name: string,
  kernels: InMemoryEvents,
  copies: InMemoryEvents,
  launchedOf: (row: number) => LaunchedActivities,
  activityOf: (row: number) => number,
): InMemoryColumn {
  const values = [...(kernels.shapes[name] ?? []), ...(copies.shapes[name] ?? [])];
  const shared = sharedValue(Float64Array.from(values));
  if (shared !== undefined) return shared;
  return computedColumn((row) => {
    const { events } = launchedOf(row);
    return events.shapes[name]![events.shape[activityOf(row)]!]!;
  });
}
