import type { WaterfallKind } from '../model/documents/explain.js';

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
