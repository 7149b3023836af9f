import { gpuPeakBandwidth, gpuPeakFlops, gpuSheet } from '../hardware/gpu-peaks.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { ManifestData } from '../model/manifest.js';
import type { PeakDType } from '../hardware/gpu-sheet.js';

type Facts = Pick<ManifestData, 'hardware' | 'workload'>;

/** The GPU a session's figures are of; figures are of one GPU. */
export interface SessionDevice {
  /** As NVML or PyTorch reports it; null where nothing in the session names it. */
  name: string | null;
  smCount: Figure;
  /** Data sheet, B/s. */
  bandwidth: Figure;
  /** Dense data-sheet peak, FLOP/s. */
  peak: (dtype: PeakDType) => Figure;
}

const unnamed = missing('unknown_gpu', 'the captures do not name the GPU');

/**
 * The one answer to "which GPU is this session of". Without an ordinal the engine's own word comes first (it sees through
 * CUDA_VISIBLE_DEVICES), then the facts of the workload's device; with one, the facts of that device.
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

/** gpu1_name of device 1 where there is one, else gpu_name, which speaks of all. */
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
  // A server's machine is another one: what this machine has says nothing of it.
  if (ordinal === undefined && device === 'server') return text(workload?.engine.options['gpu']);
  if (ordinal === undefined && device === 'cpu') return null;
  const told = ordinal === undefined ? text(workload?.engine.options['gpu']) : null;
  const at = ordinal ?? ordinalOf(device);
  const first = ordinal === undefined || (ordinal ?? 0) === 0 ? text(hardware['gpu0_name']) : null;
  return told ?? text(factOf(hardware, at, 'name')) ?? first;
}

const text = (fact: unknown): string | null => (typeof fact === 'string' ? fact : null);

function smCount(hardware: ManifestData['hardware'], device: number | null, gpu: string | null): Figure {
  const told = factOf(hardware, device, 'sm_count');
  if (typeof told === 'number') return figure(told, 'SMs', 'the capture');
  const sheet = gpu === null ? null : gpuSheet(gpu);
  return sheet
    ? figure(sheet.smCount, 'SMs', sheet.source.document)
    : missing('unknown_gpu', 'neither the capture nor a data sheet tells');
}
