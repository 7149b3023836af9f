import { limitingBits, throttleReasons } from '../../../model/throttle-reasons.js';
import { literal } from '../../../facts/trace/scope.js';

const reasonMetrics = throttleReasons
  .filter(({ limits }) => limits)
  .map(({ name }) => `clocks_(event|throttle)_reasons_${name}`);

/** Samples of one GPU by throttle reason, in any form that sources record, with the clock at the same time. */
export const throttledSql = (scope: string): string =>
  `WITH clock AS (SELECT t_ns, value AS sm_clock_mhz FROM telemetry WHERE scope = ${literal(scope)} AND metric = 'sm_clock_mhz' AND value IS NOT NULL),
   reason AS (
     SELECT t_ns, metric, CASE WHEN metric = 'throttle_bits' THEN value::BIGINT & ${limitingBits} ELSE value END AS value FROM telemetry
     WHERE scope = ${literal(scope)} AND value IS NOT NULL
       AND (metric IN ('throttle_bits', 'power_violation_percent', 'thermal_violation') OR metric SIMILAR TO '${reasonMetrics.join('|')}'))
   SELECT metric, value, count(*) AS samples, min(reason.t_ns) AS first_ns, max(reason.t_ns) AS last_ns, round(avg(sm_clock_mhz), 1) AS sm_clock_mhz, min(sm_clock_mhz) AS min_mhz
   FROM reason ASOF LEFT JOIN clock ON reason.t_ns >= clock.t_ns GROUP BY metric, value ORDER BY value <> 0 DESC, samples DESC, metric, value`;

/** Clocks of one GPU while busy. */
export const clocksSql = (scope: string, busyPercent: number): string =>
  `WITH clock AS (SELECT t_ns, value AS sm_clock_mhz FROM telemetry WHERE scope = ${literal(scope)} AND metric = 'sm_clock_mhz' AND value IS NOT NULL),
   busy AS (SELECT t_ns, value AS utilization_percent FROM telemetry WHERE scope = ${literal(scope)} AND metric = 'utilization_percent' AND value IS NOT NULL)
   SELECT sm_clock_mhz, count(*) AS samples, min(clock.t_ns) AS first_ns, max(clock.t_ns) AS last_ns
   FROM clock ASOF JOIN busy ON clock.t_ns >= busy.t_ns WHERE utilization_percent >= ${busyPercent} GROUP BY sm_clock_mhz ORDER BY sm_clock_mhz`;

/** Runs of samples in which GPUs were idle. */
export const idlePeriodsSql = (scopes: readonly string[], belowPercent: number): string =>
  `WITH sample AS (
     SELECT scope, t_ns, value, lead(t_ns) OVER (PARTITION BY scope ORDER BY t_ns) AS next_ns, value < ${belowPercent} AS idle,
       row_number() OVER (PARTITION BY scope ORDER BY t_ns) - row_number() OVER (PARTITION BY scope, value < ${belowPercent} ORDER BY t_ns) AS stretch
     FROM telemetry WHERE metric = 'utilization_percent' AND value IS NOT NULL AND scope IN (${scopes.map((scope) => literal(scope)).join(', ')}))
   SELECT scope, min(t_ns) AS start_ns, round((max(coalesce(next_ns, t_ns)) - min(t_ns)) / 1e6, 1) AS ms, count(*) AS samples, round(avg(value), 2) AS utilization_percent
   FROM sample WHERE idle GROUP BY scope, stretch ORDER BY ms DESC, scope, start_ns`;
