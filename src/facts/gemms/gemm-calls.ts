import type { Gemm } from '../../model/documents/gemms.js';
import type { SessionDatabase } from '../../session/query.js';
import { type NamedDurations, readNamedDurations } from '../trace/named-durations.js';
import { gemmOperators, operatorShape, operatorType } from './shape.js';

/** Key of a GEMM of a profiler's capture, for URLs and maps. */
export const gemmKey = ({
  capture_id,
  m,
  n,
  k,
  batch,
  dtype,
}: Pick<Gemm, 'capture_id' | 'm' | 'n' | 'k' | 'batch' | 'dtype'>): string =>
  `${m}×${n}×${k}×${batch} ${dtype ?? 'unknown'} ${capture_id}`;

export interface GemmCalls {
  /** Device times of single calls; `name` is the GEMM's key. */
  gemms: NamedDurations[];
  /** Keys of the GEMMs of each kernel name. */
  gemmsOfKernel: Map<string, string[]>;
}

/** Single calls of GEMMs, from operators with input shapes and the kernels that they launched. */
export async function readGemmCalls(database: SessionDatabase): Promise<GemmCalls> {
  const ops = `SELECT DISTINCT capture_id, name, input_shapes, input_types FROM ops
    WHERE input_shapes IS NOT NULL AND list_contains(string_split('${gemmOperators.join(',')}', ','), name)`;
  const callRows = await database.query<{
    capture_id: string;
    name: string;
    input_shapes: string;
    input_types: string | null;
  }>(ops);
  const shapes = callRows.flatMap(({ capture_id, name, input_shapes: inputs, input_types: types }) => {
    const shape = operatorShape(name, inputs);
    if (!shape) return [];
    const key = gemmKey({ ...shape, capture_id, dtype: operatorType(name, types) });
    return [{ capture_id, name, inputs, types, key }];
  });
  if (shapes.length === 0) return { gemms: [], gemmsOfKernel: new Map() };
  const quoted = JSON.stringify(shapes).replaceAll("'", "''");
  const calls = `(SELECT s.key, k.* FROM ops o JOIN kernels k USING (capture_id, op_id)
     JOIN (SELECT unnest(from_json('${quoted}', '[{"capture_id":"VARCHAR","name":"VARCHAR","inputs":"VARCHAR","types":"VARCHAR","key":"VARCHAR"}]'), recursive := true)) s
       ON s.capture_id = o.capture_id AND s.name = o.name AND s.inputs = o.input_shapes AND s.types IS NOT DISTINCT FROM o.input_types)`;
  const gemms = await readNamedDurations(
    database,
    `(SELECT key AS name, sum(dur_ns)::BIGINT AS dur_ns, min(start_ns) AS start_ns FROM ${calls} GROUP BY key, capture_id, op_id)`,
  );
  const rows = await database.query<{ kernel: string; key: string }>(
    `SELECT DISTINCT coalesce(kernels.name, short_name, '') AS kernel, key FROM ${calls} kernels ORDER BY 1, 2`,
  );
  const gemmsOfKernel = new Map<string, string[]>();
  for (const { kernel, key } of rows) gemmsOfKernel.set(kernel, [...(gemmsOfKernel.get(kernel) ?? []), key]);
  return { gemms, gemmsOfKernel };
}
