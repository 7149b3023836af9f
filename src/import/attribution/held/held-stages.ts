import type { Columns } from '../../../model/workbench.js';
import { sharedFloats, sharedInts } from './shared-arrays.js';

/** What differs from stage to stage. */
const ownColumns = [
  'parent_id',
  'phase_id',
  'step_index',
  'iteration',
  'start_ns',
  'end_ns',
  'warmup',
] as const;

/** Stages as the host sweep makes them, row n is stage n + 1: what differs, and the rest once for each combination. */
export interface HeldStages {
  rows: number;
  own: Record<(typeof ownColumns)[number], Float64Array>;
  shape: Int32Array;
  /** pid, tid, rank, name, kind, batch_size, new_tokens, context_tokens_sum by code. */
  shapes: Columns;
}

/** @param ranges each becomes a stage */
export function heldStages(ranges: number, shapes: Columns): HeldStages {
  const own = Object.fromEntries(ownColumns.map((name) => [name, sharedFloats(ranges)]));
  return { rows: 0, own: own as HeldStages['own'], shape: sharedInts(ranges), shapes };
}

/** For stagesByTime. */
// oxlint-disable-next-line require-await
export async function* stageBatches({ rows, own, shape, shapes }: HeldStages) {
  if (rows === 0) return;
  const columns: Columns = {
    start_ns: own.start_ns,
    end_ns: own.end_ns,
    pid: Float64Array.from(shape, (code) => shapes['pid']![code]!),
    stage_id: Float64Array.from(shape, (_, row) => row + 1),
  };
  yield { rows, columns };
}
