import { createHash } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import type { Measurement } from '../../engines/onnx/microbenchmark.js';
import type { CpuCache } from '../../hardware/caches.js';
import { detectCpu, type Cpu } from '../../hardware/cpu.js';
import { packageVersion } from '../../hardware/environment.js';
import { document, type Issue } from '../../model/document.js';
import {
  type BandwidthPoint,
  type MachineRoofline,
  machineRooflineSchema,
} from '../../model/documents/roofline.js';
import { createScratch } from '../../model/scratch.js';
import type { Row } from '../../model/tables.js';
import { startHostSampler } from '../telemetry.js';
import { startEngineProcess } from './engine-process.js';
import type { RooflineMeasurements, RooflinePlan, RooflineProgress } from './roofline-plan.js';
import { formatNumber, formatDuration } from '../../vocabulary/format.js';
import { writeAtomically } from '../../model/atomic-write.js';

export interface RooflineOptions {
  threads: number;
  /** Folder for cached rooflines and temporary models. */
  cacheDir: string;
  /** Measure again even if a cached one exists. */
  fresh: boolean;
  signal: AbortSignal;
  onProgress: (progress: RooflineProgress) => void;
}

export interface CachedRoofline {
  roofline: MachineRoofline;
  cached: boolean;
  ageS: number;
}

/**
 * This machine's rooflines through the embedded engine, measured in about 20 s and cached by CPU, cores, memory, engine version and
 * threads.
 * @throws E_ENGINE_MISSING, E_INTERRUPTED, E_WORKLOAD_FAILED
 */
export async function measureMachineRoofline(options: RooflineOptions): Promise<CachedRoofline> {
  const folder = join(options.cacheDir, 'roofline');
  const path = join(folder, `${machineKey(options.threads)}.json`);
  const cached = options.fresh ? null : await readCached(path);
  if (cached) return cached;
  await mkdir(folder, { recursive: true });
  const roofline = await measure(folder, options);
  writeAtomically(path, JSON.stringify(document('machine-roofline', '1.0', roofline)));
  return { roofline, cached: false, ageS: 0 };
}

/** Cached rooflines for this machine and thread count; null if there is no valid entry. Measures nothing. */
export async function readCachedRoofline(cacheDir: string, threads: number): Promise<CachedRoofline | null> {
  return readCached(join(cacheDir, 'roofline', `${machineKey(threads)}.json`));
}

/**
 * If other processes use more cores than this, the rooflines are too low, and MFU against them too high. Such a measurement is marked and
 * valid for only ten minutes.
 */
const disturbingCores = 0.2;
const disturbedForS = 600;

function isDisturbed({ other_processes_cores }: MachineRoofline): boolean {
  return (other_processes_cores ?? 0) > Math.max(disturbingCores, 0.02 * detectCpu().logicalCores);
}

/** An older roofline may be outdated: virtual machines move, neighbors change. */
const staleAfterS = 24 * 3600;

/** Reasons to doubt the rooflines, for every document that uses them. */
export function rooflineIssues({ roofline, cached, ageS }: CachedRoofline): Issue[] {
  const issues: Issue[] = [];
  if (isDisturbed(roofline)) {
    issues.push({
      code: 'roofline_disturbed',
      severity: 'warning',
      text: `Other processes used ${formatNumber(roofline.other_processes_cores ?? 0, 2)} cores while the roofline was measured: the roofs may be too low, MFU and MBU too high. On an idle machine: inferscope roofline --fresh.`,
    });
  }
  if (cached && ageS > staleAfterS) {
    issues.push({
      code: 'roofline_old',
      severity: 'info',
      text: `The roofline was measured ${formatDuration(ageS)} ago; inferscope roofline --fresh repeats the measurement.`,
    });
  }
  return issues;
}

/** Increase it when the measured kernels change: cached rooflines become invalid. */
const measurementVersion = 3;

export function machineKey(threads: number): string {
  const cpu = detectCpu();
  const facts = [
    measurementVersion,
    cpu.model,
    cpu.logicalCores,
    cpu.usableCores,
    cpu.caches,
    cpu.memoryTotalBytes,
    os.platform(),
    os.arch(),
    packageVersion('onnxruntime-node'),
    threads,
  ];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 16);
}

/** A cache entry that is unreadable or of another format is measured again. */
async function readCached(path: string): Promise<CachedRoofline | null> {
  try {
    const parsed = JSON.parse(await readFile(path, 'utf8')) as { data?: unknown };
    const roofline = machineRooflineSchema.parse(parsed.data);
    const { mtimeMs } = await stat(path);
    const ageS = Math.max(0, (Date.now() - mtimeMs) / 1000);
    return isDisturbed(roofline) && ageS > disturbedForS ? null : { roofline, cached: true, ageS };
  } catch {
    return null;
  }
}

