import type { StageName } from '../stage-names.js';
import { findContaining, type Process, type Thread } from './host-threads.js';
import { isNested, type NestedStages } from './nested-stages.js';
import { openStage, type OpenStage, type Range } from './open-stage.js';

/** What opening the ranges of a capture collects. */
export interface OpenedRanges {
  /** Number of stages so far; numbers start at 1. */
  stages: number;
  nested: NestedStages;
  counts: { overlappingRanges: number };
}

/**
 * Registers a starting range as a stage and pushes it on its owner's stack. Ranges must be sorted by start, longest
 * first.
 * @param thread null: the range belongs to its process
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
  let parent = findContaining(open, endNs);
  if (thread) {
    if (open.length > 0 && parent !== open[open.length - 1]) opened.counts.overlappingRanges++;
    parent ??= findContaining(process.ranges, endNs);
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
