import { lowerMedian } from '../../model/statistics.js';
import { sendAndRecv } from '../../model/collectives.js';
import type { CollectivesResult, JobRank } from '../../model/documents/collectives.js';
import { stepKindsSql } from '../../model/record.js';
import type { Figure } from '../../model/figure.js';
import { rankFilesSchema } from '../../model/ranks.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readArtifactJson } from '../artifact.js';
import { readTransfers } from './transfers.js';
import { isSameCall } from '../trace/collectives.js';
import { readRankSteps, readStepSpans, stepsSql } from './rank-steps.js';

type Job = NonNullable<CollectivesResult['job']>;

/** Minimum excess over the median rank, as a share of a step, for a rank to compute longer or wait for its host. */
const minExcess = 0.02;

/** Minimum share of operations in which a rank is last, for a reason to be given. */
const minLastShare = 0.1;

const readRankFiles = (session: Session): Promise<unknown> =>
  readArtifactJson(session, 'ranks', 'the files and clocks of the ranks');

/** The execution with collectives, of known sizes if any has them; without any, one with kernels, else with stages. Empty without these. */
async function readExecution(database: SessionDatabase): Promise<string> {
  const tables = ['collectives WHERE bytes IS NOT NULL', 'collectives', 'kernels', 'stages'];
  const [first] = await database.query<{ execution_id: string }>(
    `SELECT execution_id FROM (${tables.map((name, index) => `SELECT DISTINCT execution_id, ${index} AS place FROM ${name}`).join(' UNION ALL ')})
     WHERE execution_id IS NOT NULL ORDER BY place, execution_id LIMIT 1`,
  );
  return first?.execution_id ?? '';
}

/** The execution's kind of step with the most total time; null if it has none. */
async function readStepKind(database: SessionDatabase, execution: string): Promise<string | null> {
  const [longest] = await database.query<{ kind: string }>(
    `SELECT kind FROM stages WHERE execution_id = '${execution}' AND (kind IN ${stepKindsSql} OR kind = 'training') AND NOT coalesce(warmup, false)
     GROUP BY kind ORDER BY sum(end_ns - start_ns) DESC, kind LIMIT 1`,
  );
  return longest?.kind ?? null;
}

/**
 * Each rank's step times without communication in a job (import --ranks), and their start and end; null without such
 * steps.
 */
export async function readRankStepTimes(database: SessionDatabase) {
  const execution = await readExecution(database);
  const kind = await readStepKind(database, execution);
  if (kind === null) return null;
  const steps = await readRankSteps(database, { kind, execution });
  return steps && { execution, steps, spanOf: await readStepSpans(database, { kind, execution }) };
}

/**
 * The ranks of a job (import --ranks); null for other sessions.
 * @param link between ranks, B/s
 */
export async function readJob(
  session: Session,
  database: SessionDatabase,
  link: Figure,
): Promise<Job | null> {
  const stored = await readRankFiles(session);
  if (stored === null) return null;
  const { world_size, missing, clocks } = rankFilesSchema.parse(stored);
  const execution = await readExecution(database);
  const kind = await readStepKind(database, execution);
  const bounds = clocks.flatMap(({ bound_ns }) => bound_ns ?? []);
  const rows = await database.query<Omit<JobRank, 'late_cause' | 'clock'>>(
    ranksSql({ kind, execution }, bounds.length > 0 ? Math.max(...bounds) : 0),
  );
  const medianOf = (stepKind: string | null, msOf: (row: (typeof rows)[number]) => number | null) =>
    lowerMedian(rows.flatMap((row) => (row.step_kind === stepKind ? (msOf(row) ?? 0) : [])));
  return {
    world_size,
    missing,
    execution: session.manifest.executions.length > 1 ? execution : null,
    step_kind: kind,
    transfers: await readTransfers(database, execution, link),
    step_times: kind === null ? null : await readRankSteps(database, { kind, execution }),
    ranks: rows.map((row) => {
      const compute = (row.compute_ms ?? 0) - medianOf(row.step_kind, ({ compute_ms }) => compute_ms);
      const host = (row.host_ms ?? 0) - medianOf(row.step_kind, ({ host_ms }) => host_ms);
      const isLate =
        row.delayed_operations >= minLastShare * row.operations &&
        row.delayed_operations > 0 &&
        Math.max(compute, host) > minExcess * (row.step_ms ?? 0);
      return {
        ...row,
        late_cause: isLate ? (compute >= host ? ('compute' as const) : ('host' as const)) : null,
        clock: clocks.find(({ rank }) => rank === row.rank) ?? null,
      };
    }),
  };
}

