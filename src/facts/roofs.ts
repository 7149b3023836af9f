import { gpuHostLink, gpuPeakBandwidth, gpuPeakFlops } from '../hardware/gpu-peaks.js';
import type { PeakFlops } from '../llm/utilization.js';
import { type GpuRoofline, gpuRooflineSchema, type MeasuredGpu } from '../model/documents/gpu-roofline.js';
import {
  type BandwidthPoint,
  type GpuRooflineDocument,
  type MachineRoofline,
  rooflineVersion,
} from '../model/documents/roofline.js';
import { document } from '../model/document.js';
import { type DType, dtypes } from '../model/dtype.js';
import { type Figure, figure, mapFigure, missing } from '../model/figure.js';
import { hasSubject } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { readPlan } from './artifact.js';
import type { PeakDType } from '../hardware/gpu-sheet.js';

/** Measured peak FLOP/s by dtype. */
export function computePeaks(roofline: MachineRoofline): PeakFlops {
  return Object.fromEntries(roofline.compute.map((peak) => [peak.dtype as DType, peak.flops_per_s]));
}

/**
 * Read bandwidth at a working set: interpolated linearly over the logarithm of the size between two measured sizes;
 * outside the measured range, that of the nearest size. The level is the one that fits a working set of that size.
 */
export function bandwidthAt(
  roofline: MachineRoofline,
  workingSetBytes: number,
): { bytesPerS: number; level: string } {
  const points = roofline.bandwidth;
  const above = points.findIndex((point) => point.working_set_bytes >= workingSetBytes);
  if (above === 0) return bandwidthOf(points[0]!);
  if (above === -1) return aboveLargest(roofline, workingSetBytes, points.at(-1)!);
  const low = points[above - 1]!;
  const high = points[above]!;
  const share =
    Math.log(workingSetBytes / low.working_set_bytes) /
    Math.log(high.working_set_bytes / low.working_set_bytes);
  const bytesPerS = low.bytes_per_s + share * (high.bytes_per_s - low.bytes_per_s);
  return {
    bytesPerS,
    level: low.level === high.level ? high.level : levelOf(roofline, workingSetBytes, low, high),
  };
}

/** Measured peaks and read bandwidth of a CPU with their source: the one place for explain, predict, kernels and what-if. */
export function measuredCpu(roofline: MachineRoofline): {
  peak: (dtype: PeakDType) => Figure;
  bandwidth: (workingSetBytes: number) => Figure;
  /** The memory level that holds the working set: L1, L2, L3 or DRAM. */
  bandwidthLevel: (workingSetBytes: number) => string;
} {
  const source = `measured roofline (${roofline.engine})`;
  const peaks = computePeaks(roofline);
  return {
    peak: (dtype) => {
      const value = dtype === 'tfloat32' ? undefined : peaks[dtype];
      return value
        ? figure(value, 'FLOP/s', source)
        : missing('no_peak_for_dtype', `the roofline of this CPU has no ${dtype} peak`);
    },
    bandwidth: (bytes) => {
      const { bytesPerS, level } = bandwidthAt(roofline, bytes);
      return figure(bytesPerS, 'B/s', `${source}, ${level}`);
    },
    bandwidthLevel: (bytes) => bandwidthAt(roofline, bytes).level,
  };
}

function bandwidthOf(point: BandwidthPoint): { bytesPerS: number; level: string } {
  return { bytesPerS: point.bytes_per_s, level: point.level };
}

/** The largest size's bandwidth, for sets above it (memory was short); too high if that size still fits a cache. */
function aboveLargest(
  { last_level_cache_bytes: llc }: MachineRoofline,
  bytes: number,
  largest: BandwidthPoint,
) {
  const inCache = largest.level !== 'DRAM' && llc !== null && bytes > llc;
  return {
    bytesPerS: largest.bytes_per_s,
    level: inCache ? `${largest.level}, the largest measured` : largest.level,
  };
}

/** Between two levels the size of the last-level cache decides; other cache sizes are unknown. */
function levelOf(
  { last_level_cache_bytes: llc }: MachineRoofline,
  bytes: number,
  low: BandwidthPoint,
  high: BandwidthPoint,
): string {
  return high.level === 'DRAM' && llc !== null && bytes <= llc ? low.level : high.level;
}

