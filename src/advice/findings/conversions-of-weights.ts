import type { PhaseKind } from '../../model/documents/trace.js';
import { isSoftmax } from './kernel-roles.js';
import { lowRankProducts } from './low-rank-products.js';
import type { SequenceKernel } from './step-sequence.js';

/** Shorter kernels may be dominated by their launch, and so may the product that they are compared with. */
const minNs = 4000;
/** Share of the product's time from which a kernel before it moves as many bytes as the weights that the product reads. */
const minProductShare = 0.8;

const converts = ({ class: opClass, role }: SequenceKernel): boolean =>
  opClass === 'elementwise' || opClass === 'quantization' || (opClass === 'copy' && role !== 'constant');

/**
 * Kernels that convert the weights of a product right before it, a list per product: casts, dequantization, copies to another layout.
 * Reading its weights takes most of a product with few rows, so a kernel that takes as long moves as many bytes. This does not hold for
 * prefills, where activations are as large as weights: empty for all but decode and mixed steps.
 */
export function conversionsOfWeights(
  sequence: readonly SequenceKernel[],
  kind: PhaseKind,
): SequenceKernel[][] {
  if (kind !== 'decode' && kind !== 'mixed') return [];
  const adapterKernels = new Set(lowRankProducts(sequence).flat());
  const conversions: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    const streamKernels = sequence.filter(
      (kernel) => kernel.stream === stream && !adapterKernels.has(kernel),
    );
    for (const [at, product] of streamKernels.entries()) {
      if (product.class !== 'gemm') continue;
      const first = streamKernels.findLastIndex((kernel, i) => i < at && !converts(kernel)) + 1;
      // Products of attention read keys and values, not weights.
      const next = streamKernels.find((kernel, i) => i > at && !converts(kernel));
      if ([streamKernels[first - 1], next].some((neighbor) => neighbor !== undefined && isSoftmax(neighbor)))
        continue;
      const long = longest(streamKernels.slice(first, at), Math.max(minNs, minProductShare * product.dur_ns));
      if (
        long.some(({ class: kind, role }) => kind === 'quantization' || role === 'cast' || role === 'layout')
      )
        conversions.push(long);
    }
  }
  return conversions;
}

/** The last kernels of a run, as far as each takes at least so long. */
function longest(run: readonly SequenceKernel[], least_ns: number): SequenceKernel[] {
  const short = run.findLastIndex(({ dur_ns }) => dur_ns < least_ns);
  return run.slice(short + 1);
}
