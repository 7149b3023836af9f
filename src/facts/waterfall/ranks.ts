import { stepKinds } from '../../model/documents/trace-phase.js';
import { hasRows } from '../../model/subjects.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeKernelStreams } from '../trace/kernel-streams.js';
import {
  captureList,
  collectiveSource,
  collectivesSql,
  type RankCollectives,
  waitingOfRanks,
} from '../trace/collectives.js';
import { traceScope } from '../derived/scope.js';
import { literal, type ScopeOptions, type TraceScope } from '../trace/scope.js';

/** Kinds decided by the slowest rank: those that every rank runs at the same time. */
const deciding: ReadonlySet<PhaseKind> = new Set(stepKinds);

/** Ranks that meet in every step take as long; where their times differ by no more, who waits for whom decides. */
const asLong = 0.05;
/** Of a stage's time that the others must wait for a rank before it is said. */
const minWaiting = 0.05;

/** The rank that the others wait for in their collectives. */
export interface AwaitedRank {
  kind: PhaseKind;
  rank: number | null;
  device: number | null;
  /** What the other rank that waits longest waits in a mean instance, ms. */
  waiting_ms: number;
}

interface RankTime {
  rank: number | null;
  device: number | null;
  kind: PhaseKind;
  instances: number;
  measured_ms: number;
}

/** Those with the most kernel time are compared: each takes 20 queries, and a damaged capture may name a device per kernel. */
const mostRanks = 64;

/**
 * The same of a job, in which each rank is a capture of its own: those with the most kernel time, and as many with the least
 * time in collectives, among which is the rank that waits least.
 */
const mostOfJob = 8;

/** What the explanation of a session looks at: the rank asked for, else the one that the others wait for. */
export async function timelineScope(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions,
): Promise<{ scope: TraceScope; slowest: SlowestRank | null }> {
  const slowest = hasRows(session.manifest, 'kernels') ? await slowestRank(session, database, options) : null;
  return { scope: await traceScope(database, session.manifest, slowest?.focus ?? options), slowest };
}

interface SlowestRank {
  focus: ScopeOptions;
  ranks: RankTime[];
  /** How many there are, those included that were not compared. */
  recorded: number;
  awaited: AwaitedRank | null;
}

/**
 * Mean W of every rank and device of the capture, and which of them a stage over several ranks waits for: in the stage
 * that takes longest of all the one that waits least in its collectives, where the ranks take as long, else the slowest.
 * Null where there is one, or where the rank was chosen.
 */
async function slowestRank(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions,
): Promise<SlowestRank | null> {
  await makeKernelStreams(database);
  const distinct = await database.query<{ rank: number | null; device: number | null }>(
    'SELECT DISTINCT rank, device FROM kernel_streams',
  );
  if (distinct.length < 2) return null;
  const { found, captures, recorded } = await ranksOf(session, options);
  const asked = found.filter(
    ({ rank, device }) =>
      (options.rank === undefined || rank === options.rank) &&
      (options.device === undefined || device === options.device),
  );
  if (asked.length < 2) return null;
  const ranks: RankTime[] = [];
  for (const one of asked) ranks.push(...(await timesOf(session, one)));
  const total = (kind: PhaseKind) =>
    ranks.filter((row) => row.kind === kind).reduce((sum, row) => sum + row.instances * row.measured_ms, 0);
  const decided = ranks.filter(({ kind }) => deciding.has(kind));
  const kinds = [...new Set((decided.length > 0 ? decided : ranks).map(({ kind }) => kind))].toSorted(
    (a, b) => total(b) - total(a),
  );
  const own = ranks.filter(({ kind }) => kind === kinds[0]).toSorted((a, b) => b.measured_ms - a.measured_ms);
  const [slowest] = own;
  if (!slowest) return null;
  const awaited = await awaitedRank(database, captures, own);
  return { focus: optionsOf(awaited ?? slowest), ranks, recorded: Math.max(recorded, asked.length), awaited };
}

