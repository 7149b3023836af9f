import type { SessionDatabase } from '../../session/query.js';
import { type GemmShape, gemmOperators, operatorShape, operatorType } from './shape.js';

/** Calls of one shape, from operators with input shapes and the kernels that they launched. */
export interface MeasuredShape extends GemmShape {
  execution_id: string;
  capture_id: string;
  dtype: string | null;
  calls: number;
  /** Device time of the calls that launched kernels, and the number of these calls. */
  time_ns: number;
  timed_calls: number;
  operators: Map<string, number>;
  stages: Set<string>;
  /** Tile and longest kernel of a call -> number of calls. */
  tiles: Map<string, { tile: string; kernel: string; calls: number }>;
}

interface OperatorRow {
  execution_id: string;
  capture_id: string;
  name: string;
  input_shapes: string;
  input_types: string | null;
  stage: string | null;
  tile: string | null;
  kernel: string | null;
  calls: number;
  timed_calls: number;
  time_ns: number | null;
}

/**
 * Shapes from the profiler's operators. `aten::linear` counts only if it launched kernels itself; otherwise the mm inside
 * it is the GEMM.
 * @param stage only operators inside stages of this kind; null: all
 */
export async function readProfilerShapes(
  database: SessionDatabase,
  stage: string | null = null,
): Promise<{ shapes: MeasuredShape[]; withoutShapes: number }> {
  const rows = await database.query<OperatorRow>(
    `WITH device AS (
       SELECT capture_id, op_id, sum(dur_ns) AS time_ns, max_by(tile, dur_ns) FILTER (WHERE tile IS NOT NULL) AS tile,
         max_by(short_name, dur_ns) FILTER (WHERE tile IS NOT NULL) AS kernel
       FROM kernels WHERE op_id IS NOT NULL GROUP BY capture_id, op_id)
     SELECT o.execution_id, o.capture_id, o.name, o.input_shapes, o.input_types, phase.kind AS stage, d.tile, d.kernel,
       count(*) AS calls, count(d.time_ns) AS timed_calls, sum(d.time_ns) AS time_ns
     FROM ops o LEFT JOIN device d ON d.capture_id = o.capture_id AND d.op_id = o.op_id
       LEFT JOIN stages s ON s.capture_id = o.capture_id AND s.stage_id = o.stage_id
       LEFT JOIN stages phase ON phase.capture_id = s.capture_id AND phase.stage_id = s.phase_id
     WHERE list_contains(string_split($1, ','), o.name) AND o.input_shapes IS NOT NULL
       AND (o.name <> 'aten::linear' OR d.time_ns IS NOT NULL) AND ($2::VARCHAR IS NULL OR phase.kind = $2)
     GROUP BY ALL`,
    [gemmOperators.join(','), stage],
  );
  const shapes = new Map<string, MeasuredShape>();
  for (const row of rows) addCalls(shapes, row);
  const [unshaped] = await database.query<{ n: number }>(
    `SELECT count(*) AS n FROM ops WHERE list_contains(string_split($1, ','), name) AND input_shapes IS NULL`,
    [gemmOperators.join(',')],
  );
  return { shapes: [...shapes.values()], withoutShapes: unshaped?.n ?? 0 };
}

function addCalls(shapes: Map<string, MeasuredShape>, row: OperatorRow): void {
  const shape = operatorShape(row.name, row.input_shapes);
  if (!shape) return;
  const dtype = operatorType(row.name, row.input_types);
  const { execution_id, capture_id } = row;
  const key = JSON.stringify([execution_id, capture_id, shape, dtype]);
  const measured: MeasuredShape = shapes.get(key) ?? {
    ...shape,
    execution_id,
    capture_id,
    dtype,
    calls: 0,
    time_ns: 0,
    timed_calls: 0,
    operators: new Map(),
    stages: new Set(),
    tiles: new Map(),
  };
  shapes.set(key, measured);
  measured.calls += row.calls;
  measured.timed_calls += row.timed_calls;
  measured.time_ns += row.time_ns ?? 0;
  measured.operators.set(row.name, (measured.operators.get(row.name) ?? 0) + row.calls);
  if (row.stage !== null) measured.stages.add(row.stage);
  if (row.tile !== null) {
    const kernel = row.kernel ?? '';
    const tileKey = `${row.tile} ${/split_?k/i.test(kernel)}`;
    const tile = measured.tiles.get(tileKey) ?? { tile: row.tile, kernel, calls: 0 };
    tile.calls += row.calls;
    measured.tiles.set(tileKey, tile);
  }
}
