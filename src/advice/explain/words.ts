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

/** 23.3 ms, 0.51 ms, 4.2 µs, 1.25 s: three digits. */
export function msText(ms: number): string {
  const size = Math.abs(ms);
  if (size >= 1000) return `${digits(ms / 1000)} s`;
  return size >= 0.01 || ms === 0 ? `${digits(ms)} ms` : `${digits(ms * 1000)} µs`;
}

const digits = (value: number): string => {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
};

export const percentText = (share: number): string => {
  const percent = 100 * share;
  return `${Math.abs(percent) >= 10 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
};
