import { gainOf } from './gain.js';
import type { FindingContext, FoundDraft, Rule, RuleAbout } from './rule.js';
import { classBars } from './stage-rule.js';
import {
  type CountedKernel,
  placeWords,
  type Saving,
  savingsByStage,
  type StageSaving,
} from './counted-kernels.js';
import { type CountedRow, type CounterCondition, faultSql, knownSql } from './kernel-metrics.js';
import { countersOf } from './session-analyses.js';
import { formatPart } from '../../vocabulary/format.js';

/** A problem inside single kernels that hardware counters prove: the condition, the saving of the fix, and the texts. */
interface CounterFault<M extends string, D extends string> {
  condition: CounterCondition<M, D>;
  /** Derived column that must be known, and the reason to state if it is not. */
  known: { column: NoInfer<D>; otherwise: string };
  /** Reason stated if no kernel meets the condition. */
  notFired: string;
  /** Saved shares of the kernel's time. */
  saving(row: CountedRow<M, D>): Saving;
  /** Text for one kernel, with its numbers. @param kernel its label */
  evidence(row: CountedRow<M, D>, kernel: string): string;
  /** Text for the kernel with the most time. */
  title(row: CountedRow<M, D>, kernel: string): string;
  cause(row: CountedRow<M, D>, place: string): string;
  change: FoundDraft['change'];
  assumption: string;
}

/** A rule that judges the kernels in ncu data one by one and states what the problem costs their stage. */
export function counterRule<M extends string, D extends string>(
  about: RuleAbout,
  fault: CounterFault<M, D>,
): Rule {
  return {
    ...about,
    async find(context) {
      const counters = await countersOf(context);
      if (!counters || counters.kernels.length === 0)
        return { outcome: 'not_applicable', why: 'The session has no hardware counters (ncu).' };
      const { rows, evidence } = await context.evidence<CountedRow<M, D>>(
        faultSql(fault.condition),
        (evidenceRows) =>
          evidenceRows
            .slice(0, 3)
            .map((row) => fault.evidence(row, context.kernelLabel(row.kernel_name)))
            .join('; '),
      );
      if (rows.length === 0) {
        const [all] = await context.database.query<{ known: number }>(
          knownSql(fault.condition, fault.known.column),
        );
        return all && all.known > 0
          ? { outcome: 'not_fired', why: fault.notFired }
          : { outcome: 'not_applicable', why: fault.known.otherwise };
      }
      const kernels = rows.map((row): CountedKernel => ({
        name: row.kernel_name,
        grid: row.grid,
        launches: row.launches,
        duration_ns: row.duration_ns,
        saving: fault.saving(row),
      }));
      const [largest] = await savingsByStage(context, counters, kernels);
      if (!largest)
        return {
          outcome: 'not_fired',
          why: 'A change of such kernels would save less than 2 % of the time.',
        };
      const worst = rows.find(({ kernel_name: name }) =>
        largest.kernels.some((kernel) => kernel.name === name),
      )!;
      return {
        outcome: 'fired',
        findings: [{ ...draft(context, fault, worst, largest), evidence: [evidence] }],
      };
    },
  };
}

function draft<M extends string, D extends string>(
  context: FindingContext,
  fault: CounterFault<M, D>,
  worst: CountedRow<M, D>,
  largest: StageSaving,
): Omit<FoundDraft, 'evidence'> {
  const share = formatPart(largest.kernel_ms, largest.total_ms);
  return {
    stage: largest.stage,
    title: fault.title(worst, context.kernelLabel(worst.kernel_name)),
    at_stake_ms: largest.expected_ms,
    share: largest.expected_ms / largest.total_ms,
    cause: fault.cause(worst, `These kernels take ${share} of ${placeWords(largest)}.`),
    change: fault.change,
    gain: gainOf(largest.total_ms, largest.expected_ms, fault.assumption, {
      low_ms: largest.low_ms,
      high_ms: largest.high_ms,
    }),
    confidence: 'medium',
    bars: largest.stage === null ? [] : classBars(context, largest.stage, [...largest.classes]),
    check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
  };
}
