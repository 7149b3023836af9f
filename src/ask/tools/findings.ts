import { z } from 'zod';
import type { ExplainResult } from '../../model/documents/explain.js';
import { changeText } from '../../vocabulary/explain-words.js';
import { askTool } from './tool.js';
import { sessionInput, whichSession } from './which-session.js';

/** A finding without its rows, queries and references. */
export function briefFindings({
  findings,
  rules,
  withheld,
  next_steps,
  sentences,
  without_waterfall,
}: ExplainResult) {
  return {
    sentences,
    findings: findings.map(
      ({
        id,
        severity,
        stage,
        title,
        at_stake_ms,
        at_stake_share,
        cause,
        change,
        gain,
        confidence,
        hidden_by,
      }) => ({
        id,
        severity,
        stage,
        title,
        at_stake_ms,
        at_stake_share,
        cause,
        change: change.example === null ? changeText(change) : `${changeText(change)} e.g. ${change.example}`,
        gain: gain && {
          per: gain.per,
          expected_ms: gain.expected_ms,
          low_ms: gain.low_ms,
          high_ms: gain.high_ms,
          after_ms: gain.after_ms,
          assumption: gain.assumption,
        },
        confidence,
        hidden_by,
      }),
    ),
    not_fired: rules.filter(({ outcome }) => outcome === 'not_fired').map(({ rule }) => rule),
    not_applicable: rules.filter(({ outcome }) => outcome === 'not_applicable').map(({ rule }) => rule),
    withheld,
    without_waterfall,
    next_steps,
  };
}

export const findingsTool = askTool({
  name: 'findings',
  description:
    'What the rules found: severity, affected ms, cause, change, expected gain. With an id: one finding with its evidence rows and their SQL, or why a rule did not fire.',
  input: z.object({ ...sessionInput, id: z.string().optional().describe('of a finding, or of a rule') }),
  inputLine: ({ id }) => id ?? null,
  async run({ session, id }, context) {
    const explanation = await context.explain(whichSession(context.sessions, session));
    if (id === undefined) return { data: briefFindings(explanation), rows: explanation.findings.length };
    const matching = explanation.findings.filter((finding) => finding.id === id || finding.rule === id);
    const rules = explanation.rules.filter(
      ({ rule }) => rule === id || matching.some((finding) => finding.rule === rule),
    );
    return { data: { findings: matching, rules }, rows: matching.length };
  },
});
