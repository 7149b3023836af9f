import type { SequenceKernel } from './step-sequence.js';

/** Minimum GEMMs with an adapter per step: fewer are taken as part of the model. */
const minGemms = 2;

const isGemm = ({ class: opClass, name }: SequenceKernel): boolean =>
  opClass === 'gemm' && !isReduction(name);
/** The second kernel of a split-K GEMM (cuBLASLt, CUTLASS, xmma), which adds the partial sums. */
const isReduction = (name: string): boolean =>
  /split_?k_?reduce|reduce_?split|splitkreduce|execute_split_k_kernel/i.test(name);
const isCast = ({ role }: SequenceKernel): boolean => role === 'cast' || role === 'layout';
const isScaling = (kernel: SequenceKernel): boolean =>
  kernel.class === 'elementwise' && /mul/i.test(kernel.name) && !/add/i.test(kernel.name);
const isAddition = (kernel: SequenceKernel): boolean =>
  kernel.class === 'elementwise' && /add/i.test(kernel.name);

/**
 * Kernels of low-rank adapters (LoRA), one list per GEMM with an adapter. An adapter computes x·W + (x·A)·B · scale: the
 * GEMM x·W is followed by two GEMMs, at most one scaling and the addition, with only casts between them. Attention
 * projections also follow each other, but rotary embedding or attention runs before the next addition.
 */
export function lowRankGemms(sequence: readonly SequenceKernel[]): SequenceKernel[][] {
  const gemms: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    const kernels = sequence.filter((kernel) => kernel.stream === stream);
    for (let i = 0; i < kernels.length; i++) {
      const end = isGemm(kernels[i]!) ? adapterEnd(kernels, i + 1) : null;
      if (end === null) continue;
      gemms.push(kernels.slice(afterReductions(kernels, i + 1), end));
      i = end - 1;
    }
  }
  return gemms.length >= minGemms ? gemms : [];
}

function adapterEnd(kernels: readonly SequenceKernel[], from: number): number | null {
  const is = (index: number, matches: (kernel: SequenceKernel) => boolean) =>
    index < kernels.length && matches(kernels[index]!);
  let index = skip(kernels, afterReductions(kernels, from), isCast);
  for (let gemm = 0; gemm < 2; gemm++) {
    if (!is(index, isGemm)) return null;
    index = skip(kernels, afterReductions(kernels, index + 1), isCast);
  }
  if (is(index, isScaling)) index++;
  index = skip(kernels, index, isCast);
  if (!is(index, isAddition)) return null;
  // A float32 sum is cast back to the compute type.
  return is(index + 1, ({ role }) => role === 'cast') ? index + 2 : index + 1;
}

const afterReductions = (kernels: readonly SequenceKernel[], from: number): number =>
  skip(kernels, from, ({ class: opClass, name }) => opClass === 'gemm' && isReduction(name));

function skip(
  kernels: readonly SequenceKernel[],
  from: number,
  matches: (kernel: SequenceKernel) => boolean,
): number {
  let index = from;
  while (kernels[index] && matches(kernels[index]!)) index++;
  return index;
}
