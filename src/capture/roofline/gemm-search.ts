import type { KernelCase } from '../../model/kernels.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

export interface Gemm {
  dtype: PeakDType;
  m: number;
  n: number;
  k: number;
}

/** Limits of a device: sizes are chosen so that the whole search fits in its time. */
export interface GemmLimits {
  /** Expected FLOP/s by dtype (data sheet or a guess); used only to choose sizes. */
  expected: (dtype: PeakDType) => number;
  /** Bytes that the matrices of one multiplication may take. */
  maxBytes: number;
  smCount: number | null;
}

/** Bounds on the run time: a shorter run would measure the launch, a longer one leaves too few runs. */
const shortestS = 10e-6;
const maxS = 30e-3;

const squares = [256, 512, 1024, 2048, 4096, 8192, 16384];
/** Up projections of Llama 8B at 4096 tokens, and of 70B at 8192: flat, as LLMs have them. */
const flat = [
  { m: 4096, n: 14336, k: 4096 },
  { m: 8192, n: 28672, k: 8192 },
];

/** Bytes per element of inputs and output; outputs of float8 and int8 are wider. */
const elementBytes: Partial<Record<PeakDType, [input: number, output: number]>> = {
  float32: [4, 4],
  tfloat32: [4, 4],
  float16: [2, 2],
  bfloat16: [2, 2],
  float8: [1, 2],
  int8: [1, 4],
};

export const gemmFlops = ({ m, n, k }: Gemm): number => 2 * m * n * k;

export function gemmBytes({ dtype, m, n, k }: Gemm): number {
  const [input, output] = elementBytes[dtype] ?? [4, 4];
  return (m * k + k * n) * input + m * n * output;
}

export function gemmCase(gemm: Gemm): KernelCase {
  const { dtype, m, n, k } = gemm;
  return {
    case: `gemm-${dtype}-${m}x${n}x${k}`,
    kernel: 'gemm',
    backend: null,
    dtype,
    params: { m, n, k },
    flops: gemmFlops(gemm),
    bytes: gemmBytes(gemm),
  };
}

function fits(gemm: Gemm, { expected, maxBytes }: GemmLimits): boolean {
  const seconds = gemmFlops(gemm) / expected(gemm.dtype);
  return seconds >= shortestS && seconds <= maxS && gemmBytes(gemm) <= maxBytes;
}

/** First round: squares by powers of two, and flat sizes, that fit the device. */
export function coarseGemms(dtype: PeakDType, limits: GemmLimits): Gemm[] {
  const sizes = [...squares.map((side) => ({ m: side, n: side, k: side })), ...flat];
  return sizes.map((size) => ({ dtype, ...size })).filter((gemm) => fits(gemm, limits));
}

/** Tile of the large kernels of cuBLAS and CUTLASS on Ampere to Blackwell; other tiles divide it or are similar. */
const tile = { m: 128, n: 256 };
/** Step of the sizes: multiples of it keep every dtype aligned to 16 bytes and to whole tiles. */
const step = 256;

/**
 * Second round, neighbors of the fastest size: halfway to the next power of two in both directions, half and twice the depth, and the
 * height at which the tiles fill whole waves of the SMs (the last wave of another height is partly empty).
 */
export function neighborGemms(best: Gemm, tried: readonly Gemm[], limits: GemmLimits): Gemm[] {
  const { dtype, m, n, k } = best;
  const scaled = (share: number) => ({
    dtype,
    m: multiple(m * share),
    n: multiple(n * share),
    k: multiple(k * share),
  });
  const found = [
    scaled(0.75),
    scaled(1.5),
    { dtype, m, n, k: multiple(k / 2) },
    { dtype, m, n, k: multiple(k * 2) },
    wholeWaves(best, limits.smCount),
  ].filter((gemm) => gemm !== null);
  const known = new Set(tried.map(sizeKey));
  return found.filter((gemm) => {
    if (known.has(sizeKey(gemm)) || !fits(gemm, limits)) return false;
    known.add(sizeKey(gemm));
    return true;
  });
}

const sizeKey = ({ dtype, m, n, k }: Gemm) => `${dtype} ${m} ${n} ${k}`;
const multiple = (size: number) => Math.max(step, Math.round(size / step) * step);

/** The height nearest to m at which (m/128)·(n/256) is a multiple of the SMs; null if it differs by a quarter or more. */
function wholeWaves({ dtype, m, n, k }: Gemm, smCount: number | null): Gemm | null {
  if (smCount === null || n % tile.n !== 0) return null;
  const rows = smCount / greatestCommonDivisor(smCount, n / tile.n);
  const height = Math.max(1, Math.round(m / tile.m / rows)) * rows * tile.m;
  return Math.abs(height / m - 1) < 0.25 ? { dtype, m: height, n, k } : null;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
