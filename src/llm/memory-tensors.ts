/** Memory for tensors: torch's allocator, block by block, or a plain sum. `B` is the type of a tensor. */
export interface TensorMemory<B> {
  malloc(bytes: number): B;
  free(block: B): void;
}

export type Place = 'attention' | 'recurrence' | 'mlp' | 'experts' | 'norm' | 'logits';

/** The peak, and its position in a layer. */
interface TensorSum extends TensorMemory<number> {
  enter(place: Place): void;
  peak(): { bytes: number; place: Place };
}

/** Counts only bytes; a tensor is its size. */
export function tensorSum(): TensorSum {
  let live = 0;
  let place: Place = 'norm';
  let peak: { bytes: number; place: Place } = { bytes: 0, place };
  return {
    malloc(bytes) {
      live += bytes;
      if (live > peak.bytes) peak = { bytes: live, place };
      return bytes;
    },
    free(bytes) {
      live -= bytes;
    },
    enter(next) {
      place = next;
    },
    peak: () => peak,
  };
}

/** `x = f(x)`: the new tensor exists before the old one is freed. */
export function replaceBlock<B>(memory: TensorMemory<B>, block: B, bytes: number): B {
  const next = memory.malloc(bytes);
  memory.free(block);
  return next;
}

export function freeAll<B>(memory: TensorMemory<B>, blocks: readonly B[]): void {
  for (const block of blocks) memory.free(block);
}
