import type { SequenceKernel } from './step-sequence.js';

/** Products of a step with an adapter: fewer is a part of the model itself. */
const minProducts = 2;

const isProduct = ({ class: own, name }: SequenceKernel): boolean => own === 'gemm' && !isReduction(name);
/** The second kernel of a product with a split inner dimension: of cuBLASLt, of CUTLASS, of the xmma kernels. */
const isReduction = (name: string): boolean =>
  /split_?k_?reduce|reduce_?split|splitkreduce|execute_split_k_kernel/i.test(name);
const isCast = ({ role }: SequenceKernel): boolean => role === 'cast' || role === 'layout';
const isScaling = (kernel: SequenceKernel): boolean =>
  kernel.class === 'elementwise' && /mul/i.test(kernel.name) && !/add/i.test(kernel.name);
const isAddition = (kernel: SequenceKernel): boolean =>
  kernel.class === 'elementwise' && /add/i.test(kernel.name);

/**
 * Low-rank adapters (LoRA) computed next to products: their kernels, a list per product. After the product x·W follow two products
 * without anything between them but casts, at most one scaling, and the addition to the product's output: x·W + (x·A)·B · scale.
 * Projections of attention also follow each other, but a rotation or attention comes before an addition.
 */
export function lowRankProducts(sequence: readonly SequenceKernel[]): SequenceKernel[][] {
  const found: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    const own = sequence.filter((kernel) => kernel.stream === stream);
    for (let i = 0; i < own.length; i++) {
      const end = isProduct(own[i]!) ? adapterEnd(own, i + 1) : null;
      if (end === null) continue;
      found.push(own.slice(afterReductions(own, i + 1), end));
      i = end - 1;
    }
  }
  return found.length >= minProducts ? found : [];
}

function adapterEnd(own: readonly SequenceKernel[], from: number): number | null {
  const is = (at: number, holds: (kernel: SequenceKernel) => boolean) => at < own.length && holds(own[at]!);
  let at = skip(own, afterReductions(own, from), isCast);
  for (let product = 0; product < 2; product++) {
    if (!is(at, isProduct)) return null;
    at = skip(own, afterReductions(own, at + 1), isCast);
  }
  if (is(at, isScaling)) at++;
  at = skip(own, at, isCast);
  if (!is(at, isAddition)) return null;
  // A sum in float32 is cast back.
  return is(at + 1, ({ role }) => role === 'cast') ? at + 2 : at + 1;
}

const afterReductions = (own: readonly SequenceKernel[], from: number): number =>
  skip(own, from, ({ class: kind, name }) => kind === 'gemm' && isReduction(name));

function skip(
  own: readonly SequenceKernel[],
  from: number,
  holds: (kernel: SequenceKernel) => boolean,
): number {
  let at = from;
  while (own[at] && holds(own[at]!)) at++;
  return at;
}
