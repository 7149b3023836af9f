import type { Gemm } from '../../model/documents/gemms.js';
import type { Capture } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';

/** A shape in a BLAS log with the algorithms chosen for it. */
export interface LoggedShape extends Pick<
  Gemm,
  | 'source'
  | 'execution_id'
  | 'capture_id'
  | 'm'
  | 'n'
  | 'k'
  | 'batch'
  | 'compute_type'
  | 'layout'
  | 'calls'
  | 'dtype'
> {
  algos: { algo: string | null; tile: string | null; calls: number }[];
}

type ShapeRow = Omit<LoggedShape, 'source' | 'algos'> & { algo: string | null; tile: string | null };

export async function readLoggedShapes(
  database: SessionDatabase,
  captures: readonly Capture[],
): Promise<LoggedShape[]> {
  const rows = await database.query<ShapeRow>(
    `SELECT execution_id, capture_id, m, n, k, coalesce(batch, 1) AS batch, dtype, compute_type, layout, algo, tile,
       sum(coalesce(calls, 1)) AS calls
     FROM gemms WHERE m IS NOT NULL AND n IS NOT NULL AND k IS NOT NULL GROUP BY ALL ORDER BY calls DESC, m, n, k`,
  );
  const importerOf = new Map(captures.map(({ capture_id, importer }) => [capture_id, importer]));
  const shapes = new Map<string, LoggedShape>();
  for (const { algo, tile, calls, ...row } of rows) {
    const key = JSON.stringify(row);
    const shape = shapes.get(key) ?? {
      ...row,
      source: sourceOf(importerOf.get(row.capture_id)),
      calls: 0,
      algos: [],
    };
    shape.calls += calls;
    shape.algos.push({ algo, tile, calls });
    shapes.set(key, shape);
  }
  return [...shapes.values()];
}

function sourceOf(importer: string | undefined): Gemm['source'] {
  return importer === 'cublas-log' || importer === 'cublaslt-log' ? importer : 'log';
}
