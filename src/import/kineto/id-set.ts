/** A bit set of small integers: External ids run from 1 without gaps, and a million of them take 128 KiB. */
interface IdSet {
  has(id: number): boolean;
  add(id: number): void;
  /** Members that are not in `other`. */
  without(other: IdSet): number[];
  pages: ReadonlyMap<number, Uint32Array>;
}

const pageBits = 1 << 16;

export function createIdSet(): IdSet {
  const pages = new Map<number, Uint32Array>();
  let lastKey = -1;
  let last: Uint32Array = new Uint32Array(0);
  function page(id: number): Uint32Array {
    const key = Math.floor(id / pageBits);
    if (key === lastKey) return last;
    let existing = pages.get(key);
    if (!existing) pages.set(key, (existing = new Uint32Array(pageBits / 32)));
    lastKey = key;
    return (last = existing);
  }
  return {
    pages,
    has(id) {
      const bit = id % pageBits;
      return ((page(id)[bit >>> 5]! >>> (bit & 31)) & 1) === 1;
    },
    add(id) {
      const bit = id % pageBits;
      page(id)[bit >>> 5]! |= 1 << (bit & 31);
    },
    without(other) {
      const missing: number[] = [];
      for (const [key, words] of pages) {
        const otherWords = other.pages.get(key);
        for (let word = 0; word < words.length; word++) {
          const remaining = words[word]! & ~(otherWords?.[word] ?? 0);
          if (remaining === 0) continue;
          for (let bit = 0; bit < 32; bit++) {
            if ((remaining >>> bit) & 1) missing.push(key * pageBits + word * 32 + bit);
          }
        }
      }
      return missing;
    },
  };
}
