import type { PhaseKind } from '../../model/documents/trace.js';
import { lowRankProducts } from './low-rank-products.js';
import type { SequenceKernel } from './step-sequence.js';

/** Shorter kernels may be dominated by their launch, and so may the product that they are compared with. */
const minNs = 4000;
/** Share of the product's time from which a kernel before it moves as many bytes as the weights that the product reads. */
const ofProduct = 0.8;

const converts = ({ class: own, role }: SequenceKernel): boolean =>
  own === 'elementwise' || own === 'quantization' || (own === 'copy' && role !== 'constant');

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
  const ofAdapters = new Set(lowRankProducts(sequence).flat());
  const found: SequenceKernel[][] = [];
  /** By stream: kernels since the last one that converts nothing. */
  const before = new Map<number, SequenceKernel[]>();
  for (const kernel of sequence) {
    if (converts(kernel) && !ofAdapters.has(kernel)) {
      before.set(kernel.stream, [...(before.get(kernel.stream) ?? []), kernel]);
      continue;
    }
    if (kernel.class === 'gemm' && !ofAdapters.has(kernel)) {
      const long = longest(before.get(kernel.stream) ?? [], Math.max(minNs, ofProduct * kernel.dur_ns));
      if (long.some(({ class: own, role }) => own === 'quantization' || role === 'cast' || role === 'layout'))
        found.push(long);
    }
    before.delete(kernel.stream);
  }
  return found;
}

/** The last kernels of a run, as far as each takes at least so long. */
function longest(run: readonly SequenceKernel[], least_ns: number): SequenceKernel[] {
  const short = run.findLastIndex(({ dur_ns }) => dur_ns < least_ns);
  return run.slice(short + 1);
}
