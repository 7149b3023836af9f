import type { MonitorDevice } from '../../model/documents/monitor.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';
import { metricLabel } from '../../vocabulary/sampled-metrics.js';

/** Energy, and power relative to its limit. */
export async function readPower(
  database: SessionDatabase,
  scope: string,
  nearLimit: number,
): Promise<MonitorDevice['power']> {
  const limit = await readLimit(database, scope);
  const near = limit.value === null ? limit : await readNearShare(database, scope, limit.value * nearLimit);
  return {
    limit_w: limit,
    near_limit_share: near,
    capped_share: await readCappedShare(database, scope),
    energy_j: await readEnergy(database, scope),
  };
}

/** The lowest enforced limit. */
async function readLimit(database: SessionDatabase, scope: string): Promise<Figure> {
  for (const metric of ['power_limit_enforced_w', 'power_limit_w']) {
    const [row] = await database.query<{ w: number | null }>(
      `SELECT min(value) AS w FROM monitor_samples WHERE scope = $1 AND metric = $2`,
      [scope, metric],
    );
    if (row && row.w !== null) return figure(row.w, 'W', `telemetry: ${metric}`);
  }
  return missing('no_power_limit', 'The source does not have the power limit.');
}

/** Uses instantaneous power if the source has it: the mean over a second hides short peaks. */
async function readPowerMetric(database: SessionDatabase, scope: string): Promise<string | null> {
  for (const metric of ['power_instant_w', 'power_w', 'power_average_w']) {
    const [row] = await database.query<{ n: number }>(
      `SELECT count(*) AS n FROM monitor_samples WHERE scope = $1 AND metric = $2`,
      [scope, metric],
    );
    if (row && row.n > 1) return metric;
  }
  return null;
}

const noPower = missing('no_power', 'The source does not have the power of this device.');

async function readNearShare(database: SessionDatabase, scope: string, watts: number): Promise<Figure> {
  const metric = await readPowerMetric(database, scope);
  if (metric === null) return noPower;
  const [row] = await database.query<{ near: number | null; total: number | null; n: number }>(
    `SELECT sum(held_ns) FILTER (value >= ${watts}) AS near, sum(held_ns) AS total, count(*) AS n
     FROM monitor_samples WHERE scope = $1 AND metric = $2`,
    [scope, metric],
  );
  if (!row?.total) return noPower;
  return figure((row.near ?? 0) / row.total, 'ratio', `telemetry: ${metric}`, { n: row.n });
}

async function readCappedShare(database: SessionDatabase, scope: string): Promise<Figure> {
  const [row] = await database.query<{ capped: number | null; total: number | null; n: number }>(
    `SELECT sum(held_ns) FILTER ((bits & 4) <> 0) AS capped, sum(held_ns) AS total, count(*) AS n
     FROM monitor_reasons WHERE scope = $1`,
    [scope],
  );
  if (!row?.total) return missing('no_throttle_reasons', 'The source does not have throttle reasons.');
  return figure((row.capped ?? 0) / row.total, 'ratio', 'telemetry: sw_power_cap', { n: row.n });
}

async function readEnergy(database: SessionDatabase, scope: string): Promise<Figure> {
  const [counter] = await database.query<{ j: number | null; n: number; backwards: boolean | null }>(
    `SELECT arg_max(value, t_ns) - arg_min(value, t_ns) AS j, count(*) AS n, bool_or(next_value < value) AS backwards
     FROM monitor_samples WHERE scope = $1 AND metric = 'energy_j'`,
    [scope],
  );
  if (counter && counter.n > 1 && counter.j !== null && counter.backwards !== true)
    return figure(counter.j, 'J', 'energy counter, last − first sample', { n: counter.n });
  const metric = await readPowerMetric(database, scope);
  if (metric === null) return noPower;
  // As the mean over time: energy is mean power times the time.
  const [integral] = await database.query<{ j: number | null; n: number }>(
    `SELECT sum(value * held_ns) / 1e9 AS j, count(*) AS n
     FROM monitor_samples WHERE scope = $1 AND metric = $2`,
    [scope, metric],
  );
  if (!integral || integral.j === null) return noPower;
  return figure(integral.j, 'J', `integral of ${metricLabel(metric)} over time, each sample until the next`, {
    n: integral.n,
  });
}
