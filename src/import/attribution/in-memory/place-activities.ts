import { attributions } from '../host-threads.js';
import { findStagesByTime, type OrphanCounts } from '../orphans.js';
import { type InMemoryStages, stageBatches } from './stages.js';
import type { Places } from './places.js';
import { sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/** Activities of a table with their calls. */
export interface LaunchedActivities {
  events: InMemoryEvents;
  /** Row of the call; −1: an orphan. */
  call: Int32Array;
  /** Like Places, per activity. */
  place: Int32Array;
}

/** Orphans get the stage that is open when they start. */
export async function placeActivities(
  stages: InMemoryStages,
  { events, call }: Pick<LaunchedActivities, 'events' | 'call'>,
  places: Places,
  counts: OrphanCounts,
): Promise<LaunchedActivities> {
  const { rows, start_ns, shape, shapes } = events;
  const place = sharedInts(rows);
  let orphans = 0;
  for (let i = 0; i < rows; i++) {
    const from = call[i]!;
    if (from < 0) orphans++;
    else place[i] = places[from]!;
  }
  if (orphans === 0) return { events, call, place };
  counts.orphans += orphans;
  const time = attributions.indexOf('time');
  counts.byTime += await findStagesByTime(
    stageBatches(stages),
    orphanBatch(orphans, (columns) => {
      let n = 0;
      for (let i = 0; i < rows; i++) {
        if (call[i]! >= 0) continue;
        columns['start_ns']![n] = start_ns[i]!;
        columns['pid']![n] = shapes['pid']![shape[i]!]!;
        columns['activity']![n++] = i;
      }
    }),
    (activity, stage) => (place[activity] = stage * attributions.length + time),
  );
  return { events, call, place };
}

// oxlint-disable-next-line require-await
async function* orphanBatch(rows: number, fill: (columns: Record<string, Float64Array>) => void) {
  const columns = {
    start_ns: new Float64Array(rows),
    pid: new Float64Array(rows),
    activity: new Float64Array(rows),
  };
  fill(columns);
  yield { rows, columns };
}