/**
 * SQL of the ranks in one execution, or of sums over the whole capture without steps. A kernel that sends and receives at the same time
 * has several calls, which share its time.
 * @param boundNs error of the clocks; the last rank is unknown if the others waited no longer than this
 */
function ranksSql({ kind, execution }: { kind: string | null; execution: string }, boundNs: number): string {
  const condition = `execution_id = '${execution}'`;
  const steps =
    kind === null
      ? `WITH steps AS (SELECT capture_id, 0 AS stage_id, rank, NULL AS kind, NULL::BIGINT AS ns FROM kernels WHERE ${condition} GROUP BY capture_id, rank)`
      : stepsSql({ kind, execution });
  const inSteps = (row: string) =>
    kind === null
      ? ''
      : `JOIN stages s ON s.capture_id = ${row}.capture_id AND s.stage_id = ${row}.stage_id
         JOIN steps p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id AND p.rank IS NOT DISTINCT FROM ${row}.rank`;
  const per = (ns: string) => `${ns} / 1e6 / greatest(n, 1)`;
  return `${steps},
   step_counts AS (SELECT rank, any_value(kind)::VARCHAR AS step_kind, ${kind === null ? '0' : 'count(*)'} AS n, avg(ns) / 1e6 AS step_ms FROM steps GROUP BY rank),
   computing AS (SELECT k.rank, sum(k.exclusive_ns) AS ns FROM kernels k ${inSteps('k')} WHERE k.${condition} AND k.class <> 'communication' GROUP BY k.rank),
   idle AS (SELECT g.rank, sum(coalesce(g.host_ns, 0) + coalesce(g.launch_overhead_ns, 0)) AS ns FROM gaps g ${inSteps('g')} WHERE g.${condition} AND g.device IS NOT NULL GROUP BY g.rank),
   calls AS (
     SELECT *, 1 AS share FROM collective_rows WHERE ${condition} AND peer IS NULL
     UNION ALL SELECT *, 1 / count(*) OVER (PARTITION BY capture_id, rank, device, start_ns, dur_ns) AS share FROM collective_rows WHERE ${condition} AND peer IS NOT NULL),
   communicating AS (
     SELECT c.rank, sum(c.exposed_ns) AS exposed, sum(share * c.dur_ns - c.exposed_ns) AS overlapped, sum(share * k.shortest_ns) AS wire,
       sum(share * (c.dur_ns - k.shortest_ns)) FILTER (k.shortest_ns IS NOT NULL) AS skew, sum(share * (c.dur_ns - k.shortest_ns)) FILTER (c.operation = '${sendAndRecv}') AS stages,
       count(k.shortest_ns) AS operations, count_if(k.last_rank = c.rank AND k.longest_ns - k.shortest_ns > ${boundNs}) AS delayed_operations
     FROM calls c ${kind === null ? '' : 'JOIN steps p ON p.capture_id = c.capture_id AND p.stage_id = c.step_id AND p.rank IS NOT DISTINCT FROM c.rank'} LEFT JOIN collective_calls k ON ${isSameCall('k', 'c')}
     GROUP BY c.rank)
   SELECT rank, step_kind, n AS steps, step_ms, ${per('computing.ns')} AS compute_ms, coalesce(${per('idle.ns')}, 0) AS host_ms, ${per('exposed')} AS exposed_ms, ${per('overlapped')} AS overlapped_ms,
     ${per('wire')} AS wire_ms, ${per('skew')} AS skew_ms, ${per('stages')} AS stages_ms, coalesce(delayed_operations, 0) AS delayed_operations, coalesce(operations, 0) AS operations
   FROM step_counts LEFT JOIN computing USING (rank) LEFT JOIN idle USING (rank) LEFT JOIN communicating USING (rank) ORDER BY rank`;
}
