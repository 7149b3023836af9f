import type { HeldEvents } from './held-trace.js';

/** Of stage n in row n − 1; NaN: no device work. */
export interface StageWork {
  /** The busiest, of equal ones the lowest. */
  device: Float64Array;
  device_start_ns: Float64Array;
  device_end_ns: Float64Array;
}

/**
 * Device work of each stage, of ranges inside it included.
 * @param parents of stage n in row n − 1; NaN: none
 * @param stageOf stage of an activity's row, 0: none
 */
export function stageWork(
  parents: Float64Array,
  parts: readonly { events: HeldEvents; stageOf: (row: number) => number }[],
): StageWork {
  const stages = parents.length;
  const devices = [...new Set(parts.flatMap(({ events }) => [...(events.shapes['device'] ?? [])]))]
    .filter((device) => !Number.isNaN(device))
    .sort((a, b) => a - b);
  const first = new Float64Array(stages + 1).fill(Number.POSITIVE_INFINITY);
  const last = new Float64Array(stages + 1).fill(Number.NEGATIVE_INFINITY);
  const busy = devices.map(() => new Float64Array(stages + 1));
  for (const { events, stageOf } of parts) {
    const ofShape = Array.from(events.shapes['device'] ?? [], (device) => busy[devices.indexOf(device)]);
    for (let i = 0; i < events.rows; i++) {
      const stage = stageOf(i);
      if (stage === 0) continue;
      const start = events.start_ns[i]!;
      const end = start + events.dur_ns[i]!;
      if (start < first[stage]!) first[stage] = start;
      if (end > last[stage]!) last[stage] = end;
      const time = ofShape[events.shape[i]!];
      if (time) time[stage]! += events.dur_ns[i]!;
    }
  }
  // A range that holds another began before it and has the lower number.
  for (let stage = stages; stage > 0; stage--) {
    const parent = parents[stage - 1]!;
    if (Number.isNaN(parent)) continue;
    if (first[stage]! < first[parent]!) first[parent] = first[stage]!;
    if (last[stage]! > last[parent]!) last[parent] = last[stage]!;
    for (const time of busy) time[parent]! += time[stage]!;
  }
  const work: StageWork = {
    device: new Float64Array(stages).fill(Number.NaN),
    device_start_ns: new Float64Array(stages).fill(Number.NaN),
    device_end_ns: new Float64Array(stages).fill(Number.NaN),
  };
  for (let stage = 1; stage <= stages; stage++) {
    if (last[stage] === Number.NEGATIVE_INFINITY) continue;
    let busiest = 0;
    for (let d = 1; d < busy.length; d++) if (busy[d]![stage]! > busy[busiest]![stage]!) busiest = d;
    work.device[stage - 1] = devices[busiest] ?? Number.NaN;
    work.device_start_ns[stage - 1] = first[stage]!;
    work.device_end_ns[stage - 1] = last[stage]!;
  }
  return work;
}
