import type { StageName } from '../stage-names.js';
import { containing, type Process, type Thread } from './host-threads.js';
import { isNested, type NestedStages } from './nested-stages.js';
import { openStage, type OpenStage, type Range } from './open-stage.js';

/** What opening ranges counts. */
export interface OpenedRanges {
  /** Stages so far: they are numbered from 1 on. */
  stages: number;
  nested: NestedStages;
  counts: { overlappingRanges: number };
}

/**
 * Takes a range that begins now as a stage and puts it on the stack of its owner. Ranges come in order of start, of
 * those that begin together the longest first.
 * @param thread null: the range is its process's
 */
export function openRange(
  opened: OpenedRanges,
  process: Process,
  thread: Thread | null,
  range: Range,
  label: StageName,
): OpenStage {
  const { startNs, endNs } = range;
  if (process.ranges.length > 0) process.ranges = process.ranges.filter((stage) => stage.endNs > startNs);
  const owner = thread ?? process;
  const open = owner.ranges;
  if (thread) while (open.length > 0 && open[open.length - 1]!.endNs <= startNs) open.pop();
  let parent = containing(open, endNs);
  if (thread) {
    if (open.length > 0 && parent !== open[open.length - 1]) opened.counts.overlappingRanges++;
    parent ??= containing(process.ranges, endNs);
  }
  const outer = parent?.phase ?? null;
  const stage = openStage(++opened.stages, range, label, parent, owner.positions);
  if (isNested(stage, outer)) {
    const inner = opened.nested.get(outer);
    if (inner) inner.push(stage);
    else opened.nested.set(outer, [stage]);
  }
  open.push(stage);
  return stage;
}
