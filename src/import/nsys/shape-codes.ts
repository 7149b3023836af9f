/** Maps keys of combinations (integers to 2^53) to codes; a Map would box and hash each double. */
export interface ShapeCodes {
  set(key: number, code: number): void;
  /** −1: not set. */
  get(key: number): number;
}

export function shapeCodes(): ShapeCodes {
  let keys = new Float64Array(1024);
  let codes = new Int32Array(1024).fill(-1);
  let count = 0;

  function slotOf(key: number): number {
    const mask = keys.length - 1;
    let slot = ((key | 0) ^ Math.imul((key / 2 ** 32) | 0, 0x9e3779b1)) & mask;
    while (codes[slot]! >= 0 && keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  return {
    set(key, code) {
      if (count * 2 >= keys.length) {
        const [oldKeys, oldCodes] = [keys, codes];
        keys = new Float64Array(oldKeys.length * 2);
        codes = new Int32Array(oldCodes.length * 2).fill(-1);
        for (let i = 0; i < oldKeys.length; i++) {
          if (oldCodes[i]! < 0) continue;
          const slot = slotOf(oldKeys[i]!);
          keys[slot] = oldKeys[i]!;
          codes[slot] = oldCodes[i]!;
        }
      }
      const slot = slotOf(key);
      keys[slot] = key;
      codes[slot] = code;
      count++;
    },
    get: (key) => codes[slotOf(key)]!,
  };
}
