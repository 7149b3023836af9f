import { stepKinds, type StageKind } from '../../model/record.js';
import type { StageName } from '../stage-names.js';

/** An open range, with the information from its name and its position. */
export interface OpenStage {
  id: number;
  parent: OpenStage | null;
  /** Nearest enclosing phase, possibly itself: a kind that is not other, or numbered or inferred and in no other phase. */
  phase: OpenStage | null;
  depth: number;
  kind: StageKind;
  startNs: number;
  endNs: number;
  /** Code of its name in trace_names. */
  name: number;
  rank: number;
  warmup: boolean;
  iteration: number | null;
  step: number | null;
  label: StageName;
}

/** Progress of a thread in the workload, for marks without numbers. */
interface Position {
  iteration: number;
  /** Number of the next decode step. */
  step: number;
}

/** Warm-up repeats are numbered separately, so that measured ones start at 0. */
export interface Positions {
  measured: Position;
  warmup: Position;
}

export const initialPositions = (): Positions => ({
  measured: { iteration: -1, step: 0 },
  warmup: { iteration: -1, step: 0 },
});

export interface Range {
  startNs: number;
  endNs: number;
  name: number;
  rank: number;
}

const steps: ReadonlySet<StageKind> = new Set(stepKinds);

/** Same kind, or one is a mixed batch that contains the other's work. */
export const isSameWork = (kind: StageKind, otherKind: StageKind): boolean =>
  kind === otherKind ||
  ((kind === 'mixed' || otherKind === 'mixed') && steps.has(kind) && steps.has(otherKind));

/**
 * Decode steps are numbered from 0 after each prefill; a prefill starts the next iteration. A mark around marks of its own
 * kind passes its number to the first of them (see foldStages).
 */
export function openStage(
  id: number,
  range: Range,
  label: StageName,
  parent: OpenStage | null,
  positions: Positions,
): OpenStage {
  const outer = parent?.phase ?? null;
  const warmup = label.warmup || (parent !== null && (parent.warmup || parent.kind === 'load'));
  const stage: OpenStage = {
    id,
    parent,
    phase: null,
    depth: parent ? parent.depth + 1 : 0,
    kind: label.kind,
    startNs: range.startNs,
    endNs: range.endNs,
    name: range.name,
    rank: range.rank,
    warmup,
    iteration: label.iteration,
    step: label.step_index,
    label,
  };
  const isNumbered = label.step_index !== null || label.confidence !== null;
  const isPhase = stage.kind !== 'other' || (isNumbered && outer === null);
  stage.phase = isPhase ? stage : outer;
  numberStage(stage, outer, warmup ? positions.warmup : positions.measured);
  return stage;
}

function numberStage(stage: OpenStage, outer: OpenStage | null, position: Position): void {
  const container = outer && isSameWork(outer.kind, stage.kind) ? outer : null;
  switch (stage.kind) {
    case 'prefill':
      stage.iteration ??= container ? container.iteration : position.iteration + 1;
      // A second chunk of one prefill does not restart the numbering.
      if (!container || stage.iteration !== position.iteration) position.step = 0;
      stage.step ??= 0;
      position.iteration = stage.iteration ?? position.iteration;
      return;
    case 'decode':
    case 'mixed':
      if (container && container.step !== null) {
        if (container.label.step_index !== null) {
          // The outer one has a number, so this is part of that step.
          stage.iteration ??= container.iteration;
          stage.step ??= container.step;
          return;
        }
        position.step = container.step;
        container.step = null;
      }
      stage.iteration ??= Math.max(position.iteration, 0);
      if (stage.iteration !== position.iteration) {
        position.iteration = stage.iteration;
        position.step = 0;
      }
      stage.step ??= position.step;
      position.step = stage.step + 1;
      return;
    case 'sampling':
      stage.iteration ??= outer?.iteration ?? null;
      stage.step ??= outer?.step ?? null;
      return;
    case 'training':
      stage.step ??= position.step;
      position.step = stage.step + 1;
      return;
    case 'other':
      if (stage.label.confidence !== null) stage.step ??= position.step++;
      return;
    case 'load':
    case 'warmup':
  }
}
