/**
 * PyTorch's caching allocator, simulated for the size of its reserve (c10/cuda/CUDACachingAllocator.cpp, default
 * settings, one stream). A request is rounded to 512 bytes and served by the smallest free block that is large enough,
 * else by a new segment: 2 MiB for up to 1 MiB, 20 MiB for less than 10 MiB, else its own size rounded up to 2 MiB. The
 * remainder of a block is split off if it is over 1 MiB (512 bytes in the small pool). Freed neighbors in a segment are
 * merged, and segments are never returned. With `maxSplitBytes` (max_split_size_mb) blocks from that size on are
 * neither split nor used for smaller requests, and larger requests use no block that is 20 MiB too large.
 */
export interface TorchAllocator {
  /** @returns the block, for `free` */
  malloc(bytes: number): Block;
  free(block: Block): void;
  reserved(): number;
  allocated(): number;
}

export interface Block {
  size: number;
  address: number;
  used: boolean;
  small: boolean;
  before: Block | null;
  after: Block | null;
}

const mib = 2 ** 20;

export function torchAllocator(maxSplitBytes = Infinity): TorchAllocator {
  let reserved = 0;
  let allocated = 0;
  /** Free blocks, by size. */
  const pools = { small: [] as Block[], large: [] as Block[] };

  /** Among blocks of equal size the lowest address comes first. */
  function firstAtLeast(pool: readonly Block[], size: number, address = -Infinity): number {
    let low = 0;
    let high = pool.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const block = pool[middle]!;
      const less = block.size === size ? block.address < address : block.size < size;
      if (less) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  const poolOf = ({ small }: Block): Block[] => (small ? pools.small : pools.large);

  function offer(block: Block): void {
    block.used = false;
    const pool = poolOf(block);
    pool.splice(firstAtLeast(pool, block.size, block.address), 0, block);
  }

  function withdraw(block: Block): void {
    const pool = poolOf(block);
    pool.splice(firstAtLeast(pool, block.size, block.address), 1);
  }

  return {
    malloc(bytes) {
      const size = Math.max(512, Math.ceil(bytes / 512) * 512);
      const small = size <= mib;
      const pool = small ? pools.small : pools.large;
      const entry = firstAtLeast(pool, size);
      let block = pool[entry];
      const oversize = size >= maxSplitBytes;
      if (block && (oversize ? block.size >= size + 20 * mib : block.size >= maxSplitBytes))
        block = undefined;
      if (block) pool.splice(entry, 1);
      else {
        const segment = small ? 2 * mib : size < 10 * mib ? 20 * mib : Math.ceil(size / (2 * mib)) * 2 * mib;
        block = { size: segment, address: -reserved - segment, used: true, small, before: null, after: null };
        // A new segment is below the earlier ones: observed on an H200 by which of two equal blocks is used first.
        reserved += segment;
      }
      const excess = block.size - size;
      if (small ? excess >= 512 : excess > mib && !oversize) {
        const remainder: Block = {
          size: excess,
          address: block.address + size,
          used: false,
          small,
          before: block,
          after: block.after,
        };
        if (block.after) block.after.before = remainder;
        block.after = remainder;
        block.size = size;
        offer(remainder);
      }
      block.used = true;
      allocated += block.size;
      return block;
    },
    free(block) {
      allocated -= block.size;
      let merged = block;
      const { before, after } = block;
      if (before && !before.used) {
        withdraw(before);
        before.size += merged.size;
        before.after = merged.after;
        if (merged.after) merged.after.before = before;
        merged = before;
      }
      if (after && !after.used) {
        withdraw(after);
        merged.size += after.size;
        merged.after = after.after;
        if (after.after) after.after.before = merged;
      }
      offer(merged);
    },
    reserved: () => reserved,
    allocated: () => allocated,
  };
}
