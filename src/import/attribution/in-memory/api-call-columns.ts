import type { InMemoryColumns } from '../../../model/workbench.js';
import { directColumn, columnsByShape } from './columns.js';
import { type Places, stageIds } from './places.js';
import type { InMemoryEvents } from './events.js';

interface CallsInput {
  calls: InMemoryEvents;
  /** Indexed by name code. */
  names: readonly string[];
}

export function apiCallColumns({ calls, names }: CallsInput): InMemoryColumns {
  const { shapes } = calls;
  const perShape = columnsByShape(calls.shape);
  return {
    start_ns: directColumn(calls.start_ns),
    dur_ns: directColumn(calls.dur_ns),
    pid: perShape(shapes['pid']),
    tid: perShape(shapes['tid']),
    rank: perShape(shapes['rank']),
    correlation: directColumn(calls.correlation),
    name: perShape(shapes['name'], names),
    api: perShape(shapes['api'], names),
  };
}

export function callStageColumns({ places }: { places: Places }): InMemoryColumns {
  return { stage_id: stageIds(places) };
}
