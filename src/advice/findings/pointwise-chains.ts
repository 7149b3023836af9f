import type { PhaseKind } from '../../model/documents/trace.js';
import { conversionsOfWeights } from './conversions-of-weights.js';
import { lowRankGemms } from './low-rank-gemms.js';
import { tablesOfPositions } from './position-tables.js';
import type { SequenceKernel } from './step-sequence.js';

/** Consecutive kernels of a stream that touch each element once: one fused kernel could replace them. */
export interface Chain {
  kernels: SequenceKernel[];
  /** ns that one fused kernel would save. */
  saved_ns: number;
}

/** A norm and the addition before it are two kernels in most engines: only chains of three or more can be fused further. */
const minKernels = 3;
/** A conversion longer than the rest of a chain by this factor belongs to another tensor, such as a weight. */
const maxConversionRatio = 3;
/**
 * Time of one fused kernel relative to the longest kernel of the chain: like that one it reads the inputs and writes the output
 * once; if the chain computes in float32 between 16-bit tensors, it moves about half the bytes.
 */
const fusedShare = { plain: 1, converted: 0.75 };

/**
 * Scans and sorts need results of other threads: they cannot be fused into a chain. What torch.compile fused (triton_red_fused_add_mul_3)
 * it left apart from the next kernel.
 */
const notFusible = /scan|cumsum|cumprod|sort|^triton_[a-z]+_fused_/i;

const isPointwise = (kernel: SequenceKernel): boolean =>
  !notFusible.test(kernel.name) &&
  (['elementwise', 'norm', 'quantization'].includes(kernel.class) ||
    (kernel.class === 'copy' && kernel.role !== 'cat' && kernel.role !== 'constant'));

/** Chains of a step's kernels, in order; without conversions of weights, adapters and tables of positions, which other changes remove whole. */
export function chainsOf(sequence: readonly SequenceKernel[], kind: PhaseKind): Chain[] {
  const chains: Chain[] = [];
  const removedByOthers = new Set([
    ...conversionsOfWeights(sequence, kind).flat(),
    ...lowRankGemms(sequence).flat(),
    ...tablesOfPositions(sequence).flat(),
  ]);
  const open = new Map<number, SequenceKernel[]>();
  const close = (stream: number) => {
    const openChain = open.get(stream) ?? [];
    open.delete(stream);
    const chain = chainOf(openChain);
    if (chain) chains.push(chain);
  };
  for (const kernel of sequence) {
    if (isPointwise(kernel) && !removedByOthers.has(kernel))
      open.set(kernel.stream, [...(open.get(kernel.stream) ?? []), kernel]);
    else close(kernel.stream);
  }
  for (const stream of open.keys()) close(stream);
  return chains;
}

function chainOf(run: readonly SequenceKernel[]): Chain | null {
  const kernels = withoutOtherTensors(run);
  if (kernels.length < minKernels || !kernels.some(({ class: opClass }) => opClass !== 'copy')) return null;
  const sum = kernels.reduce((total, { dur_ns }) => total + dur_ns, 0);
  const longest = Math.max(...kernels.map(({ dur_ns }) => dur_ns));
  const hasCast = kernels.some(({ role }) => role === 'cast');
  return { kernels, saved_ns: sum - longest * (hasCast ? fusedShare.converted : fusedShare.plain) };
}

/** Conversions of other tensors can lie between the kernels of a chain. */
function withoutOtherTensors(run: readonly SequenceKernel[]): SequenceKernel[] {
  const longestComputeNs = Math.max(
    0,
    ...run.filter(({ class: opClass }) => opClass !== 'copy').map(({ dur_ns }) => dur_ns),
  );
  return run.filter(
    (kernel) => kernel.class !== 'copy' || kernel.dur_ns <= maxConversionRatio * longestComputeNs,
  );
}
