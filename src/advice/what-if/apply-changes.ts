import type { WhatIfResult } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import { figure, type MissingFigure } from '../../model/figure.js';
import { fromFindings } from './finding-changes.js';
import { withCudaGraph, withoutSync, withPinnedCopies } from './launch-changes.js';
import { withEqualLinks, withoutSlowRank } from './rank-changes.js';
import { type Effect, measuredSpread, type StageState, sumOf } from './stage-state.js';
import type { Change } from './words.js';
import { withBatch, withContext, withDtype, withGpu } from './work-changes.js';

export type StageResult = WhatIfResult['stages'][number];

const apply = (state: StageState, change: Change): Effect | MissingFigure => {
  switch (change.word) {
    case 'cudagraph':
      return withCudaGraph(state);
    case 'no-sync':
      return withoutSync(state);
    case 'pinned-copies':
      return withPinnedCopies(state);
    case 'fused-attention':
    case 'fused-elementwise':
      return fromFindings(state, change.word);
    case 'no-slow-rank':
      return withoutSlowRank(state);
    case 'equal-links':
      return withEqualLinks(state);
    case 'batch-size':
      return withBatch(state, change.batchSize);
    case 'context-len':
      return withContext(state, change.contextLen);
    case 'dtype':
      return withDtype(state, change.dtype);
    case 'gpu':
      return withGpu(state, change);
  }
};

/** One stage after all changes. Errors of the changes add up; the spread of the measurement is independent of them. */
export function applyChanges(before: StageState, changes: readonly Change[]): StageResult {
  let state = before;
  const explanations = new Map<string, string>();
  const assumptions: string[] = [];
  const unchanged: StageResult['unchanged'] = [];
  let lessMs = 0;
  let moreMs = 0;
  for (const change of changes) {
    const effect = apply(state, change);
    if ('reason' in effect) return unpredicted(before, effect);
    for (const [id, text] of effect.explanations) {
      const earlier = explanations.get(id);
      explanations.set(id, earlier === undefined || earlier === text ? text : `${earlier}; then ${text}`);
    }
    assumptions.push(...effect.assumptions);
    if (effect.unchanged !== undefined) unchanged.push({ change: change.text, why: effect.unchanged });
    lessMs += effect.lessMs;
    moreMs += effect.moreMs;
    state = effect.state;
  }
  const beforeMs = sumOf(before.bars);
  const afterMs = sumOf(state.bars);
  const measured = measuredSpread(before.waterfall) * afterMs;
  const low = Math.max(0, afterMs - Math.hypot(measured, lessMs));
  const high = afterMs + Math.hypot(measured, moreMs);
  const rates = perSequence(before, beforeMs, state, afterMs);
  const isPrefill = 'shape' in before.needs && before.needs.shape.phase === 'prefill';
  return {
    kind: before.waterfall.kind,
    point: before.waterfall.point,
    before_ms: headlineTime(before.waterfall),
    after_ms: figure(afterMs, 'ms', `bars after ${changes.map(({ text }) => text).join(', ')}`, {
      ci95: [low, high],
    }),
    per_token_before_ms: isPrefill ? null : rates.before,
    per_token_after_ms: isPrefill ? null : rates.after,
    per_sequence_before_ms: isPrefill ? rates.before : null,
    per_sequence_after_ms: isPrefill ? rates.after : null,
    bars: barsOf(before, state, explanations),
    assumptions: [...new Set(assumptions)],
    unchanged,
  };
}

/** Times divided by the sequences of the stage, which are its tokens in a decode step; null if the batch stays. */
function perSequence(before: StageState, beforeMs: number, after: StageState, afterMs: number) {
  if ('reason' in before.needs || 'reason' in after.needs) return { before: null, after: null };
  const [from, to] = [before.needs.shape.batchSize, after.needs.shape.batchSize];
  return from === to ? { before: null, after: null } : { before: beforeMs / from, after: afterMs / to };
}

function unpredicted(before: StageState, why: MissingFigure): StageResult {
  return {
    kind: before.waterfall.kind,
    point: before.waterfall.point,
    before_ms: headlineTime(before.waterfall),
    after_ms: why,
    per_token_before_ms: null,
    per_token_after_ms: null,
    per_sequence_before_ms: null,
    per_sequence_after_ms: null,
    bars: [],
    assumptions: [],
    unchanged: [],
  };
}

function barsOf(
  before: StageState,
  after: StageState,
  explanations: ReadonlyMap<string, string>,
): StageResult['bars'] {
  const ids = [...new Set([...before.bars.keys(), ...after.bars.keys()])];
  return ids.flatMap((id) => {
    const from = before.bars.get(id) ?? 0;
    const to = after.bars.get(id) ?? 0;
    if (Math.abs(to - from) <= 1e-9) return [];
    const why =
      explanations.get(id) ??
      (after.idleBars.has(id) || before.idleBars.has(id)
        ? 'the device waits for host work that its own work does not cover, and host work stays the same'
        : 'derived from the other bars');
    return [{ id, before_ms: from, after_ms: to, explanation: why }];
  });
}
