import type { PhaseKind } from '../../model/documents/trace.js';
import { isSoftmax } from './kernel-roles.js';
import { lowRankGemms } from './low-rank-gemms.js';
import type { SequenceKernel } from './step-sequence.js';

/** Shorter kernels may be dominated by their launch, and so may the GEMM that they are compared with. */
const minNs = 4000;
/** A kernel before a GEMM moves as many bytes as the GEMM's weights if it takes at least this share of the GEMM's time. */
const minGemmShare = 0.8;

const converts = ({ class: opClass, role }: SequenceKernel): boolean =>
  opClass === 'elementwise' || opClass === 'quantization' || (opClass === 'copy' && role !== 'constant');

/**
 * Kernels that convert the weights of a GEMM right before it, a list per GEMM: casts, dequantization, copies to another layout.
 * A GEMM with few rows spends most of its time reading its weights, so a kernel that takes as long moves as many bytes. This does not
 * hold for prefills, where activations are as large as weights: empty for all but decode and mixed steps.
 */
export function conversionsOfWeights(
  sequence: readonly SequenceKernel[],
  kind: PhaseKind,
): SequenceKernel[][] {
  if (kind !== 'decode' && kind !== 'mixed') return [];
  const adapterKernels = new Set(lowRankGemms(sequence).flat());
  const conversions: SequenceKernel[][] = [];
  for (const stream of new Set(sequence.map((kernel) => kernel.stream))) {
    const streamKernels = sequence.filter(
      (kernel) => kernel.stream === stream && !adapterKernels.has(kernel),
    );
    for (const [index, gemm] of streamKernels.entries()) {
      if (gemm.class !== 'gemm') continue;
      const first = streamKernels.findLastIndex((kernel, i) => i < index && !converts(kernel)) + 1;
      // GEMMs of attention read keys and values, not weights.
      const next = streamKernels.find((kernel, i) => i > index && !converts(kernel));
      if ([streamKernels[first - 1], next].some((neighbor) => neighbor !== undefined && isSoftmax(neighbor)))
        continue;
      const candidates = longTail(
        streamKernels.slice(first, index),
        Math.max(minNs, minGemmShare * gemm.dur_ns),
      );
      if (
        candidates.some(
          ({ class: kind, role }) => kind === 'quantization' || role === 'cast' || role === 'layout',
        )
      )
        conversions.push(candidates);
    }
  }
  return conversions;
}

/** The kernels at the end of a run that all take at least `min_ns`. */
function longTail(run: readonly SequenceKernel[], min_ns: number): SequenceKernel[] {
  const lastShort = run.findLastIndex(({ dur_ns }) => dur_ns < min_ns);
  return run.slice(lastShort + 1);
}
