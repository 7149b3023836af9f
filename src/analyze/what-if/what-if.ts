import { document, type Document } from '../../model/document.js';
import { type WhatIfResult, whatIfVersion } from '../../model/documents/explain.js';
import { figure, type MissingFigure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import { findingContext, findings } from '../findings/findings.js';
import type { ScopeOptions } from '../trace/scope.js';
import { judgedStages, sessionWaterfalls } from '../waterfall/session-waterfalls.js';
import { fromFindings } from './finding-changes.js';
import { initialStates } from './initial-state.js';
import { withCudaGraph, withoutSync, withPinnedCopies } from './launch-changes.js';
import { type Effect, measuredSpread, type StageState, sumOf } from './stage-state.js';
import { type Change, parseChanges } from './words.js';
import { withBatch, withContext, withDtype, withGpu } from './work-changes.js';
import { sessionIdentity } from '../session-identity.js';

type StageResult = WhatIfResult['stages'][number];

/**
 * What the stages of a session would take after changes, each with an interval: their bars, transformed by a rule a change
 * (docs/measurement.md, what-if), one change after another.
 * @param texts as typed: cudagraph, batch-size=32, … several by commas or several strings
 * @throws E_USAGE for an unknown word, E_DTYPE for a dtype that the device does not compute in
 */
export async function whatIf(
  session: Session,
  texts: readonly string[],
  options: ScopeOptions = {},
): Promise<Document<WhatIfResult>> {
  const changes = parseChanges(texts);
  const database = await session.connect();
  try {
    const { scope, stages, without } = await sessionWaterfalls(session, database, options);
    const context = await findingContext(session, database, scope, judgedStages(stages));
    // Only what a rule reckons itself needs the rules.
    const asked = changes.some(
      ({ word, text }) => word.startsWith('fused-') || text.startsWith('dtype') || text === 'int4',
    );
    const found = asked ? (await findings(context)).findings : [];
    const states = await initialStates(session, context, found);
    const result: WhatIfResult = {
      session: sessionIdentity(session),
      change: changes.map(({ text }) => text).join(', '),
      stages: states.map((state) => changed(state, changes)),
    };
    const why = without.map(({ stage, reason }) => ({
      code: 'no_waterfall',
      severity: 'warning' as const,
      text: stage === null ? `Nothing to predict from: ${reason}.` : `${stage}: ${reason}.`,
    }));
    return document('what-if', whatIfVersion, result, [...why, ...session.issues]);
  } finally {
    await database.close();
  }
}

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
    case 'batch-size':
      return withBatch(state, change.batchSize);
    case 'context-len':
      return withContext(state, change.contextLen);
    case 'dtype':
      return withDtype(state, change.dtype);
    case 'gpu':
      return withGpu(state, change.name);
  }
};

/** One stage after all changes. Errors of the changes add up; the spread of what was measured is independent of them. */
export function changed(before: StageState, changes: readonly Change[]): StageResult {
  let state = before;
  const how = new Map<string, string>();
  const assumptions: string[] = [];
  let less = 0;
  let more = 0;
  for (const change of changes) {
    const effect = apply(state, change);
    if ('reason' in effect) return unknown(before, effect);
    for (const [id, text] of effect.how) how.set(id, text);
    assumptions.push(...effect.assumptions);
    less += effect.lessMs;
    more += effect.moreMs;
    state = effect.state;
  }
  const beforeMs = sumOf(before.bars);
  const afterMs = sumOf(state.bars);
  const measured = measuredSpread(before.waterfall) * afterMs;
  const low = Math.max(0, afterMs - Math.hypot(measured, less));
  const high = afterMs + Math.hypot(measured, more);
  const { batch_before, batch_after } = batches(before, state);
  const perToken = batch_before !== batch_after && before.waterfall.kind !== 'prefill';
  return {
    kind: before.waterfall.kind,
    point: before.waterfall.point,
    before_ms: beforeFigure(before, beforeMs),
    after_ms: figure(afterMs, 'ms', `bars after ${changes.map(({ text }) => text).join(', ')}`, {
      ci95: [low, high],
    }),
    per_token_before_ms: perToken && batch_before ? beforeMs / batch_before : null,
    per_token_after_ms: perToken && batch_after ? afterMs / batch_after : null,
    bars: barsOf(before, state, how),
    assumptions: [...new Set(assumptions)],
  };
}

const batches = (before: StageState, after: StageState) => ({
  batch_before: 'shape' in before.needs ? before.needs.shape.batchSize : null,
  batch_after: 'shape' in after.needs ? after.needs.shape.batchSize : null,
});

/** The clean time where there is one: bars sum to it. */
function beforeFigure({ waterfall }: StageState, ms: number): StageResult['before_ms'] {
  const { clean_ms: clean, measured_ms: measured } = waterfall;
  const told = clean.value !== null && Math.abs(clean.value - ms) <= 0.01 * ms ? clean : measured;
  if (told.value !== null && Math.abs(told.value - ms) <= 0.01 * ms) return told;
  return figure(ms, 'ms', 'bars without what the profiler added');
}

function unknown(before: StageState, why: MissingFigure): StageResult {
  return {
    kind: before.waterfall.kind,
    point: before.waterfall.point,
    before_ms: beforeFigure(before, sumOf(before.bars)),
    after_ms: why,
    per_token_before_ms: null,
    per_token_after_ms: null,
    bars: [],
    assumptions: [],
  };
}

function barsOf(
  before: StageState,
  after: StageState,
  how: ReadonlyMap<string, string>,
): StageResult['bars'] {
  const ids = [...new Set([...before.bars.keys(), ...after.bars.keys()])];
  return ids.flatMap((id) => {
    const from = before.bars.get(id) ?? 0;
    const to = after.bars.get(id) ?? 0;
    if (Math.abs(to - from) <= 1e-9) return [];
    const why =
      how.get(id) ??
      (after.idleBars.has(id) || before.idleBars.has(id)
        ? 'what the device waits for the host: the host itself needs as long as before'
        : 'follows from the others');
    return [{ id, before_ms: from, after_ms: to, how: why }];
  });
}
