import type { PhaseKind } from '../../model/documents/trace.js';
import type { FindingContext, FoundDraft, Rule } from './rule.js';
import { type StageFacts, stageFacts } from './stage-facts.js';

/** Of a stage's time: less is within what another run of the same program differs by. */
export const leastShare = 0.05;

export const checkAgain =
  'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain --verify';

/**
 * A rule that judges every kind of stage of a GPU timeline on its own.
 * @param judge a finding, or why there is none, with its numbers
 */
export function stageRule(
  about: Pick<Rule, 'id' | 'title' | 'references'>,
  judge: (context: FindingContext, stage: StageFacts) => Promise<FoundDraft | string>,
): Rule {
  return {
    ...about,
    async find(context) {
      const stages = await stageFacts(context);
      if (stages.length === 0) return { outcome: 'not_applicable', why: 'The session has no GPU timeline.' };
      const findings: FoundDraft[] = [];
      const said: string[] = [];
      for (const stage of stages) {
        const result = await judge(context, stage);
        if (typeof result === 'string') said.push(`${stage.kind}: ${result}`);
        else findings.push(result);
      }
      return findings.length > 0
        ? { outcome: 'fired', findings }
        : { outcome: 'not_fired', why: `${said.join('; ')}.` };
    },
  };
}

/** Bars of a stage whose id or its head is named, in the waterfall's order; the names themselves without a waterfall. */
export function barsOf(context: FindingContext, kind: PhaseKind, names: readonly string[]): string[] {
  const waterfall = context.waterfalls.find((one) => one.kind === kind);
  if (!waterfall) return [...names];
  return waterfall.bars
    .map(({ id }) => id)
    .filter((id) => names.includes(id) || names.includes(id.split('.')[0]!));
}

/** Bars of kernels of these classes, whatever the waterfall knows of their necessary time. */
export function classBars(context: FindingContext, kind: PhaseKind, classes: readonly string[]): string[] {
  const heads = ['kernels', 'inefficiency', 'nonessential'];
  const waterfall = context.waterfalls.find((one) => one.kind === kind);
  const ids = new Set(classes.flatMap((name) => heads.map((head) => `${head}.${name}`)));
  return waterfall ? waterfall.bars.map(({ id }) => id).filter((id) => ids.has(id)) : [];
}
