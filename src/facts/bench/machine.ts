import type { BenchPlan, BenchPointResult } from '../../model/documents/bench.js';
import { figure, missing, type Figure, type MissingFigure } from '../../model/figure.js';
import type { Workload } from '../../model/manifest.js';
import { type MissingReason, missingReasons } from './plan.js';
import type { BenchRows, MemoryRow, PointRow } from './rows.js';
import type { EnergyRow, SampledMetric, Telemetry } from './sampled.js';

export const onCpu = (workload: Workload): boolean => workload.device === 'cpu';
/** Device of an engine that is reached over HTTP: its hardware is not known. */
export const remoteDevice = 'server';
const localUrl = /^https?:\/\/(localhost|127\.|\[::1\])/;
/** Whether the engine is a server on the machine of the client. */
export const isServedHere = ({ device, engine }: Workload): boolean =>
  device === remoteDevice && localUrl.test(String(engine.options['url']));

/** Machine state during one point. */
export function machineFigures(
  rows: Pick<BenchRows, 'memory'> & { outcomes: readonly PointRow[] },
  telemetry: Telemetry,
  about: { point: string; secondsPerToken: number | null; workload: Workload; plan: BenchPlan },
): BenchPointResult['machine'] {
  const { point, workload, secondsPerToken } = about;
  const reasonFor = missingReasons(about.plan.not_measured);
  const pointMetrics = telemetry.metrics.filter((row) => row.point === point);
  const energy = telemetry.energy.filter((row) => row.point === point);
  const gpu = gpuFigures(pointMetrics, energy, telemetry.gpus, noGpu(workload, reasonFor));
  const cores = pointMetrics.find(({ scope, metric }) => scope === 'process' && metric === 'cores_busy');
  const cache = pointMetrics.filter(({ metric }) => metric === 'kv_cache_usage_ratio');
  return {
    gpu_utilization_percent: gpu.utilization,
    gpu_memory_used_bytes: gpuMemory(rows.memory, point, telemetry.gpus, gpu.missingGpu),
    memory_bytes: memoryFigure(rows, point, reasonFor, workload.device),
    power_w: gpu.power,
    sm_clock_mhz: gpu.clock,
    cpu_cores_busy: cores
      ? figure(cores.mean, 'cores', 'telemetry: process cores_busy, timed repeats', { n: cores.n })
      : reasonFor(
          ['cpu_cores_busy', 'cpu'],
          missing('no_samples', 'no host sample during the timed repeats'),
        ),
    joules_per_output_token:
      gpu.power.value === null
        ? gpu.power
        : secondsPerToken === null
          ? missing('no_repeats', 'no timed repeat was completed')
          : figure(
              gpu.power.value * secondsPerToken,
              'J',
              'mean power × end to end / (batch × output tokens); includes prefill',
            ),
    kv_cache_usage:
      cache.length > 0
        ? figure(
            Math.max(...cache.map(({ largest }) => largest)),
            'ratio',
            'largest kv_cache_usage_ratio, timed repeats',
          )
        : reasonFor(
            ['kv_cache_usage', 'kv_occupancy'],
            missing('not_reported', 'the engine does not report its KV cache usage'),
          ),
  };
}

function noGpu(workload: Workload, reasonFor: MissingReason): MissingFigure {
  if (onCpu(workload)) return missing('no_gpu', 'it ran on the CPU');
  if (workload.device === remoteDevice && !isServedHere(workload)) {
    return missing('no_gpu', "a server's GPU cannot be sampled from another machine");
  }
  return reasonFor(
    ['gpu', 'gpu_utilization', 'telemetry'],
    missing('no_samples', 'no GPU sample during the timed repeats'),
  );
}

const scopeNames = (rows: readonly { scope: string }[]): string => rows.map(({ scope }) => scope).join(' + ');
const total = <T>(rows: readonly T[], valueOf: (row: T) => number): number =>
  rows.reduce((sum, row) => sum + valueOf(row), 0);

function gpuFigures(
  samples: readonly SampledMetric[],
  energy: readonly EnergyRow[],
  gpus: readonly string[],
  missingGpu: MissingFigure,
): { missingGpu: MissingFigure; utilization: Figure; clock: Figure; power: Figure } {
  if (missingGpu.reason.code === 'no_gpu')
    return { missingGpu, utilization: missingGpu, clock: missingGpu, power: missingGpu };
  const gpuSamples = (metric: string) =>
    samples.filter((row) => row.metric === metric && gpus.includes(row.scope));
  const busy = gpuSamples('utilization_percent');
  const clock = gpuSamples('sm_clock_mhz');
  return {
    missingGpu,
    utilization: busy.length === 0 ? missingGpu : utilizationOf(busy),
    clock:
      clock.length === 0
        ? missingGpu
        : figure(
            total(clock, ({ mean }) => mean) / clock.length,
            'MHz',
            `telemetry: ${scopeNames(clock)} sm_clock_mhz, timed repeats`,
            { n: total(clock, ({ n }) => n) },
          ),
    power: powerOf(
      energy.filter(({ scope }) => gpus.includes(scope)),
      gpuSamples('power_instant_w'),
      gpuSamples('power_w'),
      missingGpu,
    ),
  };
}

