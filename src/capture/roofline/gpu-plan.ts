import { bandwidthPatterns } from '../../model/documents/gpu-roofline.js';
import { gpuPeakFlops } from '../../hardware/gpu-peaks.js';
import type { KernelCase, KernelOrder, ProbeName } from '../../model/kernels.js';
import { coarseGemms, gemmCase, type GemmLimits } from './gemm-search.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Facts about a device before anything runs on it. */
export interface PlannedDevice {
  /** cuda:0, or cpu. */
  device: string;
  name: string;
  /** "9.0"; null if no driver reports it: then everything is tried. */
  computeCapability: string | null;
  memoryBytes: number | null;
  smCount: number | null;
}

const MiB = 2 ** 20;

/**
 * Compute capability from which GPUs compute in a dtype (CUDA C++ programming guide, "Arithmetic instructions"), in
 * the order in which they are measured. A case reports a dtype that the framework lacks.
 */
const minCapability: [dtype: PeakDType, capability: number][] = [
  ['float32', 0],
  ['tfloat32', 8.0],
  ['float16', 5.3],
  ['bfloat16', 8.0],
  ['float8', 8.9],
  ['int8', 7.5],
];

export function gemmDtypes({ device, computeCapability }: PlannedDevice): PeakDType[] {
  // On the CPU this only tests the code path: its rooflines come from the embedded engine.
  if (device === 'cpu') return ['float32'];
  const capability = computeCapability === null ? Infinity : Number(computeCapability);
  return minCapability.filter(([, first]) => capability >= first).map(([dtype]) => dtype);
}

/** For a GPU without a known data sheet; used only to choose sizes. */
const guessedFlops = { cpu: 50e9, vector: 20e12, tensor: 150e12 };

export function gemmLimits(device: PlannedDevice): GemmLimits {
  const memory = device.memoryBytes ?? 16 * 1024 * MiB;
  return {
    expected: (dtype) =>
      gpuPeakFlops(device.name, dtype).value ??
      (device.device === 'cpu'
        ? guessedFlops.cpu
        : dtype === 'float32'
          ? guessedFlops.vector
          : guessedFlops.tensor),
    // Inputs are rotated past the L2: several copies of small ones, two of large ones.
    maxBytes: memory / 6,
    smCount: device.smCount,
  };
}

function probe(
  kernel: ProbeName,
  params: Record<string, number>,
  bytes: number,
  dtype = 'float32',
): KernelCase {
  const name = [kernel, ...Object.entries(params).map(([key, value]) => `${key}${value}`)].join('-');
  // The additions of a triad do not count as FLOPs here: its rate is a bandwidth.
  return { case: name, kernel, backend: null, dtype, params, flops: 0, bytes };
}

/** Number of arrays read and written per run of each pattern. */
const arraysMoved = { copy: 2, read: 1, write: 1, triad: 3 } as const;

/** At least four times today's largest last-level cache (B200: 126 MB; AMD's Infinity Cache: 256 MB). */
const arrayBytes = [1024 * MiB, 2048 * MiB];
const cpuArrayBytes = [128 * MiB];

export function bandwidthCases(device: PlannedDevice): KernelCase[] {
  const room = (device.memoryBytes ?? 16 * 1024 * MiB) / 2;
  const sizes = device.device === 'cpu' ? cpuArrayBytes : arrayBytes;
  return bandwidthPatterns.flatMap((pattern) =>
    sizes
      .filter((bytes) => 3 * bytes <= room)
      .map((bytes) => probe(pattern, { bytes }, arraysMoved[pattern] * bytes)),
  );
}

/** Sizes between the smallest and largest L2 (4 MiB to 126 MiB), and some larger than all L1s together. */
const l2Bytes = [4, 8, 16, 24, 32, 40, 48, 64].map((size) => size * MiB);
const linkBytes = 256 * MiB;

export function otherProbes(device: PlannedDevice): KernelCase[] {
  if (device.device === 'cpu') return [];
  const links = (['host-to-device', 'device-to-host'] as const).flatMap((kernel) =>
    [0, 1].map((pinned) => probe(kernel, { bytes: linkBytes, pinned }, linkBytes)),
  );
  return [
    ...l2Bytes.map((bytes) => probe('l2-read', { bytes }, bytes)),
    ...['host', 'device', 'round-trip'].map((backend) => ({
      ...probe('launch', {}, 0),
      case: `launch-${backend}`,
      backend,
    })),
    probe('graph-node', {}, 0),
    ...links,
  ];
}

/** From latency-bound to bandwidth-bound sizes. */
const messageBytes = [1024, 64 * 1024, MiB, 16 * MiB, 128 * MiB, 512 * MiB, 1024 * MiB];

export function collectiveCases(ranks: number, device: PlannedDevice): KernelCase[] {
  const room = (device.memoryBytes ?? 16 * 1024 * MiB) / 4;
  return messageBytes
    .filter((bytes) => bytes <= room)
    .map((bytes) => probe('all-reduce', { bytes, ranks }, bytes, 'bfloat16'));
}

/** First round: everything except the neighbors of the fastest GEMMs, which depend on its result. */
export function firstCases(device: PlannedDevice): KernelCase[] {
  const limits = gemmLimits(device);
  return [
    ...otherProbes(device),
    ...bandwidthCases(device),
    ...gemmDtypes(device).flatMap((dtype) => coarseGemms(dtype, limits).map(gemmCase)),
  ];
}

/** Eighty cases of up to a quarter of a second: an H200 took 32 s with 0.15 s each, including starts of PyTorch. */
export function rooflineOrder(executionId: string, device: string, cases: KernelCase[]): KernelOrder {
  return {
    v: 1,
    execution_id: executionId,
    device,
    cases,
    runs: 10,
    max_runs: 200,
    max_seconds: 0.25,
    target_half_width: 0.003,
    graph: 'auto',
    check: false,
    seed: 0,
  };
}
