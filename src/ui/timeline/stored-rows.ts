import { countedKindSql } from '../../facts/trace/timeline.js';
import type { CallRoof } from '../../facts/gemms/gemm-calls.js';
import { tables } from '../../model/tables.js';
import type { SessionDatabase } from '../../session/query.js';
import type { EventRows, Row } from './details.js';
import type { Timeline, TrackTable } from './timeline.js';

/**
 * SQL of the rows of a table as `e`, each with the names of its stage and operator, and a kernel with the share of the roofline that its
 * GEMM reached: the minimum time of the call divided by the time of all kernels of the call.
 */
export function rowsWithNames(table: TrackTable, roofs: readonly CallRoof[] = []): string {
  const columns: object = tables[table].columns;
  const same = (other: string, id: string): string =>
    ['execution_id', 'capture_id', id].map((column) => `${other}.${column} = e.${column}`).join(' AND ');
  const hasStage = 'stage_id' in columns && table !== 'stages';
  const hasOperator = 'op_id' in columns && table !== 'ops';
  const hasRoof = table === 'kernels' && roofs.length > 0;
  const roofColumns = `, r.bound AS roof_bound,
    r.roof_ns / (SELECT sum(dur_ns) FROM kernels k WHERE ${same('k', 'op_id')}) AS roof_share`;
  // The kind in which figures count the row. A range inside a step is none of the instances that they count.
  const kindColumn = hasStage
    ? `, s.raw_name AS stage, ${countedKindSql('p')} AS stage_kind`
    : `, CASE WHEN e.stage_id = e.phase_id THEN ${countedKindSql('e')} END AS stage_kind`;
  return `SELECT e.*${hasStage || table === 'stages' ? kindColumn : ''}${hasOperator ? ', o.name AS operator, o.input_shapes AS shapes' : ''}${hasRoof ? roofColumns : ''} FROM ${table} e
    ${hasStage ? `LEFT JOIN stages s ON ${same('s', 'stage_id')} LEFT JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id` : ''} ${hasOperator ? `LEFT JOIN ops o ON ${same('o', 'op_id')}` : ''}
    ${hasRoof ? `LEFT JOIN ${roofTable(roofs)} r ON r.capture_id = o.capture_id AND r.name = o.name AND r.inputs = o.input_shapes AND r.types IS NOT DISTINCT FROM o.input_types` : ''}`;
}

function roofTable(roofs: readonly CallRoof[]): string {
  const columns =
    '{"capture_id":"VARCHAR","name":"VARCHAR","inputs":"VARCHAR","types":"VARCHAR","roof_ns":"DOUBLE","bound":"VARCHAR"}';
  return `(SELECT unnest(from_json('${JSON.stringify(roofs).replaceAll("'", "''")}', '[${columns}]'), recursive := true))`;
}

/** Reads rows of events from a session's tables. */
export const storedRows = (
  database: SessionDatabase,
  { execution }: Timeline,
  roofs: readonly CallRoof[] = [],
): EventRows => ({
  rowOf: async (track, start, end) => {
    const inside =
      track.table === 'gaps'
        ? 'e.start_ns <= $2 AND e.start_ns + e.dur_ns >= $3'
        : `e.start_ns = $2 AND ${track.table === 'stages' ? 'e.end_ns' : 'e.start_ns + e.dur_ns'} = $3`;
    const keys = (['rank', 'pid', 'tid', 'device', 'stream'] as const).filter((key) => track[key] !== null);
    const [row] = await database.query<Row>(
      `${rowsWithNames(track.table, roofs)} WHERE e.execution_id = $1 AND ${inside} ${keys.map((key, i) => `AND e.${key} = $${i + 4}`).join(' ')} LIMIT 1`,
      [execution, start, end, ...keys.map((key) => track[key])],
    );
    return row ?? null;
  },
  launchedBy: async (call) => {
    const [first] = await database.query<{ start_ns: number; dur_ns: number; device: number }>(
      `SELECT start_ns, dur_ns, device FROM (SELECT execution_id, capture_id, pid, correlation, start_ns, dur_ns, device FROM kernels
         UNION ALL SELECT execution_id, capture_id, pid, correlation, start_ns, dur_ns, device FROM copies)
       WHERE execution_id = $1 AND capture_id = $2 AND pid IS NOT DISTINCT FROM $3 AND correlation = $4 ORDER BY start_ns LIMIT 1`,
      [execution, String(call['capture_id']), call['pid'] as number | null, Number(call['correlation'])],
    );
    return first ?? null;
  },
});
