import { gpuPeakBandwidth, gpuPeakFlops, gpuSheet } from '../hardware/gpu-peaks.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { ManifestData } from '../model/manifest.js';
import type { PeakDType } from '../hardware/gpu-sheet.js';

type Facts = Pick<ManifestData, 'hardware' | 'workload'>;

/** The GPU of a session's figures; figures always cover one GPU. */
interface SessionDevice {
  /** As NVML or PyTorch reports it; null if the session does not name it. */
  name: string | null;
  smCount: Figure;
  /** Data sheet, B/s. */
  bandwidth: Figure;
  /** Dense data-sheet peak, FLOP/s. */
  peak: (dtype: PeakDType) => Figure;
}

const unnamed = missing('unknown_gpu', 'the captures do not name the GPU');

/**
 * The GPU of a session. Without an ordinal, the engine's own report has priority (it resolves CUDA_VISIBLE_DEVICES), then
 * the facts of the workload's device; with an ordinal, the facts of that device.
 */
export function deviceOf({ hardware, workload }: Facts, ordinal?: number | null): SessionDevice {
  const name = nameOf({ hardware, workload }, ordinal);
  return {
    name,
    smCount: smCount(hardware, ordinal ?? ordinalOf(workload?.device), name),
    bandwidth: name === null ? unnamed : gpuPeakBandwidth(name),
    peak: (dtype) => (name === null ? unnamed : gpuPeakFlops(name, dtype)),
  };
}

/** gpu1_name for device 1 if present, else gpu_name, which covers all devices. */
export function factOf(hardware: ManifestData['hardware'], device: number | null, fact: string) {
  return (device === null ? null : hardware[`gpu${device}_${fact}`]) ?? hardware[`gpu_${fact}`] ?? null;
}

/** cuda:1 -> 1 */
export function ordinalOf(device: string | undefined): number | null {
  const digits = /:(\d+)$/.exec(device ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}

function nameOf({ hardware, workload }: Facts, ordinal?: number | null): string | null {
  const device = workload?.device;
  // A server may run on another machine: this machine's facts do not apply.
  if (ordinal === undefined && device === 'server') return text(workload?.engine.options['gpu']);
  if (ordinal === undefined && device === 'cpu') return null;
  const gpuOption = ordinal === undefined ? text(workload?.engine.options['gpu']) : null;
  const ordinalGiven = ordinal ?? ordinalOf(device);
  const first = ordinal === undefined || (ordinal ?? 0) === 0 ? text(hardware['gpu0_name']) : null;
  return gpuOption ?? text(factOf(hardware, ordinalGiven, 'name')) ?? first;
}

const text = (fact: unknown): string | null => (typeof fact === 'string' ? fact : null);

function smCount(hardware: ManifestData['hardware'], device: number | null, gpu: string | null): Figure {
  const recordedCount = factOf(hardware, device, 'sm_count');
  if (typeof recordedCount === 'number') return figure(recordedCount, 'SMs', 'the capture');
  const sheet = gpu === null ? null : gpuSheet(gpu);
  return sheet
    ? figure(sheet.smCount, 'SMs', sheet.source.document)
    : missing('unknown_gpu', 'neither the capture nor a data sheet has it');
}
