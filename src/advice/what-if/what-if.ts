import { type Issue, document, type Document } from '../../model/document.js';
import { type WhatIfResult, whatIfVersion } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';
import { findingContext, firedRules } from '../findings/findings.js';
import { sessionIdentity } from '../../facts/session-identity.js';
import type { ScopeOptions } from '../../facts/trace/scope.js';
import { judgedStages, sessionWaterfalls } from '../../facts/waterfall/session-waterfalls.js';
import { applyChanges } from './apply-changes.js';
import { changeableKinds, initialStates } from './initial-state.js';
import type { StageState } from './stage-state.js';
import { parseChanges } from './words.js';
import { stageLabel } from '../../vocabulary/stages.js';
import { capitalize } from '../../vocabulary/sentence.js';

/**
 * Predicted times of a session's stages after changes, with intervals: each change transforms the bars
 * (docs/concepts/waterfall.md, what-if), one after another.
 * @param texts as typed: cudagraph, batch-size=32, … several by commas or several strings
 * @throws E_USAGE for an unknown word, E_DTYPE for a dtype that the device does not compute in
 */
export async function whatIf(
  session: Session,
  texts: readonly string[],
  options: ScopeOptions = {},
): Promise<Document<WhatIfResult>> {
  const changes = parseChanges(texts);
  // Only gains computed by a rule need the rules.
  const withRules = changes.some(({ word }) => word.startsWith('fused-'));
  return predictStages(session, await measuredStages(session, { ...options, withRules }), texts);
}

interface MeasuredStages {
  states: StageState[];
  issues: Issue[];
}

/**
 * Initial states of the changes, for pages that request one change after another.
 * @param options.withRules includes gains computed by rules, which fused-… needs
 */
export async function measuredStages(
  session: Session,
  { withRules, ...options }: ScopeOptions & { withRules: boolean },
): Promise<MeasuredStages> {
  const database = await session.connect();
  try {
    const { scope, stages, withoutWaterfall } = await sessionWaterfalls(session, database, options);
    const context = await findingContext(session, database, scope, judgedStages(stages));
    const drafts = withRules ? (await firedRules(context)).ruleFindings.map(({ draft }) => draft) : [];
    const issues = withoutWaterfall.map(({ stage, reason }): Issue => ({
      code: 'no_waterfall',
      severity: 'warning',
      text: `${capitalize(stage === null ? reason : `${stage}: ${reason}`)}.`,
    }));
    const states = await initialStates(session, context, drafts);
    if (states.length === 0 && stages.some(({ kind }) => changeableKinds.has(kind)))
      issues.push({
        code: 'no_waterfall',
        severity: 'warning',
        text: 'The session has neither a GPU timeline nor a recorded workload.',
      });
    else if (states.length === 0 && stages.length > 0 && issues.length === 0)
      issues.push({
        code: 'no_waterfall',
        severity: 'warning',
        text: `Changes are predicted for prefill, decode, mixed and training steps and for a capture without marks; this session has only: ${[...new Set(stages.map(stageLabel))].join(', ')}.`,
      });
    return { states, issues };
  } finally {
    await database.close();
  }
}

/** @throws as whatIf */
export function predictStages(
  session: Session,
  { states, issues }: MeasuredStages,
  texts: readonly string[],
): Document<WhatIfResult> {
  const changes = parseChanges(texts);
  const result: WhatIfResult = {
    session: sessionIdentity(session),
    change: changes.map(({ text }) => text).join(', '),
    stages: states.map((state) => applyChanges(state, changes)),
  };
  return document('what-if', whatIfVersion, result, [...issues, ...session.issues]);
}
