import type { BenchPlan, BenchPointResult } from '../../model/documents/bench.js';
import { figure, missing, type Figure, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import type { SessionDatabase } from '../../session/query.js';
import { throttleReasons } from '../trace/telemetry.js';
import { type Because, reasons } from './plan.js';
import type { BenchRows, MemoryRow, PointRow } from './rows.js';

/** A device's or the host's metric over the timed repeats of a point. */
export interface MetricRow {
  point: string;
  scope: string;
  metric: string;
  mean: number;
  n: number;
  largest: number;
  /** Samples from 1 s after the point began without a break: NVML's means over the last second hold nothing else. */
  settled: number | null;
  settled_n: number;
}

/** Samples in which a reason held the clocks down, of all that were taken in a point's timed repeats. */
export interface ThrottleRow {
  point: string;
  scope: string;
  text: string;
  share: number;
}

export interface Telemetry {
  metrics: MetricRow[];
  throttled: ThrottleRow[];
  /** Scopes of the GPUs that the engine computed on. */
  gpus: string[];
}

/** NVML gives power as the mean of the last second (Ampere and newer; nvmlDeviceGetPowerUsage), utilisation of up to one. */
const averagedNs = 1e9;
/** Repeats of a point with less time between them count as running without a break. */
const breakNs = 1e8;

/** Timed repeats of each point, each with the begin of the unbroken stretch of that point it lies in. */
const spans = `runs AS (
    SELECT point, coalesce(warmup, false) AS warmup, start_ns, end_ns,
           CASE WHEN lag(point) OVER w = point AND start_ns - lag(end_ns) OVER w < ${breakNs} THEN 0 ELSE 1 END AS begins
    FROM iterations WHERE execution_id = $1 AND coalesce(rank, 0) = 0 AND point IS NOT NULL WINDOW w AS (ORDER BY start_ns)),
  numbered AS (SELECT *, sum(begins) OVER (ORDER BY start_ns) AS stretch FROM runs),
  spans AS (SELECT *, min(start_ns) OVER (PARTITION BY stretch) AS since FROM numbered),
  samples AS (
    SELECT s.point, t.scope, t.metric, t.value, t.t_ns - s.since >= ${averagedNs} AS is_settled
    FROM telemetry t JOIN spans s ON NOT s.warmup AND t.t_ns BETWEEN s.start_ns AND s.end_ns
    WHERE t.execution_id = $1 AND t.value IS NOT NULL AND t.scope NOT SIMILAR TO 'cpu\\d+')`;

/** What was sampled while a variant's timed repeats ran; samples between them are in nothing. */
export async function benchTelemetry(
  database: SessionDatabase,
  executionId: string,
  devices: number,
): Promise<Telemetry> {
  const metrics = await database.query<MetricRow>(
    `WITH ${spans}
     SELECT point, scope, metric, avg(value) AS mean, count(*) AS n, max(value) AS largest,
            avg(value) FILTER (is_settled) AS settled, count(*) FILTER (is_settled) AS settled_n
     FROM samples WHERE metric <> 'throttle_bits' GROUP BY ALL ORDER BY ALL`,
    [executionId],
  );
  const shares = throttleReasons.map(
    ({ bit }) => `avg(((value::BIGINT & ${bit}) <> 0)::INTEGER) AS bit_${bit}`,
  );
  const bits = await database.query<Record<string, number> & { point: string; scope: string }>(
    `WITH ${spans} SELECT point, scope, ${shares.join(', ')} FROM samples WHERE metric = 'throttle_bits' GROUP BY ALL ORDER BY ALL`,
    [executionId],
  );
  const gpus = usedGpus(metrics, devices);
  const throttled = bits
    .filter(({ scope }) => gpus.includes(scope))
    .flatMap((row) =>
      throttleReasons.flatMap(({ bit, text }) => {
        const share = row[`bit_${bit}`] ?? 0;
        return share > 0 ? [{ point: row.point, scope: row.scope, text, share }] : [];
      }),
    );
  return { metrics, throttled, gpus };
}

/** Every GPU of the host is sampled; the engine's are those that worked most. */
function usedGpus(metrics: readonly MetricRow[], devices: number): string[] {
  const work = new Map<string, number>();
  for (const { scope, metric, mean, n } of metrics) {
    if (!/^gpu\d+$/.test(scope)) continue;
    work.set(scope, (work.get(scope) ?? 0) + (metric === 'utilization_percent' ? mean * n : 0));
  }
  return [...work]
    .toSorted((x, y) => y[1] - x[1])
    .slice(0, Math.max(1, devices))
    .map(([scope]) => scope)
    .sort();
}

/** Whether the engine computed on the CPU; another machine's server is not known to. */
export const onCpu = (workload: Workload): boolean => workload.device === 'cpu';

/** Facts of the machine while one point ran. */
export function machineFigures(
  rows: Pick<BenchRows, 'memory'> & { outcomes: readonly PointRow[] },
  telemetry: Telemetry,
  about: { point: string; secondsPerToken: number | null; workload: Workload; plan: BenchPlan },
): BenchPointResult['machine'] {
  const { point, workload, secondsPerToken } = about;
  const because = reasons(about.plan.cannot);
  const own = telemetry.metrics.filter((row) => row.point === point);
  const gpu = gpuFigures(own, telemetry.gpus, because, onCpu(workload));
  const cores = own.find(({ scope, metric }) => scope === 'process' && metric === 'cores_busy');
  const cache = own.filter(({ metric }) => metric === 'kv_cache_usage_ratio');
  return {
    gpu_utilization_percent: gpu.utilization,
    gpu_memory_used_bytes: gpuMemory(rows.memory, point, telemetry.gpus, gpu.none),
    memory_bytes: memoryFigure(rows, point, because),
    power_w: gpu.power,
    sm_clock_mhz: gpu.clock,
    cpu_cores_busy: cores
      ? figure(cores.mean, 'cores', 'telemetry: process cores_busy, timed repeats', { n: cores.n })
      : because(
          ['cpu_cores_busy', 'cpu'],
          missing('no_samples', 'no host sample fell into the timed repeats'),
        ),
    joules_per_output_token:
      gpu.power.value === null
        ? gpu.power
        : secondsPerToken === null
          ? missing('no_repeats', 'no timed repeat was completed')
          : figure(
              gpu.power.value * secondsPerToken,
              'J',
              'mean power × end to end / (batch × output tokens); prefill is in it',
            ),
    kv_cache_usage:
      cache.length > 0
        ? figure(
            Math.max(...cache.map(({ largest }) => largest)),
            'ratio',
            'largest kv_cache_usage_ratio, timed repeats',
          )
        : because(
            ['kv_cache_usage', 'kv_occupancy'],
            missing('not_told', 'the engine does not tell how full its KV cache is'),
          ),
  };
}

function gpuFigures(own: readonly MetricRow[], gpus: readonly string[], because: Because, cpu: boolean) {
  const none = cpu
    ? missing('no_gpu', 'it ran on the CPU')
    : because(
        ['gpu', 'gpu_utilization', 'gpu_utilization_percent', 'telemetry'],
        missing('not_sampled', 'no sample of a GPU fell into the timed repeats'),
      );
  const of = (metric: string) =>
    cpu ? [] : own.filter((row) => row.metric === metric && gpus.includes(row.scope));
  const named = (rows: readonly MetricRow[]) => rows.map(({ scope }) => scope).join(' + ');
  const mean = (rows: readonly MetricRow[], value: (row: MetricRow) => number) =>
    rows.reduce((sum, row) => sum + value(row), 0) / rows.length;
  const busy = of('utilization_percent');
  const settled = busy.length > 0 && busy.every((row) => row.settled_n > 0);
  const clock = of('sm_clock_mhz');
  const power = of('power_w');
  const samples = (rows: readonly MetricRow[], count: (row: MetricRow) => number) => ({
    n: rows.reduce((sum, row) => sum + count(row), 0),
  });
  return {
    none,
    utilization:
      busy.length === 0
        ? none
        : figure(
            mean(busy, (row) => (settled ? row.settled! : row.mean)),
            '%',
            `telemetry: ${named(busy)} utilization_percent, timed repeats${settled ? '' : '; these are shorter than the time NVML averages over (up to 1 s), so their neighbours are in it'}`,
            samples(busy, (row) => (settled ? row.settled_n : row.n)),
          ),
    clock:
      clock.length === 0
        ? none
        : figure(
            mean(clock, (row) => row.mean),
            'MHz',
            `telemetry: ${named(clock)} sm_clock_mhz, timed repeats`,
            samples(clock, ({ n }) => n),
          ),
    power: powerOf(power, none),
  };
}

function powerOf(rows: readonly MetricRow[], none: MissingFigure): Figure {
  if (rows.length === 0) return none;
  if (rows.some(({ settled }) => settled === null)) {
    return missing(
      'too_short',
      'NVML averages power over 1 s and this point never ran for longer without a break: what ran beside it would be in it (more --output-len, or this point alone)',
    );
  }
  return figure(
    rows.reduce((sum, { settled }) => sum + settled!, 0),
    'W',
    `telemetry: ${rows.map(({ scope }) => scope).join(' + ')} power_w, from 1 s into a stretch of this point`,
    { n: rows.reduce((sum, { settled_n }) => sum + settled_n, 0) },
  );
}

function gpuMemory(
  memory: readonly MemoryRow[],
  point: string,
  gpus: readonly string[],
  none: MissingFigure,
): Figure {
  const own = memory.filter(
    (row) => row.point === point && row.kind === 'used' && gpus.includes(`gpu${row.device}`),
  );
  if (own.length === 0 || none.reason.code === 'no_gpu') return none;
  return figure(
    own.reduce((sum, { bytes }) => sum + bytes, 0),
    'B',
    `memory: used of ${own.map(({ device }) => `gpu${device}`).join(' + ')}, largest in the timed repeats; all processes`,
  );
}

function memoryFigure(
  { memory, outcomes }: Pick<BenchRows, 'memory'> & { outcomes: readonly PointRow[] },
  point: string,
  because: Because,
): Figure {
  const told = outcomes.filter(({ memory_bytes }) => memory_bytes !== null);
  if (told.length > 0) {
    const most = told.reduce((x, y) => (y.memory_bytes! > x.memory_bytes! ? y : x));
    return figure(
      most.memory_bytes!,
      'B',
      `points.memory_bytes: ${most.memory_source ?? 'the engine'}, largest of the launches`,
      {
        n: told.length,
      },
    );
  }
  const resident = memory.find((row) => row.point === point && row.kind === 'rss' && row.device === null);
  return resident
    ? figure(
        resident.bytes,
        'B',
        'memory: resident set of the process, largest in the timed repeats; what other points left allocated is in it',
      )
    : because(
        ['memory', 'memory_bytes'],
        missing('no_samples', 'memory was not sampled in the timed repeats'),
      );
}
