import type { SequenceKernel } from './step-sequence.js';

/** Kernels that follow each other on a stream and touch each element once: one kernel could do all of them. */
export interface Chain {
  kernels: SequenceKernel[];
  /** ns that one kernel in their place would save. */
  saved_ns: number;
}

/** A norm and the addition before it are two kernels in most engines: from three on something is left to fuse. */
const leastKernels = 3;
/** A conversion this much longer than all others of a chain is of another tensor, such as a weight. */
const otherTensor = 3;
/**
 * What one kernel for the whole takes of the longest kernel of the chain: it reads the inputs and writes the output once, as
 * that one does; where the chain computes in float32 between 16-bit tensors it moves about half of that.
 */
const fusedShare = { plain: 1, converted: 0.75 };

/** Running sums and sorts read what others of the same kernel wrote: nothing is fused through them. */
const throughMemory = /scan|cumsum|cumprod|sort/i;

const pointwise = (kernel: SequenceKernel): boolean =>
  !throughMemory.test(kernel.name) &&
  (['elementwise', 'norm', 'quantization'].includes(kernel.class) ||
    (kernel.class === 'copy' && kernel.role !== 'cat'));

/** Chains of a step's kernels, in order. */
export function chainsOf(sequence: readonly SequenceKernel[]): Chain[] {
  const chains: Chain[] = [];
  const open = new Map<number, SequenceKernel[]>();
  const close = (stream: number) => {
    const own = open.get(stream) ?? [];
    open.delete(stream);
    const chain = chainOf(own);
    if (chain) chains.push(chain);
  };
  for (const kernel of sequence) {
    if (pointwise(kernel)) open.set(kernel.stream, [...(open.get(kernel.stream) ?? []), kernel]);
    else close(kernel.stream);
  }
  for (const stream of open.keys()) close(stream);
  return chains;
}

function chainOf(run: readonly SequenceKernel[]): Chain | null {
  const kernels = withoutOthers(run);
  if (kernels.length < leastKernels || !kernels.some(({ class: own }) => own !== 'copy')) return null;
  const sum = kernels.reduce((total, { dur_ns }) => total + dur_ns, 0);
  const longest = Math.max(...kernels.map(({ dur_ns }) => dur_ns));
  const converted = kernels.filter(({ role }) => role === 'cast').length > 0;
  return { kernels, saved_ns: sum - longest * (converted ? fusedShare.converted : fusedShare.plain) };
}

/** Conversions of other tensors lie between the kernels of a chain without being of it. */
function withoutOthers(run: readonly SequenceKernel[]): SequenceKernel[] {
  const computing = Math.max(
    0,
    ...run.filter(({ class: own }) => own !== 'copy').map(({ dur_ns }) => dur_ns),
  );
  return run.filter((kernel) => kernel.class !== 'copy' || kernel.dur_ns <= otherTensor * computing);
}
