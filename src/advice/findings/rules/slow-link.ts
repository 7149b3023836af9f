import { gainOf, pacing } from '../gain.js';
import { linksSql, type LinkUse } from '../../../facts/collectives/job.js';
import { collectiveTraffic } from '../../../model/collectives.js';
import { formatBytes, formatQuantity } from '../../../vocabulary/format.js';
import { jobCauses, memberRanges, type Pace } from '../job-causes.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import type { StageFacts } from '../stage-facts.js';
import { everyInstance, factor, ms, part } from '../words.js';

/** The exchange itself is slower in one group of ranks than in the other groups, which do the same. */
export const slowLinkRule = stageRule(
  {
    id: 'slow_link',
    title: 'Slow link between ranks',
    docs: {
      finds:
        'The exchange of one group of ranks takes longer than that of the other groups, which exchange as many bytes.',
      needs: 'the timelines of all ranks of a job (import --ranks) with several groups of ranks',
      gain: "The group's shortest time over ranks beyond the fastest group's, without the part that compute hides. At most what a slow rank of another group waits for it.",
      change: 'Look for a link that is down or narrower, or ranks that were placed on other hosts.',
      withheld:
        'fewer than 8 calls, less than 1.5 times the time of the fastest group, or less than 5 % of the stage',
    },
    references: [
      {
        title: 'nccl-tests: bus bandwidth',
        url: 'https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md',
      },
      {
        title: 'NCCL: troubleshooting',
        url: 'https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = await jobCauses(context, stage);
    if (!causes) return 'the calls of several ranks are not recorded';
    const { link, captures, paces } = causes;
    if (!link) return 'no group of ranks exchanges slower than the others';
    if (link.lost_ms < minShare * stage.wall_ms)
      return `ranks ${memberRanges(link)} exchange slower than the others, ${part(link.lost_ms, stage.wall_ms)}`;
    return finding(context, stage, link, { captures, pace: paces.link });
  },
);

async function finding(
  context: FindingContext,
  { kind, instances, wall_ms: wall }: StageFacts,
  link: LinkUse,
  { captures, pace }: { captures: readonly string[]; pace: Pace | null },
): Promise<FoundDraft> {
  const { advice, ...paced } = pacing(pace, link.lost_ms);
  const { evidence } = await context.evidence<LinkUse>(linksSql(captures, kind, instances), (rows) =>
    rows
      .slice(0, 3)
      .map((row) => `${row.operation} of ranks ${memberRanges(row)}: ${micros(row.wire_us)}`)
      .join('; '),
  );
  const { operation, wire_us: wireUs, other_us: otherUs, bytes, ranks, lost_ms: lost } = link;
  const members = memberRanges(link);
  const missing = ranks - link.recorded_ranks;
  const bus = bytes === null ? null : (collectiveTraffic(operation, bytes, ranks)?.bus ?? null);
  const rate = (us: number) =>
    bus === null ? '' : ` (${formatQuantity(bus / (us / 1e6), 'B/s')} bus bandwidth)`;
  return {
    stage: kind,
    title: (share) =>
      `Slow link${missing > 0 ? ', or a late rank that was not imported' : ''}: the exchange of ranks ${members} takes ${factor(wireUs / otherUs!)} as long as that of other ranks, which costs ${share} of ${everyInstance(kind)}`,
    at_stake_ms: lost,
    cause: `${missing > 0 ? `${link.recorded_ranks} of the ${ranks} ranks of the group were imported; waiting for the rest counts as exchange. ` : ''}An ${operation}${bytes === null ? '' : ` of ${formatBytes(bytes)}`} takes ${micros(wireUs)}${rate(wireUs)} once ranks ${members} have arrived, and ${micros(otherUs!)}${rate(otherUs!)} in the fastest other group of ${ranks} ranks.`,
    change: {
      kind: 'config',
      text: `${missing > 0 ? 'Import all ranks of the group to see whether one of them is late. Else look' : 'Look'} for a link of these GPUs that is down or has errors, and for ranks of the group on another host or behind another switch; keep a group within one NVLink domain.${advice}`,
      example:
        'nvidia-smi topo -m; nvidia-smi nvlink --status; NCCL_DEBUG=INFO names the transport of each channel',
    },
    gain: gainOf(
      wall,
      Math.min(lost, pace?.ms ?? lost),
      `The group exchanges as fast as the fastest other one (low: ${missing > 0 ? 'no gain' : 'half of the difference'}).`,
      { low_ms: missing > 0 ? 0 : 0.5 * lost, what_if: 'equal-links' },
    ),
    ...paced,
    confidence: missing > 0 ? 'low' : 'medium',
    bars: barsOf(context, kind, ['exposed_comm']),
    evidence: [evidence],
    check: checkAgain,
  };
}

const micros = (us: number): string => ms(us / 1e3);
