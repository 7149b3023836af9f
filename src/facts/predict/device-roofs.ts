import type { PeakFlops } from '../../llm/utilization.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';
import type { GpuRoofline } from '../../model/documents/gpu-roofline.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import type { DType } from '../../model/dtype.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { InferscopeError } from '../../model/errors.js';
import { missing, type Figure } from '../../model/figure.js';
import { computePeaks, gpuRoofs, measuredCpu, peaksOf } from '../roofs.js';

/** Roofs of the device of a prediction. */
export interface DeviceRoofs {
  kind: 'gpu' | 'cpu';
  name: string;
  roofs: 'measured' | 'data-sheet';
  peaks: PeakFlops;
  peak(dtype: DType): Figure;
  /** The dtype that matrix multiplications of a dtype run as. */
  ranAs(dtype: DType): PeakDType;
  /** B/s at a working set: weights and KV cache of a step. */
  bandwidth(workingSetBytes: number): Figure;
  /** The cache, or memory of a CPU, that holds a working set; null for the memory of a GPU. */
  bandwidthLevel(workingSetBytes: number): string | null;
  launchNs: Figure;
  graphNodeNs: Figure;
}

/**
 * Roofs of a GPU: measured if its roofline is given or cached, else its data sheet's.
 * @param float32As what float32 matrix multiplications run as
 * @throws E_USAGE for a GPU without either
 */
export function roofsOfGpu(
  name: string,
  roofline: GpuRoofline | null,
  float32As: 'float32' | 'tfloat32' = 'float32',
): DeviceRoofs {
  const roofs = gpuRoofs(name, roofline);
  const ranAs = <T extends PeakDType>(dtype: T) => (dtype === 'float32' ? float32As : dtype);
  const peak = (dtype: PeakDType) => roofs.roofFlops(ranAs(dtype));
  if (roofs.roofBandwidth.value === null) throw unknownGpu(name, roofs.roofBandwidth.reason.text);
  // A model that fits the L2 is read from there in every step, so the memory bandwidth does not bound it.
  const fits = (bytes: number) =>
    roofs.l2Bandwidth.value !== null && roofs.l2Bytes !== null && bytes <= roofs.l2Bytes;
  return {
    kind: 'gpu',
    name,
    roofs: roofs.measured ? 'measured' : 'data-sheet',
    peaks: peaksOf(peak),
    peak,
    ranAs,
    bandwidth: (bytes) => (fits(bytes) ? roofs.l2Bandwidth : roofs.roofBandwidth),
    bandwidthLevel: (bytes) => (fits(bytes) ? 'L2' : null),
    launchNs: roofs.launchNs,
    graphNodeNs: roofs.graphNodeNs,
  };
}

/** Measured roofs of this machine's CPU through the embedded engine. */
export function roofsOfCpu(roofline: MachineRoofline): DeviceRoofs {
  const noLaunches = missing('cpu', 'a CPU has no kernel launches');
  return {
    kind: 'cpu',
    name: roofline.cpu_model,
    roofs: 'measured',
    peaks: computePeaks(roofline),
    ...measuredCpu(roofline),
    ranAs: (dtype) => dtype,
    launchNs: noLaunches,
    graphNodeNs: noLaunches,
  };
}

function unknownGpu(name: string, why: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `the peaks of GPU "${name}" are unknown`,
    why: `${capitalize(why)}. Names are as nvidia-smi -L prints them.`,
    fix: 'On its machine: inferscope roofline --json > roofline.json\nThen here: inferscope predict --roofline roofline.json …',
  });
}

/**
 * Rejects a dtype without a known peak.
 * @throws E_DTYPE
 */
export function checkPeak(roofs: DeviceRoofs, dtype: DType): void {
  const peak = roofs.peak(dtype);
  if (peak.value !== null) return;
  const known = Object.keys(roofs.peaks);
  throw new InferscopeError('E_DTYPE', {
    what: `no ${dtype} peak is known for ${roofs.name}`,
    why: `${capitalize(peak.reason.text)}. Known: ${known.join(', ')}.`,
    fix: `Use one of these, for example --dtype ${known[0] ?? 'float32'} – or measure it: inferscope roofline.`,
  });
}
