import { jointKinds } from '../../model/documents/trace-phase.js';
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
import { formatCount, formatMs, plural } from '../../vocabulary/format.js';
import { rankName } from '../../vocabulary/ranks.js';
import { perInstance, phaseLabel } from '../../vocabulary/stages.js';
import { literal, type ScopeOptions, type TraceScope } from '../trace/scope.js';

/** Kinds of stages that every rank runs at the same time, so the slowest rank decides. */
const synchronousKinds: ReadonlySet<PhaseKind> = new Set(jointKinds);

/** Relative difference of step times up to which ranks count as equally slow. Then their waits decide. */
const equalTimeShare = 0.05;
/** Minimum share of a stage's time that other ranks wait for a rank. */
const minWaiting = 0.05;

/** The rank that the others wait for in collectives. */
interface AwaitedRank {
  kind: PhaseKind;
  rank: number | null;
  device: number | null;
  /** The longest wait of another rank, ms per mean instance. */
  waiting_ms: number;
}

interface RankTime {
  rank: number | null;
  device: number | null;
  kind: PhaseKind;
  instances: number;
  measured_ms: number;
}

/**
 * Ranks compared, those with the most kernel time. Each takes 20 queries, and a damaged capture may name a device per
 * kernel.
 */
const maxRanks = 64;

/**
 * The same limit for a job with one capture per rank. As many ranks with the least time in collectives are compared too:
 * they include the rank that waits least.
 */
const maxRanksOfJob = 8;

/** The timeline that every document and page shows: the requested rank, else the rank that the others wait for. */
export async function timelineScope(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions = {},
): Promise<{ scope: TraceScope; shown: ShownRank | null }> {
  const shown = hasRows(session.manifest, 'kernels') ? await shownRank(session, database, options) : null;
  const scope = await traceScope(database, session.manifest, shown?.focus ?? options);
  if (shown) scope.source.why.unshift(shown.why);
  return { scope, shown };
}

interface ShownRank {
  focus: ScopeOptions;
  /** Why this rank is shown, in a sentence. */
  why: string;
  ranks: RankTime[];
  /** Number of ranks, including those not compared. */
  recorded: number;
}

/**
 * Mean measured time of every rank and device, and the rank that the others wait for: the one with the least waiting in
 * collectives if the ranks take equally long in the longest stage, else the slowest. Null with one rank, or if the user
 * chose a rank.
 */
async function shownRank(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions,
): Promise<ShownRank | null> {
  await makeKernelStreams(database);
  const distinct = await database.query<{ rank: number | null; device: number | null }>(
    'SELECT DISTINCT rank, device FROM kernel_streams',
  );
  if (distinct.length < 2) return null;
  const { devices, captures, recorded } = await ranksOf(session, options);
  const candidates = devices.filter(
    ({ rank, device }) =>
      (options.rank === undefined || rank === options.rank) &&
      (options.device === undefined || device === options.device),
  );
  if (candidates.length < 2) return null;
  const ranks: RankTime[] = [];
  for (const source of candidates) ranks.push(...(await timesOf(session, source)));
  const total = (kind: PhaseKind) =>
    ranks.filter((row) => row.kind === kind).reduce((sum, row) => sum + row.instances * row.measured_ms, 0);
  const synchronous = ranks.filter(({ kind }) => synchronousKinds.has(kind));
  const kinds = [...new Set((synchronous.length > 0 ? synchronous : ranks).map(({ kind }) => kind))].toSorted(
    (a, b) => total(b) - total(a),
  );
  const stageTimes = ranks
    .filter(({ kind }) => kind === kinds[0])
    .toSorted((a, b) => b.measured_ms - a.measured_ms);
  const [slowest] = stageTimes;
  if (!slowest) return null;
  const awaited = await awaitedRank(database, captures, stageTimes);
  const rankCount = Math.max(recorded, candidates.length);
  return {
    focus: optionsOf(awaited ?? slowest),
    why: awaited ? awaitedWords(awaited, rankCount) : slowestWords(slowest, candidates.length, rankCount),
    ranks,
    recorded: rankCount,
  };
}

const awaitedWords = (awaited: AwaitedRank, ranks: number): string =>
  `Showing ${rankName(awaited)}: ${ranks > 2 ? 'other ranks wait up to' : 'the other rank waits'} ${formatMs(awaited.waiting_ms)} ${perInstance(awaited.kind)} for it in collectives.`;

const slowestWords = (slowest: RankTime, compared: number, recorded: number): string =>
  `Showing ${rankName(slowest)}, with the longest ${slowest.kind === 'outside' ? 'capture' : phaseLabel(slowest.kind)} of ${plural(compared, 'rank')}${recorded > compared ? ` that were compared, of ${formatCount(recorded)}` : ''}.`;

