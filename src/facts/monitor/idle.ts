import type { MonitorDevice } from '../../model/documents/monitor.js';
import { figure, missing } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';
import { formatSetting } from '../../vocabulary/format.js';

/** Number of longest periods listed per kind; all are counted. */
export const maxPeriods = 200;

/**
 * Idle periods of a GPU: utilization under `percent` for at least `ms`. Utilization is the driver's mean over 1/6 to
 * 1 s, so it does not show shorter pauses, for example between steps.
 */
export async function readIdle(
  database: SessionDatabase,
  scope: string,
  { percent, ms }: { percent: number; ms: number },
): Promise<MonitorDevice['idle']> {
  const [totals] = await database.query<{ n: number; total_ns: number | null }>(
    `SELECT count(*) AS n, sum(held_ns) AS total_ns FROM monitor_samples WHERE scope = $1 AND metric = 'utilization_percent'`,
    [scope],
  );
  if (!totals?.n || !totals.total_ns) {
    const reason = missing('no_utilization', 'The source has no utilization of this device.');
    return { share: reason, count: 0, longest_ms: null, periods: [] };
  }
  const periods = await database.query<{ start_ns: number; dur_ns: number }>(
    `WITH flagged AS (
       SELECT t_ns, held_ns, stretch, value < $2 AS hit, row_number() OVER (ORDER BY t_ns)
         - row_number() OVER (PARTITION BY value < $2 ORDER BY t_ns) AS island
       FROM monitor_samples WHERE scope = $1 AND metric = 'utilization_percent')
     SELECT min(t_ns) AS start_ns, (max(t_ns + held_ns) - min(t_ns))::DOUBLE AS dur_ns FROM flagged WHERE hit
     GROUP BY stretch, island HAVING max(t_ns + held_ns) - min(t_ns) >= $3 ORDER BY dur_ns DESC`,
    [scope, percent, Math.round(ms * 1e6)],
  );
  const idleNs = periods.reduce((sum, { dur_ns }) => sum + dur_ns, 0);
  return {
    share: figure(
      idleNs / totals.total_ns,
      'ratio',
      `telemetry: utilization_percent under ${formatSetting(percent, '%')} for at least ${formatSetting(ms, 'ms')}`,
      {
        n: totals.n,
      },
    ),
    count: periods.length,
    longest_ms: periods[0] ? periods[0].dur_ns / 1e6 : null,
    periods: periods.slice(0, maxPeriods).sort((a, b) => a.start_ns - b.start_ns),
  };
}
