import { gainOf, pacing } from '../gain.js';
import { isSlowForExperts, jobCauses, type Pace } from '../job-causes.js';
import { ranksOf, type RankTime, rankTimesSql, type SlowRank, slowRank } from '../rank-times.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { type StageFacts, stageFacts } from '../stage-facts.js';
import { checkAgain, minShare } from '../stage-rule.js';
import { factor, instanceWord, ms, part } from '../words.js';
import { rankName } from '../../../vocabulary/ranks.js';

/** One rank computes longer than the others, which wait for it in collectives. */
export const rankStragglers: Rule = {
  id: 'rank_stragglers',
  noise: true,
  title: 'Stragglers between ranks',
  docs: {
    finds: 'One rank computes longer than the others, which wait for it in collectives.',
    needs: 'GPU timelines of two or more ranks that communicate',
    gain: 'What the slowest rank takes beyond the median of the others; where it launches more thread blocks, beyond the mean of all, because its work moves to them. If other ranks share a slow link, at most the time for which they wait for the slowest rank: then the link sets the pace.',
    change: 'Split work evenly, and look for a GPU with lower clocks or another process on that rank.',
    withheld: 'less than 5 % of the stage is affected, or no communication between the devices',
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
    const reasons: string[] = [];
    for (const stage of stages) {
      const ranks = await ranksOf(context, stage);
      if (ranks.length < 2) {
        return { outcome: 'not_applicable', why: 'The capture has one rank on one device.' };
      }
      const slow = slowRank(ranks);
      if (slow === null) {
        reasons.push(`not every rank communicates in ${instanceWord(stage.kind)}`);
        continue;
      }
      const stake = slow.computeMs + slow.hostMs;
      const causes = await jobCauses(context, stage);
      if (isSlowForExperts(slow, causes?.expert ?? null))
        reasons.push(
          `${rankName(slow.time)} computes longer in ${instanceWord(stage.kind)} for uneven experts (expert_imbalance)`,
        );
      else if (slow.computeMs >= slow.hostMs && stake >= minShare * stage.wall_ms)
        findings.push(await finding(context, stage, ranks, { slow, pace: causes?.paces.slow ?? null }));
      else
        reasons.push(
          `${rankName(slow.time)} computes ${ms(slow.computeMs)} longer than ${ranks.length === 2 ? 'the other rank' : 'the others'} in ${instanceWord(stage.kind)}`,
        );
    }
    return findings.length > 0
      ? { outcome: 'fired', findings }
      : { outcome: 'not_fired', why: `${reasons.join('; ')}.` };
  },
};

/** "20 % longer than", or "3.02× as long as" from twice the time on. */
const longerWords = (rankMs: number, usual: number): string =>
  rankMs >= 2 * usual ? `${factor(rankMs / usual)} as long as` : `${part(rankMs - usual, usual)} longer than`;

async function finding(
  context: FindingContext,
  stage: StageFacts,
  ranks: readonly RankTime[],
  { slow, pace }: { slow: SlowRank; pace: Pace | null },
): Promise<FoundDraft> {
  const slowMs = slow.computeMs + slow.hostMs;
  const { advice, ...paced } = pacing(pace, slowMs);
  const { kind, wall_ms: wall } = stage;
  const { evidence } = await context.evidence<Record<string, number>>(
    rankTimesSql(context, stage),
    (rows) => `${rows.length} ranks, the slowest: ${rankName(slow.time)}`,
  );
  const name = rankName(slow.time);
  const otherRanks = ranks.filter((rank) => rank !== slow.time);
  const others = otherRanks.length === 1 ? 'the other rank' : 'the others';
  const mean = (valueOf: (rank: RankTime) => number) =>
    otherRanks.reduce((sum, time) => sum + valueOf(time), 0) / otherRanks.length;
  const usual = mean(({ compute_ms }) => compute_ms);
  const work =
    slow.time.blocks === null
      ? ''
      : slow.hasMoreWork
        ? ` It has more to do: ${factor(slow.time.blocks / mean(({ blocks }) => blocks ?? 0))} the thread blocks.`
        : ` It launches as many thread blocks as ${others}.`;
  return {
    stage: kind,
    title: `Straggler: ${name} computes ${longerWords(slow.time.compute_ms, usual)} ${others} in ${instanceWord(kind)}`,
    at_stake_ms: slowMs,
    cause: `${name} computes ${ms(slow.time.compute_ms)} in ${instanceWord(kind)}, ${others} ${ms(usual)}; the rest of the time is waiting in collectives.${work}`,
    change: {
      kind: 'config',
      text: `${
        slow.hasMoreWork
          ? 'Split work evenly over the ranks: heads, experts, vocabulary, sequences.'
          : 'Look for a GPU with lower clocks or another process on that rank; else split work evenly (heads, experts, vocabulary, sequences).'
      }${advice}`,
      example: 'inferscope monitor: clocks and power of every GPU side by side',
    },
    gain: gainOf(
      wall,
      Math.min(slowMs, pace?.ms ?? slowMs),
      slow.hasMoreWork
        ? 'The work is distributed evenly over the ranks (high: the slowest one computes as long as the others do now).'
        : 'That rank computes as long as the others (low: until the next slowest, or with its work spread over all).',
      { low_ms: slow.minGainMs, high_ms: slow.maxGainMs, what_if: 'no-slow-rank' },
    ),
    ...paced,
    confidence: 'medium',
    bars: [],
    evidence: [evidence],
    check: checkAgain,
  };
}
