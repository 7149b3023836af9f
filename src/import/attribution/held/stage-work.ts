import type { Workbench } from '../../../model/workbench.js';
import { openRows } from '../row-writer.js';
import type { HeldEvents } from './held-trace.js';

/**
 * Device work of each stage, of ranges inside it included: table attr_stage_device (stage_id, device, device_start_ns,
 * device_end_ns); device is the busiest, of equal ones the lowest.
 * @param stageOf stage of an activity's row, 0: none
 */
export async function rollUpHeldStages(
  workbench: Workbench,
  stages: number,
  parts: readonly { events: HeldEvents; stageOf: (row: number) => number }[],
): Promise<void> {
  const devices = [...new Set(parts.flatMap(({ events }) => [...(events.shapes['device'] ?? [])]))]
    .filter((device) => !Number.isNaN(device))
    .sort((a, b) => a - b);
  const parents = await parentsOf(workbench, stages);
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
    const parent = parents[stage]!;
    if (parent === 0) continue;
    if (first[stage]! < first[parent]!) first[parent] = first[stage]!;
    if (last[stage]! > last[parent]!) last[parent] = last[stage]!;
    for (const time of busy) time[parent]! += time[stage]!;
  }
  const columns = ['stage_id', 'device', 'device_start_ns', 'device_end_ns'];
  const rows = await openRows(workbench, 'attr_stage_device', columns);
  for (let stage = 1; stage <= stages; stage++) {
    if (last[stage] === Number.NEGATIVE_INFINITY) continue;
    let busiest = 0;
    for (let d = 1; d < busy.length; d++) if (busy[d]![stage]! > busy[busiest]![stage]!) busiest = d;
    rows.add(stage, devices[busiest] ?? Number.NaN, first[stage]!, last[stage]!);
  }
  rows.close();
}

async function parentsOf(workbench: Workbench, stages: number): Promise<Int32Array> {
  const parents = new Int32Array(stages + 1);
  for await (const { rows, columns } of workbench.scan('SELECT stage_id, parent_id FROM attr_stages')) {
    for (let r = 0; r < rows; r++) parents[columns['stage_id']![r]!] = columns['parent_id']![r]! || 0;
  }
  return parents;
}
