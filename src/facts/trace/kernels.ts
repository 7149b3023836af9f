import type { OpClass } from '../../model/classes.js';
import type { PhaseKind, Spread, TraceKernel, TracePhase, TraceResult } from '../../model/documents/trace.js';
import type { LaunchedRow } from './kernel-spreads.js';
import { phaseOrder } from './phases.js';
import type { TraceScope } from './scope.js';
import { byPhaseSql, countsIn } from './step-places.js';
import { queryDurations, spreadColumns, spreadOf } from './spread.js';

const maxRows = 200;

interface KernelRow {
  name: string;
  short_name: string | null;
  class: OpClass | null;
  tile: string | null;
  dtype: string | null;
  exclusive_ns: number | null;
  total_ns: number;
}

/**
 * Kernels by time, with the part of each phase: sampling inside a step counts in the step and in sampling.
 * @param launched from startSpreads
 */
export async function readKernels(
  scope: TraceScope,
  phases: readonly TracePhase[],
  launched: readonly LaunchedRow[],
): Promise<Pick<TraceResult, 'kernels' | 'kernels_total'>> {
  const { database } = scope;
  await scope.need('kernel_cells');
  const [totals] = await database.query<{ names: number; count: number; total_ns: number | null }>(
    `SELECT count(DISTINCT name) AS names, coalesce(sum(kernels), 0)::BIGINT AS count, sum(dur_ns)::DOUBLE AS total_ns FROM kernel_cells`,
  );
  const total = totals?.total_ns ?? 0;
  const rows = await readKernelProperties(database, maxRows);
  const [withoutLaunch] = await database.query<{ n: number }>(
    'SELECT count_if(orphan OR in_graph OR name IS NULL) AS n FROM kernel_cells',
  );
  // If every launch was recorded, all kernels of a name are in its launches.
  const spreads =
    withoutLaunch?.n === 0
      ? new Map(launched.map((row) => [row.kernel, spreadOf(row, 'kernel_')]))
      : await readSpreadsByName(database);
  const byPhase = await database.query<{ name: string; phase: PhaseKind; count: number; total_ns: number }>(
    `SELECT coalesce(name, short_name, '') AS name, phase, sum(kernels)::BIGINT AS count, sum(dur_ns)::DOUBLE AS total_ns
     FROM ${byPhaseSql('kernel_cells')} GROUP BY 1, 2`,
  );
  const parts = new Map<string, typeof byPhase>();
  for (const row of byPhase) parts.set(row.name, [...(parts.get(row.name) ?? []), row]);
  return {
    kernels_total: { names: totals?.names ?? 0, count: totals?.count ?? 0, total_ns: total },
    kernels: rows.map((row): TraceKernel => ({
      name: row.name,
      short_name: row.short_name ?? row.name,
      class: row.class ?? 'other',
      tile: row.tile,
      dtype: row.dtype,
      exclusive_ns: row.exclusive_ns ?? 0,
      ...spreads.get(row.name)!,
      share: total > 0 ? row.total_ns / total : 0,
      phases: (parts.get(row.name) ?? [])
        .map(({ phase, count, total_ns }) => {
          const instances = instancesOf(phases, phase);
          return {
            kind: phase,
            count,
            total_ns,
            per_instance: count / instances,
            per_instance_ns: total_ns / instances,
          };
        })
        .toSorted(
          (a, b) => b.total_ns - a.total_ns || phaseOrder.indexOf(a.kind) - phaseOrder.indexOf(b.kind),
        ),
    })),
  };
}

/**
 * Properties of the kernels of each name, the most time first.
 * @param limit maximum number of names; default all
 */
export async function readKernelProperties(
  database: TraceScope['database'],
  limit?: number,
): Promise<KernelRow[]> {
  // A generic name has the class of each launch's operator. The class with the most time is shown.
  return database.query<KernelRow>(
    `SELECT coalesce(name, short_name, '') AS name, any_value(short_name) AS short_name, arg_max(class, (class_ns, class)) AS class,
            any_value(tile) AS tile, any_value(dtype) AS dtype, sum(exclusive_ns)::DOUBLE AS exclusive_ns, sum(dur_ns)::DOUBLE AS total_ns
     FROM (SELECT *, sum(dur_ns) OVER (PARTITION BY coalesce(name, short_name, ''), class) AS class_ns FROM kernel_cells) GROUP BY 1 ORDER BY total_ns DESC, name ${limit === undefined ? '' : `LIMIT ${limit}`}`,
  );
}

async function readSpreadsByName(
  database: TraceScope['database'],
): Promise<Map<string | null, Spread | null>> {
  const rows = await queryDurations<{ name: string }>(
    database,
    (type) =>
      `SELECT coalesce(name, short_name, '') AS name, ${spreadColumns('dur_ns', '', type)} FROM rank_kernels GROUP BY 1`,
  );
  return new Map(rows.map((row) => [row.name, spreadOf(row)]));
}

/** Instances of a phase. A phase without any counts as 1, so that "per instance" is the total. */
export function instancesOf(phases: readonly TracePhase[], kind: PhaseKind | null): number {
  return phases.find((phase) => phase.kind === kind)?.instances ?? 1;
}

/** SQL condition for kernels of a phase; null for all kernels. */
export function phaseFilter(kind: PhaseKind | null): string {
  return kind === null ? 'true' : countsIn(kind);
}
