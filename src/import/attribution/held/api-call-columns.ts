import type { HeldColumns } from '../../../model/workbench.js';
import { direct, ofShapes } from './columns.js';
import type { HeldEvents } from './held-trace.js';
import { type Places, stageIds } from './places.js';

export interface ApiCallsInput {
  calls: HeldEvents;
  places: Places;
  /** By code. */
  names: readonly string[];
}

export function apiCallColumns({ calls, places, names }: ApiCallsInput): HeldColumns {
  const { shapes } = calls;
  const ofShape = ofShapes(calls.shape);
  return {
    start_ns: direct(calls.start_ns),
    dur_ns: direct(calls.dur_ns),
    pid: ofShape(shapes['pid']),
    tid: ofShape(shapes['tid']),
    rank: ofShape(shapes['rank']),
    correlation: direct(calls.correlation),
    stage_id: stageIds(places),
    name: ofShape(shapes['name'], names),
    api: ofShape(shapes['api'], names),
  };
}
