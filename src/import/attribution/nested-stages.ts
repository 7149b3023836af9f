import { type StageKind, stageKinds } from '../../model/record.js';
import { isSameWork, type OpenStage } from './open-stage.js';

/** Phases with the nested phases that they merge with or only contain. Outer ones come first. */
export type NestedStages = Map<OpenStage, OpenStage[]>;

/** Fields that an outer stage gets from its inner stages; null: unknown. */
interface FoldedFields {
  kind: StageKind;
  step_index: number | null;
  iteration: number | null;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
}

/** Stages by id. */
export interface FoldedStages {
  /** Phases that become kind other, with the phase that they and their contents belong to; null: none. */
  phases: ReadonlyMap<number, number | null>;
  fields: ReadonlyMap<number, FoldedFields>;
}

const foldedNames = ['step_index', 'iteration', 'batch_size', 'new_tokens', 'context_tokens_sum'] as const;

/** Stage columns that folding changes; `kind` is an index in stageKinds. */
export type FoldColumns = Record<
  'stage_id' | 'phase_id' | 'kind' | (typeof foldedNames)[number],
  Float64Array
>;

/** Writes the results of foldStages into the first `rows` of the columns. */
export function applyFolds(folded: FoldedStages, rows: number, columns: FoldColumns): void {
  if (folded.phases.size === 0) return;
  for (let row = 0; row < rows; row++) {
    const id = columns.stage_id[row]!;
    const phase = folded.phases.get(columns.phase_id[row]!);
    if (phase !== undefined) columns.phase_id[row] = phase ?? Number.NaN;
    const fields = folded.fields.get(id);
    if (fields) {
      columns.kind[row] = stageKinds.indexOf(fields.kind);
      for (const name of foldedNames) columns[name][row] = fields[name] ?? Number.NaN;
    }
    if (!folded.phases.has(id)) continue;
    columns.kind[row] = stageKinds.indexOf('other');
    columns.step_index[row] = Number.NaN;
  }
}

/** Whether the phase `stage` must be checked again when all contents of `outer` are known. */
export function isNested(stage: OpenStage, outer: OpenStage | null): outer is OpenStage {
  return (
    outer !== null && stage.phase === stage && (outer.kind === 'other' || isSameWork(outer.kind, stage.kind))
  );
}

/**
 * Nested ranges of one kind are one stage: the outer one gives its bounds, the inner ones its sizes (a program's
 * `decode` around an engine's own mark, two marks of one engine). Around a mixed batch the whole stage is mixed. A
 * `decode` without a number around several steps is not a step, but contains steps. The same applies to a numbered
 * range of kind other (ProfilerStep#3) around phases.
 */
export function foldStages(nested: NestedStages): FoldedStages {
  const phases = new Map<number, number | null>();
  const fieldsById = new Map<number, FoldedFields>();
  const innerStages = new Map<OpenStage, OpenStage[]>();
  for (const [outer, directlyNested] of [...nested].toReversed()) {
    const inner = directlyNested.flatMap((stage) => innerStages.get(stage) ?? [stage]);
    if (isOnlyContainer(outer, inner)) {
      innerStages.set(outer, inner);
      phases.set(outer.id, outer.parent?.phase?.id ?? null);
      continue;
    }
    for (const stage of inner) phases.set(stage.id, outer.id);
    const fields = inner.map((stage) => fieldsById.get(stage.id) ?? unfoldedFields(stage));
    fieldsById.set(outer.id, foldFields(outer, fields));
  }
  for (const [stage, target] of phases) {
    let phase = target;
    while (phase !== null && phases.has(phase)) phase = phases.get(phase)!;
    phases.set(stage, phase);
  }
  return { phases, fields: fieldsById };
}

function isOnlyContainer({ kind, label }: OpenStage, inner: readonly OpenStage[]): boolean {
  const isStep = kind === 'decode' || kind === 'mixed';
  return kind === 'other' || (isStep && label.step_index === null && inner.length > 1);
}

const unfoldedFields = ({ kind, step, iteration, label }: OpenStage): FoldedFields => ({
  kind,
  step_index: step,
  iteration: label.iteration ?? iteration,
  batch_size: label.batch_size,
  new_tokens: label.new_tokens,
  context_tokens_sum: label.context_tokens_sum,
});

/** New tokens of several inner ranges (chunks of a prefill) are summed. */
function foldFields(
  { kind, step, iteration, label }: OpenStage,
  inner: readonly FoldedFields[],
): FoldedFields {
  const first = inner[0]!;
  const single = inner.length === 1;
  const tokens = inner.reduce<number | null>(
    (sum, stage) => (sum === null || stage.new_tokens === null ? null : sum + stage.new_tokens),
    0,
  );
  return {
    // An engine's own mark has the sizes of its batch.
    kind: inner.some((stage) => stage.kind === 'mixed') ? 'mixed' : kind,
    step_index: step ?? first.step_index,
    iteration: label.iteration ?? first.iteration ?? iteration,
    batch_size:
      label.batch_size ??
      (inner.every((stage) => stage.batch_size === first.batch_size) ? first.batch_size : null),
    new_tokens: label.new_tokens ?? tokens,
    context_tokens_sum: label.context_tokens_sum ?? (single ? first.context_tokens_sum : null),
  };
}
