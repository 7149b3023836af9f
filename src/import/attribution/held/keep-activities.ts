import { opClasses } from '../../../model/classes.js';
import type { Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { attributions } from '../host-threads.js';
import { attributionOf, stageOf } from './calls.js';
import { computed, direct, gathered, keepRows, ofShape } from './columns.js';
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
  const { events } = kernels;
  const of = (column: string, texts?: readonly string[]) =>
    ofShape(events.shape, events.shapes[column], texts);
  await keepRows(workbench, context, 'kernels', events.rows, {
    ...launchColumns(kernels, calls, exclusive),
    name: of('name', names),
    short_name: of('short_name', names),
    class: ofShape(events.shape, labels.class, opClasses),
    tile: ofShape(events.shape, labels.tile, labels.texts),
    dtype: ofShape(events.shape, labels.dtype, labels.texts),
    grid: of('grid', names),
    block: of('block', names),
    registers: of('registers'),
    shared_mem_bytes: of('shared_mem_bytes'),
    graph_id: of('graph_id'),
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
  const { events } = copies;
  const of = (column: string) => ofShape(events.shape, events.shapes[column], names);
  await keepRows(workbench, context, 'copies', events.rows, {
    ...launchColumns(copies, calls, exclusive),
    kind: of('kind'),
    src_kind: of('src_kind'),
    dst_kind: of('dst_kind'),
    bytes: direct(events.bytes!),
  });
}

function launchColumns({ events, call, place }: Launched, calls: HeldEvents, exclusive: Float64Array | null) {
  const { shape, shapes } = events;
  return {
    start_ns: direct(events.start_ns),
    dur_ns: direct(events.dur_ns),
    exclusive_ns: direct(exclusive ?? events.dur_ns),
    pid: ofShape(shape, shapes['pid']),
    tid: tidColumn(call, calls),
    rank: ofShape(shape, shapes['rank']),
    device: ofShape(shape, shapes['device']),
    context: ofShape(shape, shapes['context']),
    stream: ofShape(shape, shapes['stream']),
    correlation: direct(events.correlation),
    graph_node: ofShape(shape, shapes['graph_node']),
    api_start_ns: gathered(call, calls.start_ns),
    api_dur_ns: gathered(call, calls.dur_ns),
    stage_id: computed((row) => stageOf(place[row]!)),
    attributed_by: computed((row) => attributionOf(place[row]!), attributions),
  };
}

/** Of the call. */
export function tidColumn(call: Int32Array, calls: HeldEvents) {
  const tids = calls.shapes['tid'];
  if (!tids) return null;
  return computed((row) => (call[row]! < 0 ? Number.NaN : tids[calls.shape[call[row]!]!]!));
}
