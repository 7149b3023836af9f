import {
  type ExpertLoad,
  readHotExpert,
  type LinkUse,
  type Pipeline,
  readPipeline,
  readSlowLink,
} from '../../facts/collectives/job.js';
import { type KvTransfer, kvTransfersSql } from '../../facts/collectives/transfers.js';
import {
  collectiveSource,
  collectivesSql,
  type RankCollectives,
  waitingOfRanks,
} from '../../facts/trace/collectives.js';
import { rankRanges } from '../../model/ranks.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { rankName } from '../../vocabulary/ranks.js';
import { capturesOfRanks, ranksOf, type SlowRank, slowRank } from './rank-times.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Delays of a job's collectives (import --ranks) in a kind of stage, other than one slow rank. */
export interface JobCauses {
  captures: string[];
  link: LinkUse | null;
  expert: ExpertLoad | null;
  pipeline: Pipeline | null;
  /** KV caches that the analyzed rank sends or receives. */
  kvTransfers: KvTransfer[];
  /** What sets the pace once the slow rank, or the slow link, no longer does. */
  paces: { slow: Pace | null; link: Pace | null };
}

/** Another cause: its ranks hardly wait, so they set the pace once the first cause is removed. */
export interface Pace {
  /** How much shorter a step gets until they do, ms per mean instance. */
  ms: number;
  /** "ranks 8-15, which exchange slower, set the pace" */
  text: string;
  rule: string;
}

const causesByContext = new WeakMap<FindingContext, Map<PhaseKind, Promise<JobCauses | null>>>();

/** Computed once per kind. Null if calls of several ranks are not recorded. */
export function jobCauses(context: FindingContext, stage: StageFacts): Promise<JobCauses | null> {
  const kinds = causesByContext.get(context) ?? new Map<PhaseKind, Promise<JobCauses | null>>();
  causesByContext.set(context, kinds);
  const causes = kinds.get(stage.kind) ?? readCauses(context, stage);
  kinds.set(stage.kind, causes);
  return causes;
}

async function readCauses(context: FindingContext, stage: StageFacts): Promise<JobCauses | null> {
  const { database } = context;
  const captures = capturesOfRanks(context);
  const source = await collectiveSource(database, captures);
  const { recorded, ranks } = source;
  if (!recorded || ranks < 2) return null;
  const link = await readSlowLink(database, captures, stage);
  const expert = await readHotExpert(database, captures, stage);
  return {
    captures,
    link,
    expert,
    paces: link ? await readPaces(context, stage, { link, expert }) : { slow: null, link: null },
    pipeline: await readPipeline(database, captures, { ...stage, ranks }),
    kvTransfers: (
      await database.query<KvTransfer>(kvTransfersSql(captures, stage.kind, stage.instances))
    ).filter(({ rank }) => rank === context.scope?.source.focus.rank),
  };
}

/** Whether uneven experts explain at least half of what the slowest rank takes longer. */
export const isSlowForExperts = ({ time, computeMs, hostMs }: SlowRank, expert: ExpertLoad | null): boolean =>
  expert !== null && expert.rank === time.rank && expertStake(expert) >= 0.5 * (computeMs + hostMs);

/** Ranks that wait nearly as long as the delay are other ranks that wait for it, with some noise. */
const maxPaceShare = 0.9;

/**
 * A slow rank and a slow link of other ranks delay the same later collectives, so removing one of them saves only what the ranks of the other
 * wait now.
 */
async function readPaces(
  context: FindingContext,
  stage: StageFacts,
  { link, expert }: { link: LinkUse; expert: ExpertLoad | null },
): Promise<JobCauses['paces']> {
  const { database } = context;
  const slow = slowRank(await ranksOf(context, stage));
  if (slow === null || isSlowForExperts(slow, expert)) return { slow: null, link: null };
  const captures = capturesOfRanks(context);
  const source = await collectiveSource(database, captures);
  const sql = collectivesSql(captures, stage.kind, { instances: stage.instances, ...source });
  const waiting = waitingOfRanks(await database.query<RankCollectives>(sql));
  const leastMs = (isPacing: (rank: number | null) => boolean) =>
    Math.min(
      ...waiting
        .filter(({ rank, unpaired_ms }) => unpaired_ms === 0 && isPacing(rank))
        .map(({ exposed_waiting_ms }) => exposed_waiting_ms),
    );
  const slowMs = slow.computeMs + slow.hostMs;
  const slowest = slow.time.rank;
  const underLinkMs = leastMs((rank) => rank !== slowest && isMember(link, rank));
  const underSlowMs = isMember(link, slowest) ? Infinity : leastMs((rank) => rank === slowest);
  return {
    slow:
      underLinkMs < maxPaceShare * slowMs
        ? {
            ms: underLinkMs,
            text: `ranks ${memberRanges(link)}, which exchange slower, set the pace`,
            rule: 'slow_link',
          }
        : null,
    link:
      underSlowMs < maxPaceShare * link.lost_ms
        ? {
            ms: underSlowMs,
            text: `${rankName(slow.time)}, which computes longer, sets the pace`,
            rule: 'rank_stragglers',
          }
        : null,
  };
}

/** Time affected by uneven experts, ms per instance (mean). */
export const expertStake = ({ wire_ms, waiting_ms }: ExpertLoad): number => wire_ms + waiting_ms;

/** Exposed time of transfers of KV caches, ms per instance (mean). */
export const kvExposedMs = ({ kvTransfers }: JobCauses): number =>
  kvTransfers.reduce((sum, { exposed_ms }) => sum + exposed_ms, 0);

/** "0-3, 8" */
export const memberRanges = ({ members }: LinkUse): string => rankRanges(members.split(', ').map(Number));

/** Whether a rank is in the communicator of a slow link. */
export const isMember = ({ members }: LinkUse, rank: number | null): boolean =>
  rank !== null && members.split(', ').includes(String(rank));
