import { opClasses } from '../../../model/classes.js';
import type { Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { attributions } from '../host-threads.js';
import { attributionOf, stageOf } from './calls.js';
import { computed, direct, gathered, keepRows, ofShapes } from './columns.js';
import type { HeldEvents } from './held-trace.js';
import type { ShapeLabels } from './kernel-labels.js';
import type { Launched } from './launched.js';

interface HeldSources {
  calls: HeldEvents;
  /** By code. */
  names: readonly string[];
}

/** @param exclusive null: each activity's own duration */
export async function keepKernels(
  workbench: Workbench,
  context: ImportContext,
  { calls, names }: HeldSources,
  kernels: Launched,
  exclusive: Float64Array | null,
  labels: ShapeLabels,
): Promise<void> {
  const { shape, shapes, rows } = kernels.events;
  const ofShape = ofShapes(shape);
  await keepRows(workbench, context, 'kernels', rows, {
    ...launchColumns(kernels, calls, exclusive, ofShape),
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
  });
}

/** @param exclusive as for kernels */
export async function keepCopies(
  workbench: Workbench,
  context: ImportContext,
  { calls, names }: HeldSources,
  copies: Launched,
  exclusive: Float64Array | null,
): Promise<void> {
  const { shape, shapes, rows, bytes } = copies.events;
  const ofShape = ofShapes(shape);
  await keepRows(workbench, context, 'copies', rows, {
    ...launchColumns(copies, calls, exclusive, ofShape),
    kind: ofShape(shapes['kind'], names),
    src_kind: ofShape(shapes['src_kind'], names),
    dst_kind: ofShape(shapes['dst_kind'], names),
    bytes: direct(bytes!),
  });
}

function launchColumns(
  { events, call, place }: Launched,
  calls: HeldEvents,
  exclusive: Float64Array | null,
  ofShape: ReturnType<typeof ofShapes>,
) {
  const { shapes } = events;
  const duration = direct(events.dur_ns);
  return {
    start_ns: direct(events.start_ns),
    dur_ns: duration,
    exclusive_ns: exclusive ? direct(exclusive) : duration,
    pid: ofShape(shapes['pid']),
    tid: { ...gathered(call, calls.shape), values: calls.shapes['tid'] ?? new Float64Array() },
    rank: ofShape(shapes['rank']),
    device: ofShape(shapes['device']),
    context: ofShape(shapes['context']),
    stream: ofShape(shapes['stream']),
    correlation: direct(events.correlation),
    graph_node: ofShape(shapes['graph_node']),
    api_start_ns: gathered(call, calls.start_ns),
    api_dur_ns: gathered(call, calls.dur_ns),
    stage_id: computed((row) => stageOf(place[row]!)),
    attributed_by: computed((row) => attributionOf(place[row]!), attributions),
  };
}
