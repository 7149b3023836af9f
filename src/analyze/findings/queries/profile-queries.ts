import type { StageWaterfall } from '../../../model/documents/explain.js';
import { literal } from '../../trace/scope.js';

/** Of a stage of the embedded engine: its time without the profiler, operators by class and gaps with it. */
const stageSql = (kind: string): string =>
  `WITH profiled AS (SELECT execution_id, stage_id FROM stages WHERE execution_id = 'profiled' AND kind = ${literal(kind)} AND NOT warmup),
   n AS (SELECT count(*) AS instances FROM profiled)
   SELECT 'stage, without the profiler' AS what, NULL AS calls, round(avg(end_ns - start_ns) / 1e6, 4) AS ms FROM stages
   WHERE execution_id = 'clean' AND kind = ${literal(kind)} AND NOT warmup
   UNION ALL SELECT o.class || ' operators', round(count(*) / any_value(instances), 2), round(sum(o.dur_ns) / 1e6 / any_value(instances), 4)
   FROM profiled JOIN ops o USING (execution_id, stage_id), n GROUP BY o.class
   UNION ALL SELECT g.cause, round(count(*) / any_value(instances), 2), round(sum(g.dur_ns) / 1e6 / any_value(instances), 4)
   FROM profiled JOIN gaps g USING (execution_id, stage_id), n GROUP BY g.cause ORDER BY ms DESC, what`;

/** Matrix products of the decode step under the profiler. */
const productsSql = `SELECT o.name, o.layer, round(count(*) / (SELECT count(*) FROM stages WHERE execution_id = 'profiled' AND kind = 'decode' AND NOT warmup), 2) AS calls,
     round(sum(o.dur_ns) / 1e6 / (SELECT count(*) FROM stages WHERE execution_id = 'profiled' AND kind = 'decode' AND NOT warmup), 4) AS ms
   FROM stages s JOIN ops o USING (execution_id, stage_id)
   WHERE s.execution_id = 'profiled' AND s.kind = 'decode' AND NOT s.warmup AND o.class = 'gemm' GROUP BY ALL ORDER BY ms DESC, o.name`;

/** Decode steps by quarter of the output. */
const growthSql = `WITH step AS (
     SELECT s.step_index, (coalesce(lead(s.start_ns) OVER (PARTITION BY s.pid, s.iteration ORDER BY s.step_index), i.end_ns) - s.start_ns) / 1e6 AS ms
     FROM stages s JOIN iterations i ON i.execution_id = s.execution_id AND i.pid = s.pid AND i.iteration = s.iteration
     WHERE s.execution_id = 'clean' AND s.kind = 'decode' AND s.step_index IS NOT NULL AND NOT s.warmup),
   mean AS (SELECT step_index, avg(ms) AS ms FROM step GROUP BY step_index)
   SELECT quarter, min(step_index) AS first_step, max(step_index) AS last_step, round(avg(ms), 4) AS ms FROM (
     SELECT *, ntile(4) OVER (ORDER BY step_index) AS quarter FROM mean) GROUP BY quarter ORDER BY quarter`;

const memorySql = `SELECT kind, point, bytes, source FROM memory WHERE execution_id = 'clean' AND point IS NOT NULL ORDER BY t_ns, kind`;

const bars: Record<string, string> = {
  kv_cache_copied: 'nonessential.copy',
  copies: 'nonessential.copy',
  runtime_call: 'host.runtime_call',
  runtime_dispatch: 'host.runtime_dispatch',
};

/** The rows that an observation of an embedded engine's profile (src/analyze/observations.ts) rests on. */
export function observationSql(
  id: string,
  stage: string | null,
  waterfalls: readonly StageWaterfall[],
): string {
  const bar = waterfalls.find(({ kind }) => kind === stage)?.bars.find((one) => one.id === bars[id]);
  if (bar?.sql) return bar.sql;
  if (id === 'vocabulary') return productsSql;
  if (id === 'context_growth') return growthSql;
  if (id === 'memory_not_itemised') return memorySql;
  return stageSql(stage ?? 'prefill');
}
