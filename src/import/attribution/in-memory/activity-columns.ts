import { opClasses } from '../../../model/classes.js';
import type { InMemoryColumns } from '../../../model/workbench.js';
import { directColumn, gatheredColumn, columnsByShape, columnsByShapeAt } from './columns.js';
import type { ShapeLabels } from './kernel-labels.js';
import type { LaunchedActivities } from './place-activities.js';
import { attributedBy, stageIds } from './places.js';
import type { InMemoryEvents } from './events.js';

interface ActivitiesInput {
  events: InMemoryEvents;
  /** Indexed by name code. */
  names: readonly string[];
}

interface KernelsInput extends ActivitiesInput {
  labels: ShapeLabels;
}

/** Columns that come from the capture's kernel rows. */
export function kernelColumns({ events, names, labels }: KernelsInput): InMemoryColumns {
  const { shapes } = events;
  const perShape = columnsByShape(events.shape);
  return {
    ...activityColumns(events, perShape),
    name: perShape(shapes['name'], names),
    short_name: perShape(shapes['short_name'], names),
    class: perShape(labels.class, opClasses),
    tile: perShape(labels.tile, labels.texts),
    dtype: perShape(labels.dtype, labels.texts),
    grid: perShape(shapes['grid'], names),
    block: perShape(shapes['block'], names),
    registers: perShape(within32Bits(shapes['registers'])),
    shared_mem_bytes: perShape(within32Bits(shapes['shared_mem_bytes'])),
    graph_id: perShape(shapes['graph_id']),
  };
}

/** Null for values outside 32-bit integers, like an SQL cast. */
const within32Bits = (values: Float64Array | undefined) =>
  values?.map((value) => (Math.abs(value) < 2 ** 31 ? value : Number.NaN));

/** Columns that come from the capture's copy rows. */
export function copyColumns({ events, names }: ActivitiesInput): InMemoryColumns {
  const { shapes } = events;
  const perShape = columnsByShape(events.shape);
  return {
    ...activityColumns(events, perShape),
    kind: perShape(shapes['kind'], names),
    src_kind: perShape(shapes['src_kind'], names),
    dst_kind: perShape(shapes['dst_kind'], names),
    bytes: directColumn(events.bytes!),
  };
}

function activityColumns(
  { start_ns, dur_ns, correlation, shapes }: InMemoryEvents,
  perShape: ReturnType<typeof columnsByShape>,
): InMemoryColumns {
  return {
    start_ns: directColumn(start_ns),
    dur_ns: directColumn(dur_ns),
    pid: perShape(shapes['pid']),
    rank: perShape(shapes['rank']),
    device: perShape(shapes['device']),
    context: perShape(shapes['context']),
    stream: perShape(shapes['stream']),
    correlation: directColumn(correlation),
    graph_node: perShape(shapes['graph_node']),
  };
}

interface LaunchesInput {
  activities: LaunchedActivities;
  calls: InMemoryEvents;
}

/** Columns that come from the API calls that launched kernels or copies. */
export function launchColumns({ activities: { call, place }, calls }: LaunchesInput): InMemoryColumns {
  return {
    tid: columnsByShapeAt(call, calls.shape, calls.shapes['tid']),
    api_start_ns: gatheredColumn(call, calls.start_ns),
    api_dur_ns: gatheredColumn(call, calls.dur_ns),
    stage_id: stageIds(place),
    attributed_by: attributedBy(place),
  };
}

/** @param exclusive null: every activity has its full duration */
export function exclusiveColumns({
  exclusive,
  events,
}: {
  exclusive: Float64Array | null;
  events: InMemoryEvents;
}): InMemoryColumns {
  return { exclusive_ns: directColumn(exclusive ?? events.dur_ns) };
}
