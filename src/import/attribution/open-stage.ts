import type { StageKind } from '../../model/record.js';
import type { StageName } from '../stage-names.js';

/** A range that has begun, with what its name and its place among the others say. */
export interface OpenStage {
  id: number;
  parent: OpenStage | null;
  /** Nearest stage that is a phase, itself included: of a kind that is not other, or numbered and in no other phase. */
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

/** Where a thread stands in the workload, for marks that do not number themselves. */
export interface Position {
  iteration: number;
  /** Number the next decode step gets. */
  step: number;
}

/** Warm-up repeats are counted on their own, so that the measured ones begin at 0. */
export interface Positions {
  measured: Position;
  warmup: Position;
}

export const freshPositions = (): Positions => ({
  measured: { iteration: -1, step: 0 },
  warmup: { iteration: -1, step: 0 },
});

export interface Range {
  startNs: number;
  endNs: number;
  name: number;
  rank: number;
}

const stepKinds: ReadonlySet<StageKind> = new Set(['prefill', 'decode', 'mixed']);

/** One kind; or steps of which one is a mixed batch, which holds the other's work. */
export const alike = (one: StageKind, other: StageKind): boolean =>
  one === other || ((one === 'mixed' || other === 'mixed') && stepKinds.has(one) && stepKinds.has(other));

/**
 * Decode steps are numbered from 0 after each prefill; a prefill begins the next iteration. A mark around marks of
 * its own kind gives its number to the first of them (foldStages says what becomes of it).
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
  const isPhase = stage.kind !== 'other' || (label.step_index !== null && outer === null);
  stage.phase = isPhase ? stage : outer;
  number(stage, outer, warmup ? positions.warmup : positions.measured);
  return stage;
}

function number(stage: OpenStage, outer: OpenStage | null, position: Position): void {
  const container = outer && alike(outer.kind, stage.kind) ? outer : null;
  switch (stage.kind) {
    case 'prefill':
      stage.iteration ??= container ? container.iteration : position.iteration + 1;
      // A second chunk of one prefill does not begin the numbering anew.
      if (!container || stage.iteration !== position.iteration) position.step = 0;
      stage.step ??= 0;
      position.iteration = stage.iteration ?? position.iteration;
      return;
    case 'decode':
    case 'mixed':
      if (container && container.step !== null) {
        if (container.label.step_index !== null) {
          // The outer one numbers itself: this is a part of that step.
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
    case 'load':
    case 'warmup':
    case 'other':
  }
}