/**
 * Limits of a GPU with their source: every figure's `source` names the data sheet or the measurement, and every missing
 * one has a reason. FLOP/s (int8, int4: operations per second) and B/s, for `devices` GPUs together.
 */
export interface GpuRoofs {
  name: string | null;
  devices: number;
  /** Denominator of MFU: the dense data-sheet peak; the measured one only if no sheet has one. */
  mfuFlops(dtype: PeakDType): Figure;
  /** Denominator of MBU: the data sheet's memory bandwidth, else the measured one. */
  mbuBandwidth: Figure;
  /** Denominator of roof_share: the measured peak; the data sheet's if nothing was measured. */
  roofFlops(dtype: PeakDType): Figure;
  roofBandwidth: Figure;
  /** Whether clocks were throttled while `roofFlops` was measured: it is a sustained value, which short work can exceed. */
  wasThrottled(dtype: PeakDType): boolean;
  /** The measured peak and memory bandwidth alone; missing if not measured. */
  measuredFlops(dtype: PeakDType): Figure;
  measuredBandwidth: Figure;
  /** Whether both `roofFlops` and `roofBandwidth` were measured: one of a data sheet makes the roof the sheet's. */
  roofsAreMeasured(dtype: PeakDType): boolean;
  /** Read bandwidth of the L2, measured only. */
  l2Bandwidth: Figure;
  l2Bytes: number | null;
  /** Host time per kernel launch, ns (eager PyTorch); for one GPU. */
  launchNs: Figure;
  /** Time per node of a replayed CUDA graph, ns; for one GPU. */
  graphNodeNs: Figure;
  /** From pinned host memory to one GPU, B/s: measured, else one direction of the link on the data sheet. */
  hostLink: Figure;
  /** Bus bandwidth of an all-reduce over all GPUs measured, B/s; of one GPU. */
  busBandwidth: Figure;
  /** The measurement behind the figures; null if there is none for a GPU of this name. */
  measured: MeasuredGpu | null;
}

const notMeasured = (name: string | null, measured: MeasuredGpu | null) =>
  missing(
    'no_roofline',
    measured
      ? `the measured roofline of ${measured.name} does not include it`
      : `the roofs of ${name ?? 'this GPU'} were not measured (run inferscope roofline on its machine)`,
  );

/**
 * Limits of a GPU, for MFU, MBU, roof shares and predictions.
 * @param name as the driver or PyTorch reports it; without a name there are no data-sheet peaks
 * @param roofline measured with the session (readStoredGpuRoofline), or cached (cachedGpuRoofline of
 * src/capture/roofline); null if there is none
 * @param options.index index of the GPU on its machine
 * @param options.devices number of GPUs that work together (tensor parallelism)
 * @param options.pciId vendor:device if known (manifest fact gpu_pci_id), because several models share some names
 */
