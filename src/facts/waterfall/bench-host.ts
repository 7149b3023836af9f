import type { SessionDatabase } from '../../session/query.js';
import { literal } from '../trace/scope.js';

/** Host time of a mean prefill or decode step, from a benchmark's stages, ms. */
export interface StageHost {
  /** The engine's call and the sampling after it. */
  callMs: number;
  samplingMs: number;
  /** Time between device events around the step's work; null if the engine records no events. */
  deviceMs: number | null;
  /** Number of steps in the means: a prefill in chunks is one. */
  stages: number;
}

export const hostKey = (point: string, kind: string): string => `${point} ${kind}`;

const timedStagesSql = (executionId: string, point: string | null = null): string =>
  `FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
   WHERE s.execution_id = ${literal(executionId)} AND NOT coalesce(s.warmup, false) AND coalesce(i.rank, 0) = 0 AND coalesce(s.rank, 0) = 0${point === null ? ' AND i.point IS NOT NULL' : ` AND i.point = ${literal(point)}`}`;

/** Host times by hostKey(point, kind). Prefill times are summed over chunks; decode times are means over all steps. */
export async function readStageHosts(
  database: SessionDatabase,
  executionId: string,
): Promise<Map<string, StageHost>> {
  const rows = await database.query<{
    point: string;
    kind: string;
    n: number;
    ms: number;
    device_ms: number | null;
    without_events: number;
  }>(
    `SELECT i.point, CASE WHEN s.kind <> 'sampling' THEN s.kind WHEN s.step_index IS NULL THEN 'after_prefill' ELSE 'after_decode' END AS kind,
       CASE WHEN any_value(s.kind) = 'decode' THEN count(*) ELSE count(DISTINCT (s.pid, s.iteration)) END AS n,
       sum(s.end_ns - s.start_ns)::DOUBLE / 1e6 AS ms, sum(s.device_dur_ns)::DOUBLE / 1e6 AS device_ms, count_if(s.device_dur_ns IS NULL) AS without_events
     ${timedStagesSql(executionId)} AND s.kind IN ('prefill', 'decode', 'sampling') AND (s.kind <> 'decode' OR s.step_index IS NOT NULL)
     GROUP BY ALL`,
  );
  const hostByStage = new Map<string, StageHost>();
  for (const { point, kind, n, ms, device_ms, without_events } of rows) {
    if (kind !== 'prefill' && kind !== 'decode') continue;
    const sampling = rows.find((row) => row.point === point && row.kind === `after_${kind}`);
    hostByStage.set(hostKey(point, kind), {
      callMs: ms / n,
      samplingMs: (sampling?.ms ?? 0) / n,
      deviceMs: device_ms === null || without_events > 0 ? null : device_ms / n,
      stages: n,
    });
  }
  return hostByStage;
}

interface HostSqlFacts {
  executionId: string;
  point: string;
  kind: 'prefill' | 'decode';
  host: StageHost;
}

/** The query behind a host bar; null for bars computed from telemetry. */
export function hostSql(id: string, { executionId, point, kind, host }: HostSqlFacts): string | null {
  const timedRows = timedStagesSql(executionId, point);
  const rows = (expression: string, more: string) =>
    `SELECT 'launch ' || i.launch AS what, count(*)::DOUBLE AS count, sum(${expression})::DOUBLE / 1e6 / ${host.stages} AS ms
${timedRows} ${more} GROUP BY 1`;
  const stage =
    kind === 'decode' ? "AND s.kind = 'decode' AND s.step_index IS NOT NULL" : "AND s.kind = 'prefill'";
  switch (id) {
    case 'host.sampling':
      return `${rows('s.end_ns - s.start_ns', `AND s.kind = 'sampling' AND s.step_index IS ${kind === 'decode' ? 'NOT NULL' : 'NULL'}`)} ORDER BY 3 DESC`;
    case 'host.program':
      return `${rows('s.end_ns - s.start_ns - s.device_dur_ns', stage)} ORDER BY 3 DESC`;
    case 'host.loop': {
      const sampled = `UNION ALL SELECT '(sampling)', NULL, ${-host.samplingMs} ORDER BY 3 DESC`;
      if (kind === 'decode') {
        return `SELECT 'launch ' || launch AS what, count(*)::DOUBLE AS count, sum(period_ns - call_ns)::DOUBLE / 1e6 / ${host.stages} AS ms
FROM (SELECT i.launch, s.end_ns - s.start_ns AS call_ns,
  coalesce(lead(s.start_ns) OVER (PARTITION BY s.pid, s.iteration ORDER BY s.step_index), i.end_ns) - s.start_ns AS period_ns
${timedRows} ${stage}) GROUP BY 1
${sampled}`;
      }
      return `SELECT 'TTFT, launch ' || launch AS what, count(*)::DOUBLE AS count, sum(ttft_ns)::DOUBLE / 1e6 / ${host.stages} AS ms
FROM iterations WHERE execution_id = ${literal(executionId)} AND NOT coalesce(warmup, false) AND coalesce(rank, 0) = 0 AND point = ${literal(point)} GROUP BY 1
UNION ALL SELECT 'the call, ' || what, count, -ms FROM (${rows('s.end_ns - s.start_ns', stage)})
${sampled}`;
    }
    default:
      return null;
  }
}
