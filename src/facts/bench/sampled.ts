import { throttleReasons } from '../../model/throttle-reasons.js';
import type { SessionDatabase } from '../../session/query.js';

/** A device's or the host's metric over the timed repeats of a point. */
export interface SampledMetric {
  point: string;
  scope: string;
  metric: string;
  mean: number;
  n: number;
  largest: number;
  /** Samples from 1 s after an unbroken start of the point: NVML's 1 s means cover only this point. */
  settled: number | null;
  settled_n: number;
}

/** Share of samples with a throttle reason in a point's timed repeats. */
interface ThrottleRow {
  point: string;
  scope: string;
  text: string;
  share: number;
}

/** Growth of a GPU's energy counter in unbroken stretches of a point, and the time between its samples. */
export interface EnergyRow {
  point: string;
  scope: string;
  joules: number;
  seconds: number;
}

export interface Telemetry {
  metrics: SampledMetric[];
  energy: EnergyRow[];
  throttled: ThrottleRow[];
  /** Scopes of the GPUs that the engine computed on. */
  gpus: string[];
}

/** NVML averages power over the last second (Ampere and newer; nvmlDeviceGetPowerUsage), utilization over up to one. */
const averagingNs = 1e9;
/** Repeats with less time between them count as unbroken. */
const breakNs = 1e8;

/** Timed repeats of each point, with the start of their unbroken stretch. */
const samplesCte = `runs AS (
    SELECT point, coalesce(warmup, false) AS warmup, start_ns, end_ns,
           CASE WHEN lag(point) OVER w = point AND start_ns - lag(end_ns) OVER w < ${breakNs} THEN 0 ELSE 1 END AS starts_stretch
    FROM iterations WHERE execution_id = $1 AND coalesce(rank, 0) = 0 AND point IS NOT NULL WINDOW w AS (ORDER BY start_ns)),
  numbered AS (SELECT *, sum(starts_stretch) OVER (ORDER BY start_ns) AS stretch FROM runs),
  spans AS (SELECT *, min(start_ns) OVER (PARTITION BY stretch) AS since FROM numbered),
  samples AS (
    SELECT s.point, s.stretch, t.scope, t.metric, t.t_ns, t.value, t.t_ns - s.since >= ${averagingNs} AS is_settled
    FROM telemetry t JOIN spans s ON NOT s.warmup AND t.t_ns BETWEEN s.start_ns AND s.end_ns
    WHERE t.execution_id = $1 AND t.value IS NOT NULL AND t.scope NOT SIMILAR TO 'cpu\\d+')`;

/** Samples during a variant's timed repeats; samples between them are ignored. */
export async function readBenchTelemetry(
  database: SessionDatabase,
  executionId: string,
  devices: number,
): Promise<Telemetry> {
  const metrics = await database.query<SampledMetric>(
    `WITH ${samplesCte}
     SELECT point, scope, metric, avg(value) AS mean, count(*) AS n, max(value) AS largest,
            avg(value) FILTER (is_settled) AS settled, count(*) FILTER (is_settled) AS settled_n
     FROM samples WHERE metric NOT IN ('throttle_bits', 'energy_j') GROUP BY ALL ORDER BY ALL`,
    [executionId],
  );
  const energy = await database.query<EnergyRow>(
    `WITH ${samplesCte}, stretches AS (
       SELECT point, scope, max(value) - min(value) AS j, max(t_ns) - min(t_ns) AS ns FROM samples
       WHERE metric = 'energy_j' GROUP BY point, scope, stretch)
     SELECT point, scope, sum(j) AS joules, sum(ns) / 1e9 AS seconds FROM stretches GROUP BY ALL HAVING seconds > 0`,
    [executionId],
  );
  const limitingReasons = throttleReasons.filter(({ limits }) => limits);
  const shares = limitingReasons.map(
    ({ bit }) => `avg(((value::BIGINT & ${bit}) <> 0)::INTEGER) AS bit_${bit}`,
  );
  const bits = await database.query<Record<string, number> & { point: string; scope: string }>(
    `WITH ${samplesCte} SELECT point, scope, ${shares.join(', ')} FROM samples WHERE metric = 'throttle_bits' GROUP BY ALL ORDER BY ALL`,
    [executionId],
  );
  const gpus = usedGpus([...metrics, ...energy], devices);
  const throttled = bits
    .filter(({ scope }) => gpus.includes(scope))
    .flatMap((row) =>
      limitingReasons.flatMap(({ bit, label: text }) => {
        const share = row[`bit_${bit}`] ?? 0;
        return share > 0 ? [{ point: row.point, scope: row.scope, text, share }] : [];
      }),
    );
  return { metrics, energy, throttled, gpus };
}

/** Every GPU of the host is sampled; the engine's are the busiest ones. */
function usedGpus(rows: readonly (SampledMetric | EnergyRow)[], devices: number): string[] {
  const work = new Map<string, number>();
  for (const row of rows) {
    if (!/^gpu\d+(\.mig\d+)?$/.test(row.scope)) continue;
    const busy = 'metric' in row && row.metric === 'utilization_percent' ? row.mean * row.n : 0;
    work.set(row.scope, (work.get(row.scope) ?? 0) + busy);
  }
  return [...work]
    .toSorted((x, y) => y[1] - x[1])
    .slice(0, Math.max(1, devices))
    .map(([scope]) => scope)
    .sort();
}