async function measure(folder: string, options: RooflineOptions): Promise<MachineRoofline> {
  const started = Date.now();
  const scratch = createScratch(folder, 'scratch');
  try {
    const cpu = detectCpu();
    const plan: RooflinePlan = {
      threads: options.threads,
      scratch: scratch.path,
      // Weights, their file in the page cache and the runtime's packed copy must fit into memory together.
      maxBytes: Math.max(4 * 2 ** 20, Math.min(os.freemem(), cpu.memoryLimitBytes ?? Infinity) / 8),
      lastLevelCacheBytes: lastLevelCache(cpu, options.threads),
    };
    const engine = startEngineProcess<RooflinePlan, RooflineProgress, RooflineMeasurements>(
      'roofline-child',
      plan,
      { what: 'the roofline measurement', signal: options.signal, onProgress: options.onProgress },
    );
    const sampler = startHostSampler({ pid: engine.pid, hz: 10 });
    const outcome = await Promise.allSettled([engine.result]);
    const { otherCoresMean } = sampler.stop();
    if (outcome[0].status === 'rejected') throw outcome[0].reason;
    return rooflineOf(outcome[0].value, options.threads, started, otherCoresMean);
  } finally {
    scratch.remove();
  }
}

/** Several threads split a working set over the caches of their cores. */
function combinedBytes(cache: CpuCache | null, threads: number): number | null {
  return cache && cache.bytes * Math.min(cache.instances, threads);
}

function lastLevelCache({ caches }: Cpu, threads: number): number | null {
  return combinedBytes(caches.l3, threads) ?? combinedBytes(caches.l2, threads);
}

function rooflineOf(
  measured: RooflineMeasurements,
  threads: number,
  startedMs: number,
  otherCores: number | null,
): MachineRoofline {
  const cpu = detectCpu();
  const { caches, model } = cpu;
  const l2 = combinedBytes(caches.l2, threads);
  const l3 = combinedBytes(caches.l3, threads);
  const llc = lastLevelCache(cpu, threads);
  const level = (bytes: number) => {
    if (l2 && bytes <= l2) return 'L2';
    if (l3 && bytes <= l3) return 'L3';
    return llc === null ? 'unknown level' : 'DRAM';
  };
  const point = (m: Measurement): BandwidthPoint => ({
    working_set_bytes: m.bytes,
    bytes_per_s: (m.bytes / m.min_ns) * 1e9,
    reached_by: kernelName(m),
    level: level(m.bytes),
    runs: m.runs,
    sd_share: m.sd_ns / m.median_ns,
  });
  const points = measured.reads.map(point);
  const bandwidth = [...new Set(points.map((p) => p.working_set_bytes))]
    .sort((x, y) => x - y)
    .map((bytes) =>
      points
        .filter((p) => p.working_set_bytes === bytes)
        .reduce((best, p) => (p.bytes_per_s > best.bytes_per_s ? p : best)),
    );
  const compute = (['float32', 'int8'] as const).flatMap((dtype) => {
    const rate = (m: Measurement) => (m.flops / m.min_ns) * 1e9;
    const dtypeResults = measured.compute.filter((m) => m.dtype === dtype);
    if (dtypeResults.length === 0) return [];
    const best = dtypeResults.reduce((a, b) => (rate(b) > rate(a) ? b : a));
    return [
      {
        dtype,
        flops_per_s: rate(best),
        reached_by: kernelName(best),
        runs: best.runs,
        sd_share: best.sd_ns / best.median_ns,
      },
    ];
  });
  return {
    engine: `onnxruntime ${packageVersion('onnxruntime-node') ?? '(version unknown)'} CPU`,
    cpu_model: model ?? 'unknown CPU',
    threads,
    measured_at: new Date(startedMs).toISOString(),
    seconds: (Date.now() - startedMs) / 1000,
    other_processes_cores: otherCores,
    compute,
    bandwidth,
    weight_streams: measured.streams.map((m) => ({
      format: m.dtype === 'int8' ? 'int4' : 'float32',
      batch_size: m.batchSize,
      weights_per_s: (m.weights / m.min_ns) * 1e9,
      bytes_per_s: (m.bytes / m.min_ns) * 1e9,
      reached_by: kernelName(m),
    })),
    last_level_cache_bytes: llc,
    ridge_flop_per_byte: compute[0]!.flops_per_s / bandwidth.at(-1)!.bytes_per_s,
  };
}

const operators: Record<string, string> = {
  'gemm float32': 'MatMul',
  'gemm int8': 'MatMulNBits (int4 weights, int8 GEMMs)',
  'gemm_integer int8': 'MatMulInteger',
  'read_gemv float32': 'MatMul, chain of',
  'read_max float32': 'ReduceMax',
  'read_gemv_int4 int8': 'MatMulNBits, chain of',
};

function kernelName(m: Measurement): string {
  return `${operators[`${m.name} ${m.dtype}`] ?? m.name} ${m.shape.replaceAll('x', '×')}`;
}

/** Rows for the table `microbenchmarks`. */
export function rooflineRows(
  roofline: MachineRoofline,
  keys: Pick<Row<'microbenchmarks'>, 'execution_id' | 'capture_id' | 'host'>,
): Row<'microbenchmarks'>[] {
  const common = { ...keys, rank: 0, threads: roofline.threads };
  const bandwidth = (name: string, p: BandwidthPoint): Row<'microbenchmarks'> => ({
    ...common,
    name,
    dtype: 'float32',
    shape: p.reached_by,
    bytes: p.working_set_bytes,
    runs: p.runs,
    value: p.bytes_per_s,
    unit: 'B/s',
  });
  return [
    ...roofline.compute.map((peak): Row<'microbenchmarks'> => ({
      ...common,
      name: 'gemm',
      dtype: peak.dtype,
      shape: peak.reached_by,
      runs: peak.runs,
      value: peak.flops_per_s,
      unit: 'FLOP/s',
    })),
    ...roofline.bandwidth.map((p) => bandwidth('read', p)),
  ];
}
