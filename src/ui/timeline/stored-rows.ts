import type { SessionDatabase } from '../../session/query.js';
import type { EventRows, Row } from './details.js';
import type { Timeline } from './timeline.js';

/** Rows of events as a session's tables have them. */
export const storedRows = (database: SessionDatabase, { execution }: Timeline): EventRows => ({
  rowOf: async (track, start, end) => {
    const inside =
      track.table === 'gaps'
        ? 'start_ns <= $2 AND start_ns + dur_ns >= $3'
        : `start_ns = $2 AND ${track.table === 'stages' ? 'end_ns' : 'start_ns + dur_ns'} = $3`;
    const keys = (['rank', 'pid', 'tid', 'device', 'stream'] as const).filter((key) => track[key] !== null);
    const [row] = await database.query<Row>(
      `SELECT * FROM ${track.table} WHERE execution_id = $1 AND ${inside} ${keys.map((key, i) => `AND ${key} = $${i + 4}`).join(' ')} LIMIT 1`,
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
