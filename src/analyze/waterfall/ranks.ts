import type { StageWaterfall } from '../../model/documents/explain.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeKernelStreams } from '../trace/kernel-streams.js';
import { literal, type ScopeOptions, traceScope } from '../trace/scope.js';
import { makeWindows } from '../trace/windows.js';

/** Kinds whose slowest rank decides: those that every rank runs at the same time. */
const deciding: ReadonlySet<PhaseKind> = new Set(['decode', 'mixed', 'prefill', 'outside']);

interface RankTime {
  rank: number | null;
  device: number | null;
  kind: PhaseKind;
  instances: number;
  measured_ms: number;
}

/**
 * Mean W of every rank and device of the capture, and which of them is slowest in the stage that takes longest of all: the
 * one a stage over several ranks waits for. Null where there is one, or where the rank was chosen.
 */
export async function slowestRank(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions,
): Promise<{ focus: ScopeOptions; ranks: RankTime[] } | null> {
  await makeKernelStreams(database);
  const distinct = await database.query<{ rank: number | null; device: number | null }>(
    'SELECT DISTINCT rank, device FROM kernel_streams',
  );
  if (distinct.length < 2) return null;
  const found = await ranksOf(session, options);
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
  const slowest = ranks
    .filter(({ kind }) => kind === kinds[0])
    .toSorted((a, b) => b.measured_ms - a.measured_ms)[0];
  return slowest ? { focus: optionsOf(slowest), ranks } : null;
}

const optionsOf = ({ rank, device }: Pick<RankTime, 'rank' | 'device'>): ScopeOptions => ({
  ...(rank === null ? {} : { rank }),
  ...(device === null ? {} : { device }),
});

/** Of the capture that is looked at. */
async function ranksOf(session: Session, options: ScopeOptions) {
  const database = await session.connect();
  try {
    const { source } = await traceScope(database, session.manifest, options);
    const { execution_id, capture_id } = source.attribution;
    return await database.query<{ rank: number | null; device: number | null }>(
      `SELECT DISTINCT rank, device FROM kernel_streams WHERE execution_id = ${literal(execution_id)} AND capture_id = ${literal(capture_id)} ORDER BY ALL`,
    );
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
    await makeWindows(scope);
    const rows = await database.query<Omit<RankTime, 'rank' | 'device'>>(
      `SELECT kind, count(*) AS instances, avg(end_ns - start_ns) / 1e6 AS measured_ms FROM windows
       WHERE kind <> 'sampling' GROUP BY kind`,
    );
    return rows.map((row) => ({ rank, device, ...row }));
  } finally {
    await database.close();
  }
}

/** Every rank's mean W, the slowest first. */
export function withRanks(stages: readonly StageWaterfall[], ranks: readonly RankTime[]): StageWaterfall[] {
  if (ranks.length === 0) return [...stages];
  return stages.map((stage) => {
    const own = ranks.filter(({ kind }) => kind === stage.kind);
    if (own.length === 0) return stage;
    return {
      ...stage,
      ranks: own
        .map(({ rank, device, measured_ms }) => ({ rank, device, measured_ms }))
        .toSorted((a, b) => b.measured_ms - a.measured_ms),
    };
  });
}
