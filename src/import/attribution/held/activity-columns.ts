import { opClasses } from '../../../model/classes.js';
import type { HeldColumns } from '../../../model/workbench.js';
import { direct, gathered, columnsByShape, columnsByShapeAt } from './columns.js';
import type { ShapeLabels } from './kernel-labels.js';
import type { Launched } from './launched.js';
import { attributedBy, stageIds } from './places.js';
import type { HeldEvents } from './held-events.js';

interface ActivitiesInput {
  events: HeldEvents;
  /** By code. */
  names: readonly string[];
}

interface KernelsInput extends ActivitiesInput {
  labels: ShapeLabels;
}

/** Columns that come from the capture's kernel rows. */
export function kernelColumns({ events, names, labels }: KernelsInput): HeldColumns {
  const { shapes } = events;
  const ofShape = columnsByShape(events.shape);
  return {
    ...activityColumns(events, ofShape),
    name: ofShape(shapes['name'], names),
    short_name: ofShape(shapes['short_name'], names),
    class: ofShape(labels.class, opClasses),
    tile: ofShape(labels.tile, labels.texts),
    dtype: ofShape(labels.dtype, labels.texts),
    grid: ofShape(shapes['grid'], names),
    block: ofShape(shapes['block'], names),
    registers: ofShape(within32Bits(shapes['registers'])),
    shared_mem_bytes: ofShape(within32Bits(shapes['shared_mem_bytes'])),
    graph_id: ofShape(shapes['graph_id']),
  };
}

/** Null for values outside 32-bit integers, like an SQL cast. */
const within32Bits = (values: Float64Array | undefined) =>
  values?.map((value) => (Math.abs(value) < 2 ** 31 ? value : Number.NaN));

/** Columns that come from the capture's copy rows. */
export function copyColumns({ events, names }: ActivitiesInput): HeldColumns {
  const { shapes } = events;
  const ofShape = columnsByShape(events.shape);
  return {
    ...activityColumns(events, ofShape),
    kind: ofShape(shapes['kind'], names),
    src_kind: ofShape(shapes['src_kind'], names),
    dst_kind: ofShape(shapes['dst_kind'], names),
    bytes: direct(events.bytes!),
  };
}

function activityColumns(
  { start_ns, dur_ns, correlation, shapes }: HeldEvents,
  ofShape: ReturnType<typeof columnsByShape>,
): HeldColumns {
  return {
    start_ns: direct(start_ns),
    dur_ns: direct(dur_ns),
    pid: ofShape(shapes['pid']),
    rank: ofShape(shapes['rank']),
    device: ofShape(shapes['device']),
    context: ofShape(shapes['context']),
    stream: ofShape(shapes['stream']),
    correlation: direct(correlation),
    graph_node: ofShape(shapes['graph_node']),
  };
}

interface LaunchesInput {
  activities: Launched;
  calls: HeldEvents;
}

/** Columns that come from the API calls that launched kernels or copies. */
export function launchColumns({ activities: { call, place }, calls }: LaunchesInput): HeldColumns {
  return {
    tid: columnsByShapeAt(call, calls.shape, calls.shapes['tid']),
    api_start_ns: gathered(call, calls.start_ns),
    api_dur_ns: gathered(call, calls.dur_ns),
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
  events: HeldEvents;
}): HeldColumns {
  return { exclusive_ns: direct(exclusive ?? events.dur_ns) };
}
