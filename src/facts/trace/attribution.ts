import type { Issue } from '../../model/document.js';
import { figure, missing } from '../../model/figure.js';
import type { TraceAttribution } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

/** How kernels were assigned to stages, how many have no recorded launch, and what the import lost. */
export async function readAttribution(
  scope: TraceScope,
  issues: readonly Issue[],
): Promise<TraceAttribution> {
  const { database } = scope;
  await scope.need('kernel_cells');
  const methods = await database.query<{ method: string | null; kernels: number; kernel_ns: number }>(
    `SELECT attributed_by AS method, sum(kernels)::BIGINT AS kernels, sum(dur_ns)::DOUBLE AS kernel_ns
     FROM kernel_cells GROUP BY attributed_by ORDER BY kernels DESC`,
  );
  const [row] = await database.query<{ orphans: number; total: number; classified: number | null }>(
    `SELECT coalesce(sum(kernels) FILTER (orphan), 0)::BIGINT AS orphans, sum(dur_ns)::DOUBLE AS total,
            sum(dur_ns) FILTER (class IS NOT NULL AND class NOT IN ('other', 'graph'))::DOUBLE AS classified
     FROM kernel_cells`,
  );
  return {
    methods,
    orphans: row?.orphans ?? 0,
    classified_share: row?.total
      ? figure((row.classified ?? 0) / row.total, 'ratio', 'time of kernels with known class / kernel time')
      : missing('no_kernels', 'the analyzed rank has no kernels'),
    losses: issues.filter(({ severity }) => severity !== 'info'),
  };
}
