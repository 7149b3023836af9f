import { attributions } from '../host-threads.js';
import type { DeviceCounts } from '../issues.js';
import type { LaunchedActivities } from './place-activities.js';
import { sharedFloats } from './shared-arrays.js';

/** Row n − 1 is stage n; NaN: no device work. */
export interface StageWork {
  /** The busiest device; the lowest number on a tie. */
  device: Float64Array;
  device_start_ns: Float64Array;
  device_end_ns: Float64Array;
}

/**
 * Device work per stage, nested ranges included, and counts of how activities were attributed.
 * @param parents row n − 1 is the parent of stage n; NaN: none
 */
export function sumStageWork(
  parents: Float64Array,
  activityTables: readonly LaunchedActivities[],
): { work: StageWork; counts: DeviceCounts } {
  const stages = parents.length;
  const devices = [...new Set(activityTables.flatMap(({ events }) => [...(events.shapes['device'] ?? [])]))]
    .filter((device) => !Number.isNaN(device))
    .sort((a, b) => a - b);
  const first = new Float64Array(stages + 1).fill(Number.POSITIVE_INFINITY);
  const last = new Float64Array(stages + 1).fill(Number.NEGATIVE_INFINITY);
  // Activities without a device are summed into an unused slot. −1: no work, not even of zero length.
  const busy = [...devices, Number.NaN].map(() => new Float64Array(stages + 1).fill(-1));
  const counts: DeviceCounts = { activities: 0, opaque: 0, by_process: 0, by_thread: 0, unstaged: 0 };
  for (const activities of activityTables) addWork(activities, devices, { first, last, busy }, counts);
  busy.pop();
  // A nested range starts after its parent and has a higher number.
  for (let stage = stages; stage > 0; stage--) {
    const parent = parents[stage - 1]!;
    if (Number.isNaN(parent)) continue;
    if (first[stage]! < first[parent]!) first[parent] = first[stage]!;
    if (last[stage]! > last[parent]!) last[parent] = last[stage]!;
    for (const time of busy) if (time[stage]! >= 0) time[parent] = Math.max(0, time[parent]!) + time[stage]!;
  }
  const work: StageWork = {
    device: sharedFloats(stages).fill(Number.NaN),
    device_start_ns: sharedFloats(stages).fill(Number.NaN),
    device_end_ns: sharedFloats(stages).fill(Number.NaN),
  };
  for (let stage = 1; stage <= stages; stage++) {
    if (last[stage] === Number.NEGATIVE_INFINITY) continue;
    let maxTime = -1;
    for (let d = 0; d < busy.length; d++) {
      if (busy[d]![stage]! <= maxTime) continue;
      maxTime = busy[d]![stage]!;
      work.device[stage - 1] = devices[d]!;
    }
    work.device_start_ns[stage - 1] = first[stage]!;
    work.device_end_ns[stage - 1] = last[stage]!;
  }
  return { work, counts };
}

interface StageSums {
  first: Float64Array;
  last: Float64Array;
  /** One slot per device, and one for activities without a device. */
  busy: readonly Float64Array[];
}

/** Activities of one stage are mostly consecutive: they are summed before they are written. */
function addWork(
  { events, place }: LaunchedActivities,
  devices: readonly number[],
  { first, last, busy }: StageSums,
  counts: DeviceCounts,
): void {
  const { rows, start_ns: start, dur_ns: dur, shape, shapes } = events;
  const deviceOf = Int32Array.from(shapes['device'] ?? [], (device) => {
    const number = devices.indexOf(device);
    return number < 0 ? devices.length : number;
  });
  const countByAttribution = new Int32Array(attributions.length);
  let unstaged = 0;
  for (let i = 0; i < rows;) {
    const stagePlace = place[i]!;
    const device = deviceOf[shape[i]!]!;
    const begin = i;
    let end = Number.NEGATIVE_INFINITY;
    let time = 0;
    for (; i < rows && place[i] === stagePlace && deviceOf[shape[i]!] === device; i++) {
      const to = start[i]! + dur[i]!;
      if (to > end) end = to;
      time += dur[i]!;
    }
    if (stagePlace === 0) {
      unstaged += i - begin;
      continue;
    }
    const stage = Math.floor(stagePlace / attributions.length);
    countByAttribution[stagePlace % attributions.length]! += i - begin;
    // Rows are sorted by start.
    if (start[begin]! < first[stage]!) first[stage] = start[begin]!;
    if (end > last[stage]!) last[stage] = end;
    busy[device]![stage] = Math.max(0, busy[device]![stage]!) + time;
  }
  counts.activities += rows;
  counts.unstaged += unstaged;
  counts.by_process += countByAttribution[attributions.indexOf('process_range')]!;
  counts.by_thread += countByAttribution[attributions.indexOf('thread')]!;
  counts.opaque += countOpaqueGraphs(events);
}

function countOpaqueGraphs({ rows, shape, shapes }: LaunchedActivities['events']): number {
  const opaque = shapes['opaque_graph'];
  let count = 0;
  if (opaque?.includes(1)) for (let i = 0; i < rows; i++) if (opaque[shape[i]!] === 1) count++;
  return count;
}
