import { gainOf } from '../gain.js';
import { type ExpertLoad, expertsSql } from '../../../facts/collectives/job.js';
import { expertStake, jobCauses } from '../job-causes.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { checkAgain, minShare, stageRule } from '../stage-rule.js';
import type { StageFacts } from '../stage-facts.js';
import { everyInstance, factor, instanceWord, ms, part, percent } from '../words.js';

/** One rank receives more tokens for its experts than the others, which wait for it. */
export const expertImbalance = stageRule(
  {
    id: 'expert_imbalance',
    title: 'Uneven experts',
    docs: {
      finds:
        'One rank receives more in all-to-all calls than the others (a hot expert), which wait until it has computed.',
      needs:
        'the timelines of all ranks of a job (import --ranks) with the sizes of the calls in their traces',
      gain: "The exchange of the largest part beyond a mean one, and the others' waiting until that rank arrives, less what even work adds to them.",
      change: 'Replicate or move the hot experts, or balance the routing.',
      withheld:
        'fewer than 8 uneven calls, another rank receives most in more than 40 % of them, or less than 5 % of the stage',
    },
    references: [
      { title: 'EPLB: expert parallelism load balancer', url: 'https://github.com/deepseek-ai/EPLB' },
      {
        title: 'vLLM: expert parallel deployment',
        url: 'https://docs.vllm.ai/en/latest/serving/expert_parallel_deployment.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = await jobCauses(context, stage);
    if (!causes) return 'the calls of several ranks are not recorded';
    const { expert, captures } = causes;
    if (!expert) return 'no rank receives more than the others in most all-to-all calls';
    const stake = expertStake(expert);
    if (stake < minShare * stage.wall_ms)
      return `rank ${expert.rank} receives most, which costs ${part(stake, stage.wall_ms)}`;
    return finding(context, stage, expert, captures);
  },
);

async function finding(
  context: FindingContext,
  { kind, instances, wall_ms: wall }: StageFacts,
  expert: ExpertLoad,
  captures: readonly string[],
): Promise<FoundDraft> {
  const { evidence } = await context.evidence<ExpertLoad>(expertsSql(captures, kind, instances), (rows) =>
    rows
      .slice(0, 3)
      .map(
        (row) =>
          `${row.communicator}: rank ${row.rank} receives most in ${row.rank_calls} of ${row.uneven} uneven calls`,
      )
      .join('; '),
  );
  const {
    rank,
    rank_calls: rankCalls,
    uneven,
    imbalance,
    wire_ms: wire,
    waiting_ms: waiting,
    ranks,
  } = expert;
  const stake = expertStake(expert);
  return {
    stage: kind,
    title: (share) =>
      `Uneven experts: rank ${rank} receives ${factor(imbalance)} the mean, which costs ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `In ${percent(rankCalls / uneven)} of ${uneven} all-to-all calls with uneven parts rank ${rank} receives most, ${factor(imbalance)} the mean of ${ranks} ranks. In ${instanceWord(kind)} the largest part takes ${ms(wire)} longer than a mean one, and the others wait ${ms(waiting)} for that rank.`,
    change: {
      kind: 'config',
      text: 'Replicate the hot experts or place them on other ranks (expert load balancing), or add a balancing term to the router; check whether the measured requests are those of production.',
      example: 'vllm serve … --enable-expert-parallel --enable-eplb; sglang: --enable-eplb',
    },
    gain: gainOf(wall, stake, 'All ranks receive the mean (low: half of the difference remains).', {
      low_ms: 0.5 * stake,
    }),
    confidence: 'medium',
    covers: ['rank_stragglers'],
    bars: [],
    evidence: [evidence],
    check: checkAgain,
  };
}
