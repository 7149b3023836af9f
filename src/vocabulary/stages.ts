import type { WaterfallKind } from '../model/documents/explain.js';
import type { PhaseKind } from '../model/documents/trace-phase.js';

/** One instance of each kind of stage, in words. */
export const stageLabels: Readonly<Partial<Record<WaterfallKind, string>>> = {
  decode: 'decode step',
  mixed: 'mixed step',
  prefill: 'prefill',
  other: 'step',
  outside: 'whole capture',
  request: 'request',
  sampling: 'sampling',
  load: 'loading',
  warmup: 'warm-up',
};

/** A phase of a timeline; null is the whole capture, outside what ran in no phase. */
export const phaseLabel = (kind: PhaseKind | null): string =>
  kind === null ? stageLabels.outside! : kind === 'outside' ? 'outside phases' : (stageLabels[kind] ?? kind);
