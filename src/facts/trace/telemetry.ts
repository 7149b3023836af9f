import type { PhaseKind, TraceTelemetry } from '../../model/documents/trace.js';
import { throttleReasons } from '../../model/throttle-reasons.js';
import { heldMean, heldSamples } from '../held-samples.js';
import { notSeries } from '../sampled-metrics.js';
import type { TraceScope } from './scope.js';
import { formatNs, formatPercent } from '../../vocabulary/format.js';
import { metricUnit, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import { phaseLabel } from '../../vocabulary/stages.js';

const maxPoints = 600;
/** Excludes metrics of single CPU cores, which do not describe a GPU's timeline. */
const shownScopes = "scope NOT SIMILAR TO 'cpu\\d+'";
const shownMetrics = `metric NOT IN (${notSeries.map((metric) => `'${metric}'`).join(', ')})`;
/** A busy GPU below this share of the run's median busy clock counts as a clock drop. */
const minClockShare = 0.9;

interface Series {
  scope: string;
  metric: string;
  mean: number;
  min: number;
  max: number;
}

/**
 * Power, clocks and utilization of the attributed execution, in total and by phase, with the phases in which throttling
 * and clock drops were sampled. A window has the samples taken in it. Null without samples.
 */
export async function readTelemetry(scope: TraceScope): Promise<TraceTelemetry | null> {
  const { database, source } = scope;
  await scope.need('windows');
  const samples = `(SELECT scope, metric, t_ns, value FROM telemetry WHERE ${shownScopes} AND value IS NOT NULL
    AND execution_id = '${source.attribution.execution_id.replaceAll("'", "''")}')`;
  const series = await database.query<Series>(
    `SELECT scope, metric, ${heldMean} AS mean, min(value) AS min, max(value) AS max
     FROM (${heldSamples(`SELECT NULL AS execution_id, * FROM ${samples} WHERE ${shownMetrics}`)})
     GROUP BY scope, metric ORDER BY scope, metric`,
  );
  if (series.length === 0) return null;
  const byPhase = await database.query<Omit<Series, 'min' | 'max'> & { kind: PhaseKind; samples: number }>(
    `SELECT scope, metric, kind, avg(value) AS mean, count(*) AS samples
     FROM ${samples} t ASOF JOIN (SELECT * FROM windows WHERE kind <> 'sampling') w ON t.t_ns >= w.start_ns
     WHERE t.t_ns < w.end_ns GROUP BY ALL ORDER BY ALL`,
  );
  const points = await database.query<{ scope: string; metric: string; t_ns: number; value: number }>(
    `WITH span AS (SELECT min(t_ns) AS low, greatest(1, max(t_ns) - min(t_ns) + 1) AS width FROM ${samples})
     SELECT scope, metric, (avg(t_ns))::BIGINT AS t_ns, avg(value) AS value FROM ${samples}, span
     WHERE ${shownMetrics} GROUP BY scope, metric, ((t_ns - low) * ${maxPoints} // width) ORDER BY scope, metric, t_ns`,
  );
  return {
    series: series.map((metricSeries) => ({
      ...metricSeries,
      unit: metricUnit(metricSeries.metric),
      phases: byPhase
        .filter(({ scope, metric }) => scope === metricSeries.scope && metric === metricSeries.metric)
        .map(({ kind, mean, samples: count }) => ({ kind, mean, samples: count })),
      points: points
        .filter(({ scope, metric }) => scope === metricSeries.scope && metric === metricSeries.metric)
        .map(({ t_ns, value }): [number, number] => [t_ns, value]),
    })),
    events: await readEvents(database, samples),
  };
}

interface Span {
  scope: string;
  what: string;
  start_ns: number;
  end_ns: number;
  phases: string | null;
}

/** Consecutive samples that meet a condition, as one event, with the phases sampled in it. */
async function readEvents(
  database: TraceScope['database'],
  samples: string,
): Promise<TraceTelemetry['events']> {
  const phaseEvents: TraceTelemetry['events'] = [];
  const spans = (samplesSql: string) =>
    database.query<Span>(
      `WITH flagged AS (${samplesSql}),
       islands AS (
         SELECT *, row_number() OVER (PARTITION BY scope, what ORDER BY t_ns) - row_number() OVER (PARTITION BY scope, what, hit ORDER BY t_ns) AS island FROM flagged),
       timed AS (SELECT i.*, CASE WHEN i.t_ns < w.end_ns THEN kind END AS kind
         FROM islands i ASOF LEFT JOIN (SELECT * FROM windows WHERE kind <> 'sampling') w ON i.t_ns >= w.start_ns)
       SELECT scope, what, min(t_ns) AS start_ns, max(t_ns) AS end_ns, string_agg(DISTINCT kind, ',') AS phases
       FROM timed WHERE hit GROUP BY scope, what, island ORDER BY start_ns LIMIT 100`,
    );
  const phasesOf = ({ phases }: Span): PhaseKind[] =>
    phases ? (phases.split(',').sort() as PhaseKind[]) : [];
  for (const { bit, name, label, limits } of throttleReasons) {
    if (!limits) continue;
    const kind = name === 'sw_power_cap' ? 'power_cap' : 'throttling';
    const rows = await spans(
      `SELECT scope, '${kind}' AS what, t_ns, (value::BIGINT & ${bit}) <> 0 AS hit FROM ${samples} WHERE metric = 'throttle_bits'`,
    );
    for (const row of rows)
      phaseEvents.push(eventOf(row, kind, `clocks throttled (${label})`, phasesOf(row)));
  }
  const drops = await spans(
    `SELECT c.scope, 'clock' AS what, c.t_ns, c.value < ${minClockShare} * m.median_mhz AS hit
     FROM ${samples} c JOIN ${samples} u ON u.scope = c.scope AND u.t_ns = c.t_ns AND u.metric = 'utilization_percent' AND u.value >= 50
     JOIN (SELECT a.scope, median(a.value) AS median_mhz FROM ${samples} a JOIN ${samples} b
             ON b.scope = a.scope AND b.t_ns = a.t_ns AND b.metric = 'utilization_percent' AND b.value >= 50
           WHERE a.metric = 'sm_clock_mhz' GROUP BY a.scope) m ON m.scope = c.scope
     WHERE c.metric = 'sm_clock_mhz'`,
  );
  for (const row of drops) {
    const text = `the SM clock was under ${formatPercent(minClockShare)} of its median while the GPU was busy`;
    phaseEvents.push(eventOf(row, 'clock_drop', text, phasesOf(row)));
  }
  return phaseEvents.toSorted((a, b) => a.start_ns - b.start_ns);
}

function eventOf(
  { scope, start_ns, end_ns }: Span,
  kind: TraceTelemetry['events'][number]['kind'],
  text: string,
  phases: PhaseKind[],
): TraceTelemetry['events'][number] {
  const lasts = end_ns > start_ns;
  // A longer event may start before and end after the phases that were sampled in it.
  const phasesText =
    phases.length > 0
      ? `, ${lasts ? 'overlapping' : 'in'} ${phases.map(phaseLabel).join(', ')}`
      : ', outside all stages';
  const durationText = lasts ? ` for ${formatNs(end_ns - start_ns)}` : ' in one sample';
  return {
    kind,
    scope,
    start_ns,
    end_ns,
    phases,
    text: `${scopeLabel(scope)}: ${text}${durationText}${phasesText}.`,
  };
}