/** Null where the ranks do not take as long, no collectives can be paired, or hardly any of the time is waiting. */
async function awaitedRank(
  database: SessionDatabase,
  captures: readonly string[],
  own: readonly RankTime[],
): Promise<AwaitedRank | null> {
  const { kind, measured_ms: wall, instances } = own[0]!;
  const near = own.filter(({ measured_ms }) => measured_ms >= (1 - asLong) * wall);
  if (near.length < 2) return null;
  const source = await collectiveSource(database, captures);
  const waiting = waitingOfRanks(
    await database.query<RankCollectives>(collectivesSql(captures, kind, { instances, ...source })),
  );
  const [least] = waiting;
  const most = waiting.at(-1);
  if (!least || !most || most.waiting_ms - least.waiting_ms < minWaiting * wall) return null;
  // Once, as of ranks that do not begin at the same time, is no property of the rank.
  if (most.waiting_instances < instances / 2) return null;
  const isNear = near.some(({ rank, device }) => rank === least.rank && device === least.device);
  return isNear ? { kind, rank: least.rank, device: least.device, waiting_ms: most.waiting_ms } : null;
}

const optionsOf = ({ rank, device }: Pick<AwaitedRank, 'rank' | 'device'>): ScopeOptions => ({
  ...(rank === null ? {} : { rank }),
  ...(device === null ? {} : { device }),
});

/** Of the capture that is looked at, and of those of the other ranks of its job. */
async function ranksOf(session: Session, options: ScopeOptions) {
  const database = await session.connect();
  try {
    const { source } = await traceScope(database, session.manifest, options);
    const { execution_id, capture_id } = source.attribution;
    const job = session.manifest.captures
      .filter((capture) => capture.execution_id === execution_id)
      .map((capture) => capture.capture_id);
    const { recorded } = await collectiveSource(database, [capture_id]);
    const captures = recorded ? job : [capture_id];
    const found = await database.query<{ rank: number | null; device: number | null; recorded: number }>(
      `WITH busy AS (
         SELECT rank, device, sum(dur_ns) AS busy_ns, ${recorded ? '(SELECT sum(c.dur_ns) FROM collectives c WHERE c.rank = k.rank AND c.device = k.device)' : '0'} AS shared_ns FROM kernel_streams k
         WHERE execution_id = ${literal(execution_id)} AND capture_id IN (${captureList(captures)}) GROUP BY ALL),
       placed AS (SELECT *, row_number() OVER (ORDER BY busy_ns DESC, rank, device) AS most, row_number() OVER (ORDER BY shared_ns, rank, device) AS least FROM busy)
       SELECT rank, device, (SELECT count(*) FROM busy) AS recorded FROM placed WHERE ${recorded ? `most <= ${mostOfJob} OR least <= ${mostOfJob}` : `most <= ${mostRanks}`} ORDER BY rank, device`,
    );
    return { found, captures, recorded: found[0]?.recorded ?? 0 };
  } finally {
    await database.close();
  }
}

async function timesOf(
  session: Session,
  { rank, device }: { rank: number | null; device: number | null },
): Promise<RankTime[]> {
  const database = await session.connect();
  try {
    const scope = await traceScope(database, session.manifest, optionsOf({ rank, device }));
    await scope.need('windows');
    const rows = await database.query<Omit<RankTime, 'rank' | 'device'>>(
      `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS measured_ms FROM windows
       WHERE kind <> 'sampling' GROUP BY kind`,
    );
    return rows.map((row) => ({ rank, device, ...row }));
  } finally {
    await database.close();
  }
}

/** Every rank's mean W: the one that the bars are of first, then the slowest. */
export function withRanks(
  stages: readonly StageWaterfall[],
  { ranks, recorded }: Pick<SlowestRank, 'ranks' | 'recorded'>,
  shown: ScopeOptions,
): StageWaterfall[] {
  if (ranks.length === 0) return [...stages];
  const compared = new Set(ranks.map(({ rank, device }) => `${rank} ${device}`)).size;
  const isShown = ({ rank, device }: Pick<RankTime, 'rank' | 'device'>) =>
    rank === (shown.rank ?? null) && device === (shown.device ?? null);
  return stages.map((stage) => {
    const own = ranks.filter(({ kind }) => kind === stage.kind);
    if (own.length === 0) return stage;
    return {
      ...stage,
      ranks: own
        .map(({ rank, device, measured_ms }) => ({ rank, device, measured_ms }))
        .toSorted((a, b) => Number(isShown(b)) - Number(isShown(a)) || b.measured_ms - a.measured_ms),
      ...(recorded > compared ? { ranks_recorded: recorded } : {}),
    };
  });
}
