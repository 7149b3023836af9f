import { isAmong } from '../../model/bars.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { stageLabels } from '../../vocabulary/stages.js';
import { type OperatorStage, operatorStages } from './operators/operator-stages.js';
import type { FindingContext, FoundDraft, Rule, RuleAbout, RuleOutcome } from './rule.js';
import { type StageFacts, stageFacts } from './stage-facts.js';

/** Share of a stage's time: less is within the run-to-run difference. */
export const minShare = 0.05;

export const checkAgain =
  'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain @last~1 --verify @last';

export const noTimeline = 'The session has no GPU timeline.';

/** A stage with its finding, or the reason for none. */
export type StageOutcome = readonly [kind: string, result: FoundDraft | string];

/** "decode: no copies"; without marked stages "whole capture: no copies". */
export const reasonAt = (kind: string, reason: string): string =>
  `${kind === 'outside' ? stageLabels.outside : kind}: ${reason}`;

/** @param whyNotApplicable why the rule does not apply if no stage was judged */
export function outcomeOf(outcomes: readonly StageOutcome[], whyNotApplicable: string): RuleOutcome {
  if (outcomes.length === 0) return { outcome: 'not_applicable', why: whyNotApplicable };
  const findings = outcomes.flatMap(([, result]) => (typeof result === 'string' ? [] : [result]));
  const reasons = outcomes.flatMap(([kind, result]) =>
    typeof result === 'string' ? [reasonAt(kind, result)] : [],
  );
  return findings.length > 0
    ? { outcome: 'fired', findings }
    : { outcome: 'not_fired', why: `${reasons.join('; ')}.` };
}

/**
 * A rule that judges every kind of stage of a timeline separately.
 * @param judge for a GPU timeline: returns a finding, or the reason for none, with numbers
 * @param onCpu the same for a program without a GPU, from its framework's operators; omitted for causes specific to GPUs
 */
export function stageRule(
  about: RuleAbout,
  judge: (context: FindingContext, stage: StageFacts) => Promise<FoundDraft | string>,
  onCpu?: (context: FindingContext, stage: OperatorStage) => Promise<FoundDraft | string>,
): Rule {
  return {
    ...about,
    async find(context) {
      const outcomes: StageOutcome[] = [];
      for (const stage of await stageFacts(context)) outcomes.push([stage.kind, await judge(context, stage)]);
      if (onCpu)
        for (const stage of await operatorStages(context))
          outcomes.push([stage.kind, await onCpu(context, stage)]);
      return outcomeOf(outcomes, noTimeline);
    },
  };
}

/** Bars of a stage by id or id prefix, in the waterfall's order; the given names without a waterfall. */
export function barsOf(context: FindingContext, kind: PhaseKind, names: readonly string[]): string[] {
  const waterfall = context.waterfalls.find((candidate) => candidate.kind === kind);
  if (!waterfall) return [...names];
  return waterfall.bars.map(({ id }) => id).filter((id) => isAmong(id, names));
}

/** Kernel bars of these classes, with or without known necessary time. */
export function classBars(context: FindingContext, kind: PhaseKind, classes: readonly string[]): string[] {
  const heads = ['kernels', 'inefficiency', 'nonessential'];
  const waterfall = context.waterfalls.find((candidate) => candidate.kind === kind);
  const ids = new Set(classes.flatMap((name) => heads.map((head) => `${head}.${name}`)));
  return waterfall ? waterfall.bars.map(({ id }) => id).filter((id) => ids.has(id)) : [];
}