/** Utilization from samples that NVML's averaging (up to 1 s) does not mix with neighboring points. */
function utilizationOf(busy: readonly SampledMetric[]): Figure {
  if (busy.some(({ settled_n }) => settled_n === 0)) {
    return missing(
      'too_short',
      'the timed repeats of this point were too short to separate its utilization from that of other points: NVML averages over up to 1 s (use longer outputs, more repeats, or this point alone)',
    );
  }
  return figure(
    total(busy, (row) => row.settled!) / busy.length,
    '%',
    `telemetry: ${scopeNames(busy)} utilization_percent, timed repeats, from 1 s into a stretch of this point`,
    { n: total(busy, ({ settled_n }) => settled_n) },
  );
}

/** Minimum sampled time for a mean of the energy counter, which is updated about ten times per second. */
const minEnergySeconds = 1;
const minInstantSamples = 10;

/** From the energy counter, else instantaneous power, else NVML's mean over 1 s if it covers only this point. */
function powerOf(
  energy: readonly EnergyRow[],
  instant: readonly SampledMetric[],
  averaged: readonly SampledMetric[],
  missingGpu: MissingFigure,
): Figure {
  if (energy.length > 0 && energy.every(({ seconds }) => seconds >= minEnergySeconds)) {
    const source = `telemetry: ${scopeNames(energy)} energy_j, growth / time in the timed repeats`;
    return figure(
      total(energy, ({ joules, seconds }) => joules / seconds),
      'W',
      source,
    );
  }
  if (instant.length > 0 && instant.every(({ n }) => n >= minInstantSamples)) {
    const source = `telemetry: ${scopeNames(instant)} power_instant_w, timed repeats`;
    return figure(
      total(instant, ({ mean }) => mean),
      'W',
      source,
      { n: total(instant, ({ n }) => n) },
    );
  }
  if (energy.length + instant.length + averaged.length === 0) return missingGpu;
  if (averaged.length === 0 || averaged.some(({ settled }) => settled === null)) {
    return missing(
      'too_short',
      'the timed repeats of this point were too short to separate its power from that of other points (use longer outputs, more repeats, or this point alone)',
    );
  }
  return figure(
    total(averaged, ({ settled }) => settled!),
    'W',
    `telemetry: ${scopeNames(averaged)} power_w, from 1 s into a stretch of this point`,
    { n: total(averaged, ({ settled_n }) => settled_n) },
  );
}

function gpuMemory(
  memory: readonly MemoryRow[],
  point: string,
  gpus: readonly string[],
  missingGpu: MissingFigure,
): Figure {
  const pointMemory = memory.filter(
    (row) => row.point === point && row.kind === 'used' && gpus.includes(`gpu${row.device}`),
  );
  if (pointMemory.length === 0 || missingGpu.reason.code === 'no_gpu') return missingGpu;
  return figure(
    pointMemory.reduce((sum, { bytes }) => sum + bytes, 0),
    'B',
    `memory: used of ${pointMemory.map(({ device }) => `GPU ${device}`).join(' + ')}, largest in the timed repeats; all processes`,
  );
}

function memoryFigure(
  { memory, outcomes }: Pick<BenchRows, 'memory'> & { outcomes: readonly PointRow[] },
  point: string,
  reasonFor: MissingReason,
  device: string,
): Figure {
  const withMemory = outcomes.filter(({ memory_bytes }) => memory_bytes !== null);
  if (withMemory.length > 0) {
    const largest = withMemory.reduce((x, y) => (y.memory_bytes! > x.memory_bytes! ? y : x));
    return figure(
      largest.memory_bytes!,
      'B',
      `points.memory_bytes: ${largest.memory_source ?? 'the engine'}, largest of the launches`,
      {
        n: withMemory.length,
      },
    );
  }
  const notSampled = missing('no_samples', 'memory was not sampled in the timed repeats');
  const reason = reasonFor(['memory', 'memory_bytes'], notSampled);
  // The engine states why its GPU memory is unknown: host memory is not a substitute.
  if (device !== 'cpu' && reason !== notSampled) return reason;
  const resident = memory.find((row) => row.point === point && row.kind === 'rss' && row.device === null);
  return resident
    ? figure(
        resident.bytes,
        'B',
        'memory: resident set of the process, largest in the timed repeats; includes memory that other points left allocated',
      )
    : reason;
}
