import type { HeldColumns } from '../../../model/workbench.js';
import { direct, columnsByShape } from './columns.js';
import { type Places, stageIds } from './places.js';
import type { HeldEvents } from './held-events.js';

interface CallsInput {
  calls: HeldEvents;
  /** By code. */
  names: readonly string[];
}

export function apiCallColumns({ calls, names }: CallsInput): HeldColumns {
  const { shapes } = calls;
  const ofShape = columnsByShape(calls.shape);
  return {
    start_ns: direct(calls.start_ns),
    dur_ns: direct(calls.dur_ns),
    pid: ofShape(shapes['pid']),
    tid: ofShape(shapes['tid']),
    rank: ofShape(shapes['rank']),
    correlation: direct(calls.correlation),
    name: ofShape(shapes['name'], names),
    api: ofShape(shapes['api'], names),
  };
}

export function callStageColumns({ places }: { places: Places }): HeldColumns {
  return { stage_id: stageIds(places) };
}