/** Null if the ranks differ in time, collectives cannot be paired, or almost no time is waiting. */
async function awaitedRank(
  database: SessionDatabase,
  captures: readonly string[],
  stageTimes: readonly RankTime[],
): Promise<AwaitedRank | null> {
  const { kind, measured_ms: wall, instances } = stageTimes[0]!;
  const equallySlow = stageTimes.filter(({ measured_ms }) => measured_ms >= (1 - equalTimeShare) * wall);
  if (equallySlow.length < 2) return null;
  const source = await collectiveSource(database, captures);
  const waiting = waitingOfRanks(
    await database.query<RankCollectives>(collectivesSql(captures, kind, { instances, ...source })),
  );
  const [leastWaiting] = waiting;
  const mostWaiting = waiting.at(-1);
  if (!leastWaiting || !mostWaiting || mostWaiting.waiting_ms - leastWaiting.waiting_ms < minWaiting * wall)
    return null;
  // A wait in only some instances is not a property of the rank: ranks start at different times.
  if (mostWaiting.waiting_instances < instances / 2) return null;
  const isEquallySlow = equallySlow.some(
    ({ rank, device }) => rank === leastWaiting.rank && device === leastWaiting.device,
  );
  return isEquallySlow
    ? { kind, rank: leastWaiting.rank, device: leastWaiting.device, waiting_ms: mostWaiting.waiting_ms }
    : null;
}

const optionsOf = ({ rank, device }: Pick<AwaitedRank, 'rank' | 'device'>): ScopeOptions => ({
  ...(rank === null ? {} : { rank }),
  ...(device === null ? {} : { device }),
});

/** Ranks of the focused capture, and of the other captures of its job: those of the same tool, or with the same collectives. */
async function ranksOf(session: Session, options: ScopeOptions) {
  const database = await session.connect();
  try {
    const { source } = await traceScope(database, session.manifest, options);
    const { execution_id, capture_id } = source.attribution;
    const { recorded } = await collectiveSource(database, [capture_id]);
    const tool = session.manifest.captures.find((capture) => capture.capture_id === capture_id)?.importer;
    const captures = session.manifest.captures
      .filter((capture) => capture.execution_id === execution_id && (recorded || capture.importer === tool))
      .map((capture) => capture.capture_id);
    const isJob = recorded || captures.length > 1;
    const devices = await database.query<{ rank: number | null; device: number | null; recorded: number }>(
      `WITH busy AS (
         SELECT rank, device, sum(dur_ns) AS busy_ns, ${recorded ? '(SELECT sum(c.dur_ns) FROM collectives c WHERE c.execution_id = k.execution_id AND c.rank = k.rank AND c.device = k.device)' : '0'} AS shared_ns FROM kernel_streams k
         WHERE execution_id = ${literal(execution_id)} AND capture_id IN (${captureList(captures)}) GROUP BY ALL),
       ranked AS (SELECT *, row_number() OVER (ORDER BY busy_ns DESC, rank, device) AS busy_order, row_number() OVER (ORDER BY shared_ns, rank, device) AS shared_order FROM busy)
       SELECT rank, device, (SELECT count(*) FROM busy) AS recorded FROM ranked WHERE ${isJob ? `busy_order <= ${maxRanksOfJob} OR shared_order <= ${maxRanksOfJob}` : `busy_order <= ${maxRanks}`} ORDER BY rank, device`,
    );
    return { devices, captures, recorded: devices[0]?.recorded ?? 0 };
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

/** Adds every rank's mean measured time: first the rank that the bars show, the others by time. */
export function withRanks(
  stages: readonly StageWaterfall[],
  { ranks, recorded }: Pick<ShownRank, 'ranks' | 'recorded'>,
  shown: ScopeOptions,
): StageWaterfall[] {
  if (ranks.length === 0) return [...stages];
  const compared = new Set(ranks.map(({ rank, device }) => `${rank} ${device}`)).size;
  const isShown = ({ rank, device }: Pick<RankTime, 'rank' | 'device'>) =>
    rank === (shown.rank ?? null) && device === (shown.device ?? null);
  return stages.map((stage) => {
    const stageTimes = ranks.filter(({ kind }) => kind === stage.kind);
    if (stageTimes.length === 0) return stage;
    return {
      ...stage,
      ranks: stageTimes
        .map(({ rank, device, measured_ms }) => ({ rank, device, measured_ms }))
        .toSorted((a, b) => Number(isShown(b)) - Number(isShown(a)) || b.measured_ms - a.measured_ms),
      ...(recorded > compared ? { ranks_recorded: recorded } : {}),
    };
  });
}
