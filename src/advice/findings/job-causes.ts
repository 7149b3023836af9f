import {
  type ExpertLoad,
  readHotExpert,
  type LinkUse,
  type Pipeline,
  readPipeline,
  readSlowLink,
} from '../../facts/collectives/job.js';
import { type KvTransfer, kvTransfersSql } from '../../facts/collectives/transfers.js';
import { collectiveSource } from '../../facts/trace/collectives.js';
import { rankRanges } from '../../model/ranks.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { capturesOfRanks } from './rank-times.js';
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
  const { recorded, ranks } = await collectiveSource(database, captures);
  if (!recorded || ranks < 2) return null;
  return {
    captures,
    link: await readSlowLink(database, captures, stage),
    expert: await readHotExpert(database, captures, stage),
    pipeline: await readPipeline(database, captures, { ...stage, ranks }),
    kvTransfers: (
      await database.query<KvTransfer>(kvTransfersSql(captures, stage.kind, stage.instances))
    ).filter(({ rank }) => rank === context.scope?.source.focus.rank),
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
