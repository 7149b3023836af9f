import { opClasses } from '../../../model/classes.js';
import type { HeldColumns } from '../../../model/workbench.js';
import { direct, gathered, ofShapes, ofShapesAt } from './columns.js';
import type { HeldEvents } from './held-trace.js';
import type { ShapeLabels } from './kernel-labels.js';
import type { Launched } from './launched.js';
import { attributedBy, stageIds } from './places.js';

interface ActivitiesInput {
  activities: Launched;
  calls: HeldEvents;
  /** Null: each activity's own duration. */
  exclusive: Float64Array | null;
  /** By code. */
  names: readonly string[];
}

export interface KernelsInput extends ActivitiesInput {
  labels: ShapeLabels;
}

export type CopiesInput = ActivitiesInput;

export function kernelColumns({ labels, ...input }: KernelsInput): HeldColumns {
  const { names } = input;
  const { shape, shapes } = input.activities.events;
  const ofShape = ofShapes(shape);
  return {
    ...launchColumns(input, ofShape),
    name: ofShape(shapes['name'], names),
    short_name: ofShape(shapes['short_name'], names),
    class: ofShape(labels.class, opClasses),
    tile: ofShape(labels.tile, labels.texts),
    dtype: ofShape(labels.dtype, labels.texts),
    grid: ofShape(shapes['grid'], names),
    block: ofShape(shapes['block'], names),
    registers: ofShape(shapes['registers']),
    shared_mem_bytes: ofShape(shapes['shared_mem_bytes']),
    graph_id: ofShape(shapes['graph_id']),
  };
}

export function copyColumns(input: CopiesInput): HeldColumns {
  const { names } = input;
  const { shape, shapes, bytes } = input.activities.events;
  const ofShape = ofShapes(shape);
  return {
    ...launchColumns(input, ofShape),
    kind: ofShape(shapes['kind'], names),
    src_kind: ofShape(shapes['src_kind'], names),
    dst_kind: ofShape(shapes['dst_kind'], names),
    bytes: direct(bytes!),
  };
}

function launchColumns(
  { activities: { events, call, place }, calls, exclusive }: ActivitiesInput,
  ofShape: ReturnType<typeof ofShapes>,
): HeldColumns {
  const { shapes } = events;
  const duration = direct(events.dur_ns);
  return {
    start_ns: direct(events.start_ns),
    dur_ns: duration,
    exclusive_ns: exclusive ? direct(exclusive) : duration,
    pid: ofShape(shapes['pid']),
    tid: ofShapesAt(call, calls.shape, calls.shapes['tid']),
    rank: ofShape(shapes['rank']),
    device: ofShape(shapes['device']),
    context: ofShape(shapes['context']),
    stream: ofShape(shapes['stream']),
    correlation: direct(events.correlation),
    graph_node: ofShape(shapes['graph_node']),
    api_start_ns: gathered(call, calls.start_ns),
    api_dur_ns: gathered(call, calls.dur_ns),
    stage_id: stageIds(place),
    attributed_by: attributedBy(place),
  };
}
