import type { OpClass } from '../../model/classes.js';
import type { KernelPlan, KernelResult } from '../../model/documents/kernels.js';
import type { SessionDatabase } from '../../session/query.js';

type TracedRow = NonNullable<KernelResult['executed']>[number];

/** PyTorch's traces name the range of each case; a trace of ONNX Runtime has a single case. */
const rangePrefix = 'case:';
const maxRows = 12;

/** Stages of capture $1 that are runs of a case; $2: the case of all of them, or null. */
export const runsSql = `SELECT stage_id, coalesce($2, substr(raw_name, ${rangePrefix.length + 1})) AS "case" FROM stages
         WHERE capture_id = $1 AND ($2 IS NOT NULL OR starts_with(raw_name, '${rangePrefix}'))`;

/**
 * Kernels, and operators with self time, of one run of each traced case: totals over its ranges (or calls of the model)
 * divided by their number.
 */
export async function readKernelsOfCases(
  database: SessionDatabase,
  traces: KernelPlan['traces'],
): Promise<Map<string, TracedRow[]>> {
  const rowsByCase = new Map<string, TracedRow[]>();
  for (const { capture_id, case: onlyCase } of traces) {
    const rows = await database.query<TracedRow & { case: string }>(
      `WITH runs AS (${runsSql}),
       run_counts AS (SELECT "case", count(*) AS n FROM runs GROUP BY ALL),
       parts AS (
         SELECT "case", 'kernel' AS what, k.short_name AS name, k.class, count(*) AS count, sum(k.dur_ns)::DOUBLE AS ns
         FROM kernels k JOIN runs USING (stage_id) WHERE k.capture_id = $1 GROUP BY ALL
         UNION ALL
         SELECT "case", 'operator', CASE WHEN $2 IS NULL THEN o.name ELSE o.op_type END, any_value(o.class), count(*), sum(coalesce(o.self_dur_ns, o.dur_ns))::DOUBLE
         FROM ops o JOIN runs USING (stage_id)
         WHERE o.capture_id = $1 AND o.op_type IS DISTINCT FROM 'python_function' AND NOT starts_with(o.name, '${rangePrefix}')
         GROUP BY "case", CASE WHEN $2 IS NULL THEN o.name ELSE o.op_type END)
       SELECT p."case", what, name, class, (count / n)::DOUBLE AS count, ns / n AS ns
       FROM parts p JOIN run_counts USING ("case") ORDER BY p."case", what, ns DESC, name`,
      [capture_id, onlyCase],
    );
    for (const { case: name, what, class: opClass, ...row } of rows) {
      const caseRows = rowsByCase.get(name) ?? [];
      if (caseRows.filter((entry) => entry.what === what).length < maxRows)
        caseRows.push({ what, ...row, class: opClass as OpClass | null });
      rowsByCase.set(name, caseRows);
    }
  }
  return rowsByCase;
}
