import { type EngineStage, checkProfile, engineRule, gainOfMost } from '../engine-rule.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { minShare } from '../stage-rule.js';
import { count, everyInstance, ms, part } from '../words.js';

const causes = [
  {
    bar: 'host.runtime_call',
    what: 'Time in the runtime before the first and after the last operator',
    cause: 'Inputs and outputs (KV cache tensors, logits) are bound again in every call.',
    change: 'Keep inputs and outputs bound between calls, so that they are not passed again each time.',
  },
  {
    bar: 'host.runtime_dispatch',
    what: 'Time in the runtime between operators',
    cause: 'The runtime schedules and starts every operator of the graph separately.',
    change: 'Export a graph with fused operators: it has fewer operators to start.',
  },
] as const;

/** A large part of a step is spent in the runtime outside of operators. */
export const runtimeOverhead = engineRule(
  {
    id: 'runtime_overhead',
    title: 'Runtime overhead',
    docs: {
      finds: 'A large part of a step is spent in the runtime outside of operators.',
      needs: 'a session of `inferscope profile`',
      gain: '75 % of that time; range 50 % to all of it.',
      change: 'Keep inputs and outputs bound between calls, or fuse operators.',
      withheld:
        'less than 5 % of the stage is affected, or the profiled and the clean pass differ by more than 10 % of the stage',
    },
    references: [],
    noise: true,
    profiledParts: true,
  },
  (context, stage) => Promise.all(causes.map((cause) => finding(context, stage, cause))),
);

async function finding(
  context: FindingContext,
  { kind, wall_ms: wall, waterfall }: EngineStage,
  { bar, what, cause, change }: (typeof causes)[number],
): Promise<FoundDraft | string> {
  const causeBar = waterfall.bars.find(({ id }) => id === bar);
  const time = causeBar?.ms ?? 0;
  if (!causeBar?.sql || time < minShare * wall) return `${bar} takes ${part(time, wall)}`;
  const { evidence } = await context.evidence<{ what: string; count: number | null; ms: number }>(
    causeBar.sql,
    ([first]) => `${count(first?.count ?? 0)} gaps in ${everyInstance(kind)}, ${ms(time)}`,
  );
  return {
    stage: kind,
    title: (share) => `${what}: ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause,
    change: { kind: 'config', text: change, example: null },
    gain: gainOfMost(time, wall),
    confidence: 'medium',
    bars: [bar],
    evidence: [evidence],
    check: checkProfile,
  };
}
