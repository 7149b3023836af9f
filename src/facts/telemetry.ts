import type { TelemetryResult } from '../model/documents/profile.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { SessionDatabase } from '../session/query.js';
import { seriesOf } from './sampled-metrics.js';

/** Maximum cores with series of their own. */
const maxCores = 16;

/** Host activity: means over the timed repeats of the clean execution, and the series. */
export async function readTelemetry(database: SessionDatabase): Promise<TelemetryResult | null> {
  const [samples] = await database.query<{ intervals: number | null; seconds: number }>(
    `SELECT sum(n - 1) AS intervals, sum(span_ns) / 1e9 AS seconds FROM (
       SELECT count(DISTINCT t_ns) AS n, max(t_ns) - min(t_ns) AS span_ns FROM telemetry
       WHERE execution_id = 'clean' AND scope = 'host' GROUP BY pid)`,
  );
  if (!samples?.intervals) return null;
  const cores = await database.query<{ scope: string }>(
    `SELECT DISTINCT scope FROM telemetry WHERE scope LIKE 'cpu%' AND execution_id = 'clean'`,
  );
  const scopes = [
    'host',
    'process',
    'other_processes',
    ...(cores.length <= maxCores ? cores.map((c) => c.scope) : []),
  ];
  const rows = await database.query<{ scope: string; metric: string; t: number; value: number }>(
    `SELECT scope, metric, t_ns / 1e6 AS t, value FROM telemetry
     WHERE execution_id = 'clean' AND metric <> 'rss_bytes' AND list_contains(string_split($1, ','), scope)
     ORDER BY scope, metric, t_ns`,
    [scopes.join(',')],
  );
  return {
    sample_hz: figure(
      samples.intervals / samples.seconds,
      'Hz',
      'intervals between samples / sampled time of each process',
    ),
    cpu_percent: await readTimedMean(database, 'host', 'utilization_percent', '%'),
    // 100 % is one core.
    other_processes_cpu_percent: await readTimedMean(database, 'other_processes', 'cores_busy', '%', 100),
    clock_mhz: await readTimedMean(database, 'cpu%', 'clock_mhz', 'MHz'),
    series: seriesOf(rows),
  };
}

const noSamples = missing('no_samples', 'no sample during the timed repeats');

async function readTimedMean(
  database: SessionDatabase,
  scope: string,
  metric: string,
  unit: string,
  scale = 1,
): Promise<Figure> {
  const [row] = await database.query<{ mean: number | null; n: number }>(
    `SELECT avg(t.value) AS mean, count(*) AS n FROM telemetry t
     JOIN iterations i ON i.execution_id = t.execution_id AND i.pid = t.pid AND NOT i.warmup
       AND t.t_ns BETWEEN i.start_ns AND i.end_ns
     WHERE t.execution_id = 'clean' AND t.scope LIKE $1 AND t.metric = $2`,
    [scope, metric],
  );
  if (!row || row.mean === null) return noSamples;
  return figure(row.mean * scale, unit, `telemetry: ${scope} ${metric}, timed repeats`, { n: row.n });
}
