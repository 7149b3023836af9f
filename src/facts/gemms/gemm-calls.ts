import type { Gemm } from '../../model/documents/gemms.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { deviceOf } from '../device.js';
import { gpuRoofs, readStoredGpuRoofline } from '../roofs.js';
import { type NamedDurations, readNamedDurations } from '../trace/named-durations.js';
import { dtypeRoof, roofSeconds } from './roof.js';
import { gemmOperators, type GemmShape, operatorShape, operatorType } from './shape.js';

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

/** A GEMM as its operators were recorded: those with equal columns have the same shape. */
interface RecordedShape {
  capture_id: string;
  name: string;
  inputs: string;
  types: string | null;
  shape: GemmShape;
  dtype: string | null;
}

async function readShapes(database: SessionDatabase): Promise<RecordedShape[]> {
  const callRows = await database.query<Pick<RecordedShape, 'capture_id' | 'name' | 'inputs' | 'types'>>(
    `SELECT DISTINCT capture_id, name, input_shapes AS inputs, input_types AS types FROM ops
     WHERE input_shapes IS NOT NULL AND list_contains(string_split('${gemmOperators.join(',')}', ','), name)`,
  );
  return callRows.flatMap((call) => {
    const shape = operatorShape(call.name, call.inputs);
    return shape === null ? [] : [{ ...call, shape, dtype: operatorType(call.name, call.types) }];
  });
}

/** The minimum time of the GEMM calls of one shape. */
export interface CallRoof extends Pick<RecordedShape, 'capture_id' | 'name' | 'inputs' | 'types'> {
  roof_ns: number;
  bound: 'compute' | 'memory';
}

/** Empty without shapes, or if the peaks of the GPU are unknown. */
export async function readCallRoofs(session: Session, database: SessionDatabase): Promise<CallRoof[]> {
  const roofs = gpuRoofs(deviceOf(session.manifest).name, await readStoredGpuRoofline(session));
  return (await readShapes(database)).flatMap(({ shape, dtype, ...call }) => {
    const roof = dtypeRoof(dtype, roofs);
    if ('value' in roof) return [];
    const { seconds, bound } = roofSeconds(shape, roof);
    return [{ ...call, roof_ns: seconds * 1e9, bound }];
  });
}

/** Single calls of GEMMs, from operators with input shapes and the kernels that they launched. */
export async function readGemmCalls(database: SessionDatabase): Promise<GemmCalls> {
  const shapes = (await readShapes(database)).map(({ capture_id, name, inputs, types, shape, dtype }) => ({
    capture_id,
    name,
    inputs,
    types,
    key: gemmKey({ ...shape, capture_id, dtype }),
  }));
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
