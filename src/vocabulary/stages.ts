import type { Finding, WaterfallKind } from '../model/documents/explain.js';
import { plural } from './format.js';
import type { PhaseKind } from '../model/documents/trace-phase.js';

/** Labels of one instance of each kind of stage. */
export const stageLabels: Readonly<Partial<Record<WaterfallKind, string>>> = {
  decode: 'decode step',
  mixed: 'mixed step',
  prefill: 'prefill',
  training: 'training step',
  other: 'step',
  outside: 'whole capture',
  request: 'request',
  sampling: 'sampling',
  load: 'loading',
  warmup: 'warm-up',
};

export const stageMeanings: Readonly<Record<WaterfallKind, string>> = {
  prefill: 'the prompt is processed, up to its first token',
  decode: 'one step that generates one token per sequence, from its start to the start of the next',
  mixed: 'one step of a batch with prefill and decode sequences',
  training: 'one step of training: forward pass, backward pass and optimizer',
  sampling: 'the next token is chosen',
  load: 'weights are read and moved to the device',
  warmup: 'repeats before the timed ones, compilation included',
  other: 'a range marked by the program, by its name; a step of unknown kind, such as a call of a U-Net',
  outside: 'everything outside marked stages; the whole capture if none are marked',
  request:
    'from the start of a prefill to the end of its last step; of a load test: from the time it was due to its last token',
};

/** "request from schedule" of open-loop load; other stages by their kind. */
const labelOf = (kind: string, fromSchedule: boolean): string =>
  `${(stageLabels as Readonly<Record<string, string>>)[kind] ?? kind}${fromSchedule ? ' from schedule' : ''}`;

/** Name of a stage: the one that its program marked, or the label of its kind. */
export const stageLabel = (stage: {
  kind: string;
  name: string | null;
  from_schedule?: true | undefined;
}): string => stage.name ?? labelOf(stage.kind, stage.from_schedule === true);

const withoutArticle = new Set(['load', 'warmup', 'sampling']);

/** One instance in a sentence: "a decode step", "the whole capture", "loading". */
export function instanceWord(kind: string, fromSchedule = false): string {
  const label = labelOf(kind, fromSchedule);
  if (kind === 'outside') return `the ${label}`;
  return withoutArticle.has(kind) ? label : `a ${label}`;
}

/** "every decode step"; "loading" for stages that occur once. */
export function everyInstance(kind: string): string {
  const label = (stageLabels as Readonly<Record<string, string>>)[kind] ?? kind;
  return kind === 'outside' || withoutArticle.has(kind) ? instanceWord(kind) : `every ${label}`;
}

/** After a quantity of one instance: "per decode step", "in the whole capture". */
export function perInstance(kind: string): string {
  const label = (stageLabels as Readonly<Record<string, string>>)[kind] ?? kind;
  return kind === 'outside' || withoutArticle.has(kind) ? `in ${instanceWord(kind)}` : `per ${label}`;
}

/** What a gain is per: "per token", "per pause between stages", "per decode step", "in the whole capture" (stage null). */
export const perGain = (per: NonNullable<Finding['gain']>['per'], stage: Finding['stage']): string =>
  per === 'token'
    ? 'per token'
    : per === 'pause'
      ? 'per pause between stages'
      : perInstance(stage ?? 'outside');

/** "one prefill", "6 decode steps". */
export function instancesOf(count: number, kind: string): string {
  const label = (stageLabels as Readonly<Record<string, string>>)[kind] ?? kind;
  return count === 1 ? `one ${label}` : plural(count, label);
}

/** Label of a phase of a timeline; null is the whole capture, `outside` is outside of all phases. */
export const phaseLabel = (kind: PhaseKind | null): string =>
  kind === null ? stageLabels.outside! : kind === 'outside' ? 'outside stages' : (stageLabels[kind] ?? kind);
