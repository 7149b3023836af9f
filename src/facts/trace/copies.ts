import { figure, missing } from '../../model/figure.js';
import type { PhaseKind, TraceCopy } from '../../model/documents/trace.js';
import { phaseOrder } from './phases.js';
import type { TraceScope } from './scope.js';
import { byPhaseSql } from './step-places.js';
import { spreadColumns, spreadOf } from './spread.js';

interface CopyRow {
  kind: string | null;
  memory: string | null;
  phase: PhaseKind | null;
  bytes: number | null;
  exclusive_ns: number | null;
}

/**
 * Copies and memsets by direction and kind of host memory, over the whole capture and by phase. Bandwidth is bytes / Σ
 * durations, without the time between copies.
 */
export async function readCopies({ database }: TraceScope): Promise<TraceCopy[]> {
  const rows = await database.query<CopyRow>(
    `SELECT kind, memory, phase, sum(bytes)::DOUBLE AS bytes,
            sum(exclusive_ns)::DOUBLE AS exclusive_ns, ${spreadColumns('dur_ns')}
     FROM (SELECT *, CASE WHEN src_kind IS DISTINCT FROM 'device' AND kind IN ('HtoD', 'HtoH') THEN src_kind
                          WHEN dst_kind IS DISTINCT FROM 'device' AND kind = 'DtoH' THEN dst_kind
                          ELSE coalesce(dst_kind, src_kind) END AS memory FROM ${byPhaseSql('phase_copies', { capture: true })})
     GROUP BY kind, memory, phase`,
  );
  const order = ({ phase }: CopyRow) => (phase === null ? -1 : phaseOrder.indexOf(phase));
  return rows
    .toSorted((a, b) => order(a) - order(b) || (spreadOf(b)?.total_ns ?? 0) - (spreadOf(a)?.total_ns ?? 0))
    .map((row) => {
      const spread = spreadOf(row)!;
      const bytes = row.bytes ?? 0;
      return {
        kind: row.kind ?? 'unknown',
        memory: row.memory,
        phase: row.phase,
        bytes,
        exclusive_ns: row.exclusive_ns ?? 0,
        ...spread,
        bandwidth_bytes_per_s:
          row.bytes === null
            ? missing('no_bytes', 'the capture does not record the bytes copied')
            : spread.total_ns > 0
              ? figure(bytes / (spread.total_ns / 1e9), 'B/s', 'bytes / Σ durations')
              : missing('no_time', 'the copies took no measurable time'),
      };
    });
}