export function gpuRoofs(
  name: string | null,
  roofline: GpuRoofline | null,
  {
    index = null,
    devices = 1,
    pciId = null,
  }: { index?: number | null; devices?: number; pciId?: string | null } = {},
): GpuRoofs {
  const measured = measuredGpu(name, roofline, index);
  const pciDeviceId = pciId ?? measured?.pci_id ?? null;
  const unmeasured = notMeasured(name, measured);
  const unnamed = missing('unknown_gpu', 'no capture of the session names the GPU');
  const source =
    roofline && measured
      ? `measured on ${measured.name}, ${roofline.measured_at.slice(0, 10)} (${roofline.framework})`
      : '';
  const toFigure = (value: number | null | undefined, unit: string, detail = ''): Figure =>
    value === null || value === undefined ? unmeasured : figure(value, unit, `${source}${detail}`);
  const together = (single: Figure): Figure =>
    devices === 1 || single.value === null
      ? single
      : mapFigure(single, single.unit, `${single.source}, × ${devices}`, (value) => value * devices);
  const measuredPeak = (dtype: PeakDType) => measured?.compute.find((entry) => entry.dtype === dtype);
  const wasThrottled = (dtype: PeakDType): boolean => (measuredPeak(dtype)?.throttled_by ?? []).length > 0;
  const measuredFlops = (dtype: PeakDType): Figure => {
    const peak = measuredPeak(dtype);
    const clocks = wasThrottled(dtype) ? ' with throttled clocks' : '';
    return toFigure(peak?.flops_per_s, 'FLOP/s', peak ? `, GEMM ${peak.m}×${peak.n}×${peak.k}${clocks}` : '');
  };
  const sheetFlops = (dtype: PeakDType) => (name === null ? unnamed : gpuPeakFlops(name, dtype, pciDeviceId));
  const pinnedRates = (measured?.host_links ?? [])
    .filter((link) => link.direction === 'host-to-device' && link.pinned)
    .map((link) => link.bytes_per_s);
  const measuredBandwidth = toFigure(measured?.memory_bytes_per_s, 'B/s');
  const sheetBandwidth = name === null ? unnamed : gpuPeakBandwidth(name, pciDeviceId);
  return {
    name,
    devices,
    mfuFlops: (dtype) => together(firstOf(sheetFlops(dtype), measuredFlops(dtype))),
    mbuBandwidth: together(firstOf(sheetBandwidth, measuredBandwidth)),
    roofFlops: (dtype) => together(firstOf(measuredFlops(dtype), sheetFlops(dtype))),
    roofBandwidth: together(firstOf(measuredBandwidth, sheetBandwidth)),
    wasThrottled,
    measuredFlops: (dtype) => together(measuredFlops(dtype)),
    measuredBandwidth: together(measuredBandwidth),
    roofsAreMeasured: (dtype) => measuredFlops(dtype).value !== null && measuredBandwidth.value !== null,
    l2Bandwidth: together(toFigure(measured?.l2?.bytes_per_s, 'B/s')),
    l2Bytes: measured?.l2_bytes ?? null,
    launchNs: toFigure(measured?.launch?.ns, 'ns'),
    graphNodeNs: toFigure(measured?.graph_node?.ns, 'ns'),
    hostLink: firstOf(
      toFigure(
        pinnedRates.length > 0 ? Math.max(...pinnedRates) : null,
        'B/s',
        ', copies from pinned memory',
      ),
      name === null ? unnamed : gpuHostLink(name),
    ),
    busBandwidth: toFigure(measured && roofline?.collectives?.bus_bytes_per_s, 'B/s'),
    measured,
  };
}

/** The preferred figure if known. If both are missing, the data sheet's reason is more informative. */
function firstOf(preferred: Figure, fallback: Figure): Figure {
  if (preferred.value !== null) return preferred;
  if (fallback.value !== null) return fallback;
  return preferred.reason.code === 'no_roofline' ? fallback : preferred;
}

/** Figures by dtype as src/llm takes them, without missing peaks. */
export function peaksOf(flops: (dtype: PeakDType) => Figure): PeakFlops {
  const knownPeaks = dtypes.map((dtype): [DType, number | null] => [dtype, flops(dtype).value]);
  return Object.fromEntries(knownPeaks.filter(([, value]) => value !== null));
}

/** A whole GPU of this name, by index if measured; never another GPU model or a MIG slice. */
function measuredGpu(
  name: string | null,
  roofline: GpuRoofline | null,
  index: number | null,
): MeasuredGpu | null {
  const sameName = (roofline?.gpus ?? []).filter((gpu) => gpu.name === name);
  const wholeGpus = sameName.filter((gpu) => gpu.scope === 'full');
  return wholeGpus.find((gpu) => gpu.index === index) ?? wholeGpus[0] ?? null;
}

/** The GPU roofline given for the session with --roofline, else the one measured with it; null if there is none. */
export async function readStoredGpuRoofline(session: Session): Promise<GpuRoofline | null> {
  const { context } = session.user;
  if (context?.roofline) return context.roofline;
  return hasSubject(session.manifest, 'roofline')
    ? await readPlan(session, 'roofline', gpuRooflineSchema)
    : null;
}

/**
 * The document printed by `roofline --record`.
 * @throws E_USAGE in sessions without one
 */
export async function readGpuRooflineDocument(session: Session): Promise<GpuRooflineDocument> {
  const gpu = await readPlan(session, 'roofline', gpuRooflineSchema);
  const ageS = Math.max(0, (Date.now() - Date.parse(gpu.measured_at)) / 1000);
  const noCpuRoofline = { roofline: null, cached: false, age_s: null };
  return document(
    'roofline',
    rooflineVersion,
    { ...noCpuRoofline, gpu, gpu_cached: true, gpu_age_s: ageS },
    gpu.issues,
  );
}
