import { gainOf } from '../gain.js';
import { expertStake, jobCauses } from '../job-causes.js';
import { nameOf, ranksOf, type RankTime, rankTimesSql } from '../rank-times.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { type StageFacts, stageFacts } from '../stage-facts.js';
import { checkAgain, minShare } from '../stage-rule.js';
import { factor, instanceWord, ms, part } from '../words.js';

/** One rank computes longer than the others, which wait for it in collectives. */
export const rankStragglers: Rule = {
  id: 'rank_stragglers',
  noise: true,
  title: 'Stragglers between ranks',
  docs: {
    finds: 'One rank computes longer than the others, which wait for it in collectives.',
    needs: 'GPU timelines of two or more ranks that communicate',
    gain: "The slowest rank's compute time minus the mean of all ranks; low end half of it.",
    change: 'Split work evenly, and look for a GPU with lower clocks or another process on that rank.',
    withheld: 'less than 5 % of the stage at stake, or no communication between the devices',
  },
  references: [
    {
      title: 'NCCL documentation',
      url: 'https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html',
    },
    {
      title: 'PyTorch: tensor parallelism',
      url: 'https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html',
    },
  ],
  async find(context) {
    const stages = await stageFacts(context);
    const { scope } = context;
    if (!scope || stages.length === 0)
      return { outcome: 'not_applicable', why: 'The session has no GPU timeline.' };
    const findings: FoundDraft[] = [];
    const said: string[] = [];
    for (const stage of stages) {
      const ranks = await ranksOf(context, stage);
      if (ranks.length < 2) {
        return { outcome: 'not_applicable', why: 'The capture has one rank on one device.' };
      }
      const slowest = ranks[0]!;
      const others = ranks.slice(1);
      const usual = others.reduce((sum, { compute_ms }) => sum + compute_ms, 0) / others.length;
      // Evenly distributed work takes the mean of all ranks.
      const even = ranks.reduce((sum, { compute_ms }) => sum + compute_ms, 0) / ranks.length;
      const stake = Math.max(0, slowest.compute_ms - even);
      // Ranks that share work communicate; devices that do not are replicas with different loads.
      const together = ranks.every(({ comm_ms }) => comm_ms > 0);
      const expert = (await jobCauses(context, stage))?.expert ?? null;
      if (expert && expert.rank === slowest.rank && expertStake(expert) >= 0.5 * stake)
        said.push(`${stage.kind}: ${nameOf(slowest)} computes longer for uneven experts (expert_imbalance)`);
      else if (together && stake >= minShare * stage.wall_ms)
        findings.push(await finding(context, stage, { slowest, usual, stake }));
      else
        said.push(
          `${stage.kind}: ${together ? '' : 'without communication, '}${nameOf(slowest)} computes ${ms(stake)} longer than the others`,
        );
    }
    return findings.length > 0
      ? { outcome: 'fired', findings }
      : { outcome: 'not_fired', why: `${said.join('; ')}.` };
  },
};

/** "20 % longer than", from twice as long on "3.02× as long as". */
const longer = (own: number, usual: number): string =>
  own >= 2 * usual ? `${factor(own / usual)} as long as` : `${part(own - usual, usual)} longer than`;

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { slowest, usual, stake }: { slowest: RankTime; usual: number; stake: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall } = stage;
  const { evidence } = await context.evidence<Record<string, number>>(
    rankTimesSql(context, stage),
    (rows) => `${rows.length} ranks, the slowest: ${nameOf(slowest)}`,
  );
  return {
    stage: kind,
    title: `Straggler: ${nameOf(slowest)} computes ${longer(slowest.compute_ms, usual)} the others in ${instanceWord(kind)}`,
    at_stake_ms: stake,
    cause: `${nameOf(slowest)} computes ${ms(slowest.compute_ms)} in ${instanceWord(kind)}, the others ${ms(usual)}; they wait for it in their collectives.`,
    change: {
      kind: 'config',
      text: 'Split work evenly (heads, experts, vocabulary, sequences), and look for a GPU with lower clocks, another process, or a slower link on that rank.',
      example: 'inferscope monitor: clocks and power of every GPU side by side',
    },
    gain: gainOf(
      wall,
      stake,
      'The work is distributed evenly over the ranks (high: the slowest one computes as long as the others do now).',
      { low_ms: 0.5 * stake, high_ms: Math.max(stake, slowest.compute_ms - usual) },
    ),
    confidence: 'medium',
    bars: [],
    evidence: [evidence],
    check: checkAgain,
  };
}
