import type { WaterfallKind } from '../../model/documents/explain.js';

const instances: Partial<Record<WaterfallKind, string>> = {
  decode: 'a decode step',
  mixed: 'a mixed step',
  prefill: 'a prefill',
  other: 'a step',
  outside: 'the whole capture',
  request: 'a request',
  load: 'loading',
  warmup: 'warm-up',
  sampling: 'sampling',
};

/** One instance of a stage in words: "a decode step". */
export const instanceWord = (kind: WaterfallKind): string => instances[kind] ?? `one ${kind}`;
