import type { GemmRoof } from '../../model/documents/gemms.js';
import { figure, mapFigure, missing, type Figure } from '../../model/figure.js';
import type { GpuRoofs } from '../roofs.js';
import { elementBytes, flopOf, type GemmShape } from './shape.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Bytes of A, B and the output, each moved once. */
export function gemmBytes({ m, n, k, batch }: GemmShape, elementSize: number): number {
  return batch * elementSize * (m * k + k * n + m * n);
}

/** Data-sheet name of a dtype: float8_e4m3 -> float8, others unchanged. */
export function peakType(dtype: string | null): PeakDType {
  return (dtype ?? '').replace(/^(float8).*/, '$1') as PeakDType;
}

/** Peak and bandwidth for GEMMs of a dtype. */
export interface DTypeRoof {
  peak: number;
  bandwidth: number;
  elementSize: number;
  from: NonNullable<GemmRoof['from']>;
  source: string;
}

export function dtypeRoof(dtype: string | null, roofs: GpuRoofs): DTypeRoof | Figure {
  const elementSize = elementBytes(dtype);
  if (elementSize === null) {
    return missing('unknown_type', `the size of a value of type ${dtype ?? 'unknown'} is not known`);
  }
  const peak = roofs.roofFlops(peakType(dtype));
  const bandwidth = roofs.roofBandwidth;
  if (peak.value === null) return peak;
  if (bandwidth.value === null) return bandwidth;
  return {
    peak: peak.value,
    bandwidth: bandwidth.value,
    elementSize,
    from: roofs.roofsAreMeasured(peakType(dtype)) ? 'measured' : 'sheet',
    source: peak.source === bandwidth.source ? peak.source : `${peak.source}; ${bandwidth.source}`,
  };
}

/** Minimum time of a GEMM, s: the longer of arithmetic and memory traffic. */
export function roofSeconds(
  shape: GemmShape,
  { peak, bandwidth, elementSize }: Pick<DTypeRoof, 'peak' | 'bandwidth' | 'elementSize'>,
): { seconds: number; bound: 'compute' | 'memory' } {
  const compute = flopOf(shape) / peak;
  const memory = gemmBytes(shape, elementSize) / bandwidth;
  return { seconds: Math.max(compute, memory), bound: compute >= memory ? 'compute' : 'memory' };
}

/** @param timeOfCall mean time of a call, ns */
export function gemmRoof(
  shape: GemmShape,
  dtype: string | null,
  timeOfCall: Figure,
  roofs: GpuRoofs,
): GemmRoof {
  const roof = dtypeRoof(dtype, roofs);
  if ('value' in roof) return { time_ns: roof, share: roof, bound: null, from: null };
  const { seconds, bound } = roofSeconds(shape, roof);
  const ns = seconds * 1e9;
  return {
    time_ns: figure(ns, 'ns', `max(FLOP / peak, bytes / bandwidth); ${roof.source}`),
    share: mapFigure(timeOfCall, 'ratio', 'roof / mean time of a call', (time) => ns / time),
    bound,
    from: roof.from,
  };
}
