import {
  collectiveSource,
  collectivesSql,
  type RankCollectives,
  type RankWaiting,
  waitingOfRanks,
} from '../../facts/trace/collectives.js';
import { capturesOfRanks, type RankTime, rankTimesSql } from './rank-times.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Time that this rank waits for another one inside collectives (docs/concepts/stages-and-clocks.md). */
export interface CollectiveWaits {
  focusWaits: RankWaiting;
  /** The rank that waits least, for which the others wait; can be this rank. */
  awaited: RankWaiting;
  focusTime: RankTime | undefined;
  awaitedTime: RankTime | undefined;
  /** Queries of both. */
  sql: { collectives: string; ranks: string };
}

/** Null for a capture of one rank. */
export async function collectiveWaits(
  context: FindingContext,
  stage: StageFacts,
): Promise<CollectiveWaits | null> {
  const { database } = context;
  const captures = capturesOfRanks(context);
  const source = await collectiveSource(database, captures);
  if (source.ranks < 2) return null;
  const { kind, instances } = stage;
  const sql = {
    collectives: collectivesSql(captures, kind, { instances, ...source }),
    ranks: rankTimesSql(context, stage),
  };
  const waiting = waitingOfRanks(await database.query<RankCollectives>(sql.collectives));
  const times = await database.query<RankTime>(sql.ranks);
  const { focus } = context.scope!.source;
  const isSameRank = (a: Pick<RankTime, 'rank' | 'device'>) => (b: Pick<RankTime, 'rank' | 'device'>) =>
    a.rank === b.rank && a.device === b.device;
  const focusWaits = waiting.find(isSameRank(focus));
  const [awaited] = waiting;
  if (!focusWaits || !awaited || waiting.length < 2) return null;
  return {
    focusWaits,
    awaited,
    focusTime: times.find(isSameRank(focusWaits)),
    awaitedTime: times.find(isSameRank(awaited)),
    sql,
  };
}
