import type { MonitorDevice } from '../../model/documents/monitor.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { throttleReasonNames, throttleReasons } from '../../model/throttle-reasons.js';
import type { SessionDatabase } from '../../session/query.js';
import { maxPeriods } from './idle.js';
import { formatSetting } from '../../vocabulary/format.js';

const noReasons = missing('no_throttle_reasons', 'The source does not have throttle reasons.');

interface Period {
  start_ns: number;
  dur_ns: number;
  bits: number;
  clock_mhz: number | null;
}

/**
 * Throttled periods, their reasons and clocks.
 * @param usualMhz from readClock()
 */
export async function readThrottling(
  database: SessionDatabase,
  scope: string,
  usualMhz: Figure,
): Promise<MonitorDevice['throttling']> {
  const [totals] = await database.query<{ n: number; total_ns: number | null; limited_ns: number | null }>(
    `SELECT count(*) AS n, sum(held_ns) AS total_ns, sum(held_ns) FILTER (bits <> 0) AS limited_ns
     FROM monitor_reasons WHERE scope = $1`,
    [scope],
  );
  if (!totals?.n || !totals.total_ns) return { share: noReasons, count: 0, reasons: [], periods: [] };
  const periods = await database.query<Period>(
    `WITH flagged AS (
       SELECT t_ns, held_ns, stretch, bits, row_number() OVER (ORDER BY t_ns)
         - row_number() OVER (PARTITION BY bits <> 0 ORDER BY t_ns) AS island
       FROM monitor_reasons WHERE scope = $1),
     spans AS (
       SELECT min(t_ns) AS start_ns, max(t_ns + held_ns) AS end_ns, max(t_ns) AS last_ns, bit_or(bits) AS bits
       FROM flagged WHERE bits <> 0 GROUP BY stretch, island)
     SELECT start_ns, (end_ns - start_ns)::DOUBLE AS dur_ns, bits,
       (SELECT avg(value) FROM monitor_samples c WHERE c.scope = $1 AND c.metric = 'sm_clock_mhz'
          AND c.t_ns BETWEEN start_ns AND last_ns) AS clock_mhz
     FROM spans ORDER BY dur_ns DESC`,
    [scope],
  );
  const reasons: MonitorDevice['throttling']['reasons'] = [];
  for (const { bit, name, label, limits } of throttleReasons) {
    if (!limits) continue;
    const [row] = await database.query<{ ns: number | null; n: number }>(
      `SELECT sum(held_ns) AS ns, count(*) AS n FROM monitor_reasons WHERE scope = $1 AND (bits & ${bit}) <> 0`,
      [scope],
    );
    if (row?.n) reasons.push({ reason: name, label, share: (row.ns ?? 0) / totals.total_ns });
  }
  const usual = usualMhz.value;
  return {
    share: figure((totals.limited_ns ?? 0) / totals.total_ns, 'ratio', 'telemetry: throttle reasons', {
      n: totals.n,
    }),
    count: periods.length,
    reasons: reasons.sort((a, b) => b.share - a.share),
    periods: periods
      .slice(0, maxPeriods)
      .sort((a, b) => a.start_ns - b.start_ns)
      .map(({ start_ns, dur_ns, bits, clock_mhz }) => ({
        start_ns,
        dur_ns,
        reasons: throttleReasonNames(bits),
        clock_mhz,
        clock_drop: clock_mhz === null || usual === null ? null : 1 - clock_mhz / usual,
      })),
  };
}

/** The clock under load, and how long it was clearly lower than usual while the GPU was busy. */
export async function readClock(
  database: SessionDatabase,
  scope: string,
  { busyPercent, drop }: { busyPercent: number; drop: number },
): Promise<MonitorDevice['clock']> {
  const busy = `SELECT c.t_ns, c.value, c.held_ns, coalesce(r.bits, 0) AS bits
    FROM (SELECT * FROM monitor_samples WHERE scope = $1 AND metric = 'sm_clock_mhz') c
    ASOF JOIN (SELECT t_ns, value AS utilization FROM monitor_samples WHERE scope = $1 AND metric = 'utilization_percent') u
      ON c.t_ns >= u.t_ns
    ASOF LEFT JOIN (SELECT t_ns, bits FROM monitor_reasons WHERE scope = $1) r ON c.t_ns >= r.t_ns
    WHERE u.utilization >= ${busyPercent}`;
  const [usual] = await database.query<{ mhz: number | null; n: number }>(
    `SELECT median(value) AS mhz, count(*) AS n FROM (${busy}) WHERE bits = 0`,
    [scope],
  );
  const [reasons] = await database.query<{ n: number }>(
    'SELECT count(*) AS n FROM monitor_reasons WHERE scope = $1',
    [scope],
  );
  // Without recorded reasons throttling is unknown.
  const unthrottled = (reasons?.n ?? 0) > 0 ? ' and not throttled' : '';
  const source = `telemetry: sm_clock_mhz while at least ${formatSetting(busyPercent, '%')} busy`;
  const reference =
    usual?.n && usual.mhz !== null
      ? figure(usual.mhz, 'MHz', `${source}${unthrottled}, median`, { n: usual.n })
      : await readHighestClock(database, scope, `${formatSetting(busyPercent, '%')} busy${unthrottled}`);
  if (reference.value === null) return { usual_mhz: reference, dropped_share: reference };
  const [row] = await database.query<{ low: number | null; total: number | null; n: number }>(
    `SELECT sum(held_ns) FILTER (value < ${drop} * ${reference.value}) AS low, sum(held_ns) AS total, count(*) AS n FROM (${busy})`,
    [scope],
  );
  return {
    usual_mhz: reference,
    dropped_share: row?.total
      ? figure((row.low ?? 0) / row.total, 'ratio', source, { n: row.n })
      : missing('never_busy', `No sample is at least ${formatSetting(busyPercent, '%')} busy.`),
  };
}

/** For a GPU that was never busy without throttling: its maximum clock is the reference. */
async function readHighestClock(database: SessionDatabase, scope: string, when: string): Promise<Figure> {
  const [row] = await database.query<{ mhz: number | null }>(
    `SELECT max(value) AS mhz FROM monitor_samples WHERE scope = $1 AND metric = 'max_sm_clock_mhz'`,
    [scope],
  );
  return row && row.mhz !== null
    ? figure(row.mhz, 'MHz', `the GPU's highest clock: it was never ${when}`)
    : missing('never_busy', `No clock was sampled while at least ${when}.`);
}
