import type { CollectivesResult } from '../../model/documents/collectives.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeCollectives } from '../trace/collective-tables.js';
import { markedSteps, stagesOnRanksSql, withTransfersSql } from '../trace/step-transfers.js';

type RankSteps = NonNullable<NonNullable<CollectivesResult['job']>['step_times']>;

/** The steps of one kind in an execution. Ranks without such steps are shown with those of their longest kind. */
export interface Steps {
  kind: string;
  execution: string;
}

/** Maximum columns of a strip; large jobs get fewer, to keep the page small. */
const maxColumns = 64;
const maxCells = 8192;

/**
 * Step times of every rank without exposed communication, so without waiting for other ranks. With more steps than
 * columns, neighbors are averaged.
 * @returns null if no rank has such steps
 */
export async function readRankSteps(database: SessionDatabase, steps: Steps): Promise<RankSteps | null> {
  await makeCollectives(database);
  const [count] = await database.query<{ ranks: number; steps: number | null }>(
    `${stepsSql(steps)} SELECT count(DISTINCT rank) AS ranks, max(step) AS steps FROM steps WHERE kind = '${steps.kind}'`,
  );
  if (!count?.steps) return null;
  const columns = Math.min(maxColumns, Math.max(1, Math.floor(maxCells / count.ranks)), count.steps);
  const width = Math.ceil(count.steps / columns);
  const rows = await database.query<{ rank: number; column: number; ms: number }>(
    `${stepsSql(steps)},
     exposed AS (
       SELECT capture_id, step_id, rank, sum(exposed_ns) AS ns FROM collective_rows WHERE execution_id = '${steps.execution}' GROUP BY ALL)
     SELECT p.rank, ((p.step - 1) // ${width})::INTEGER AS "column", avg(p.ns - coalesce(e.ns, 0)) / 1e6 AS ms
     FROM steps p LEFT JOIN exposed e ON e.capture_id = p.capture_id AND e.step_id = p.stage_id AND e.rank IS NOT DISTINCT FROM p.rank
     WHERE p.kind = '${steps.kind}' GROUP BY ALL ORDER BY ALL`,
  );
  const usedColumns = Math.ceil(count.steps / width);
  const byRank = new Map<number, (number | null)[]>();
  for (const { rank, column, ms } of rows) {
    const times = byRank.get(rank) ?? Array.from({ length: usedColumns }, () => null);
    times[column] = ms;
    byRank.set(rank, times);
  }
  return {
    steps: Array.from({ length: usedColumns }, (_, column) => ({
      first: column * width + 1,
      last: Math.min((column + 1) * width, count.steps!),
    })),
    ranks: [...byRank].map(([rank, times]) => ({ rank, ms: times })),
  };
}

/** Start and end of a rank's step, ns since the session's start. */
export interface StepSpan {
  execution: string;
  start_ns: number;
  end_ns: number;
}

/** Times of all steps, by rank and by step number from 1. */
export async function readStepSpans(
  database: SessionDatabase,
  steps: Steps,
): Promise<(rank: number, step: number) => StepSpan | undefined> {
  const rows = await database.query<{ rank: number; step: number; start_ns: number; end_ns: number }>(
    `${stepsSql(steps)} SELECT rank, step, start_ns, end_ns FROM steps`,
  );
  const keyOf = (rank: number, step: number): string => `${rank} ${step}`;
  const spans = new Map(
    rows.map((row) => [keyOf(row.rank, row.step), { execution: steps.execution, ...row }]),
  );
  return (rank, step) => spans.get(keyOf(rank, step));
}

/**
 * SQL of `steps`: steps of each rank, of the kind or its own longest kind, numbered from 1 by their start, with their time on the device and in the sends and receives before and
 * after them.
 */
export const stepsSql = ({ kind, execution }: Steps): string => `WITH transfers AS (
     SELECT capture_id, rank, step_id AS stage_id, min(start_ns) AS transfers_from_ns, max(start_ns + dur_ns) AS transfers_end_ns FROM collective_rows
     WHERE execution_id = '${execution}' AND between_steps GROUP BY ALL),
   spans AS (${withTransfersSql(
     `SELECT *, coalesce(device_start_ns, start_ns) AS from_ns, coalesce(device_end_ns, end_ns) AS until_ns
     FROM (${stagesOnRanksSql})
     LEFT JOIN transfers USING (capture_id, rank, stage_id)
     WHERE execution_id = '${execution}' AND kind IN ${markedSteps} AND stage_id = phase_id AND rank IS NOT NULL`,
     'capture_id, rank, pid, tid',
   )}),
   rank_kinds AS (
     SELECT rank, coalesce(max(kind) FILTER (kind = '${kind}'), arg_max(kind, ns)) AS kind
     FROM (SELECT rank, kind, sum(until_ns - from_ns) AS ns FROM spans WHERE NOT coalesce(warmup, false) GROUP BY rank, kind) GROUP BY rank),
   steps AS (
     SELECT capture_id, stage_id, rank, kind, start_ns, greatest(end_ns, until_ns) AS end_ns, until_ns - from_ns AS ns,
       row_number() OVER (PARTITION BY rank ORDER BY start_ns, stage_id)::INTEGER AS step
     FROM spans SEMI JOIN rank_kinds USING (rank, kind) WHERE NOT coalesce(warmup, false))`;
