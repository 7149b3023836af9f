import type { WhatIfResult } from '../model/documents/explain.js';
import { formatMs, nbsp } from './format.js';

/** "decode step: 9.14 ms → 2.68 ms (2.21 to 3.75 ms), 3.4 times as fast." */
export function whatIfSentence(
  { before_ms: before, after_ms: after, ...stage }: WhatIfResult['stages'][number],
  name: string,
): string {
  if (after.value === null) return `${name}: cannot be told: ${after.reason.text}.`;
  const from = before.value ?? 0;
  const range = after.ci95 ? ` (${formatMs(after.ci95[0])} to ${formatMs(after.ci95[1])})` : '';
  const ratio = after.value > 0 ? from / after.value : 1;
  const words =
    Math.abs(ratio - 1) < 0.005
      ? 'no change'
      : ratio > 1
        ? `${ratio.toFixed(ratio < 1.1 ? 2 : 1)} times as fast`
        : `${(1 / ratio).toFixed(1 / ratio < 1.1 ? 2 : 1)} times as long`;
  const token =
    stage.per_token_before_ms !== null && stage.per_token_after_ms !== null
      ? `; a token ${formatMs(stage.per_token_before_ms)} → ${formatMs(stage.per_token_after_ms)}`
      : '';
  return `${name}: ${formatMs(from)} →${nbsp}${formatMs(after.value)}${range}, ${words}${token}.`;
}
