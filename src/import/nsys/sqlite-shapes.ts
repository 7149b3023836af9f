import type { Columns } from '../../model/workbench.js';

/** Combinations of values, numbered in order of first occurrence. */
export interface Shapes {
  /** Code of the combination in the first values of `row`. */
  code(row: Float64Array): number;
  /** New ones since the last call, as columns. */
  takeNew(): { first: number; rows: number; columns: Columns };
}

/** Open addressing over one flat array: a Map would need a string or an object per row. */
export function createShapes(names: readonly string[]): Shapes {
  const width = names.length;
  let values = new Float64Array(256 * width);
  let table = new Int32Array(1024).fill(-1);
  let count = 0;
  let usedSlots = 0;
  const words = new Int32Array(2);
  const double = new Float64Array(words.buffer);

  function hash(from: Float64Array, offset: number): number {
    let hashed = 0;
    for (let i = 0; i < width; i++) {
      double[0] = from[offset + i]!;
      hashed = Math.imul(hashed ^ words[0]!, 0x85ebca6b) ^ words[1]!;
      hashed = Math.imul(hashed ^ (hashed >>> 15), 0xc2b2ae35);
    }
    return hashed ^ (hashed >>> 13);
  }

  /** NaN (null) equals NaN here. */
  function isEqual(row: Float64Array, code: number): boolean {
    for (let i = 0; i < width; i++) {
      const a = row[i]!;
      const b = values[code * width + i]!;
      if (a !== b && (a === a || b === b)) return false;
    }
    return true;
  }

  function grow(): void {
    const larger = new Float64Array(values.length * 2);
    larger.set(values);
    values = larger;
    table = new Int32Array(table.length * 2).fill(-1);
    const mask = table.length - 1;
    for (let code = 0; code < count; code++) {
      let slot = hash(values, code * width) & mask;
      while (table[slot]! >= 0) slot = (slot + 1) & mask;
      table[slot] = code;
    }
  }

  return {
    code(row) {
      const mask = table.length - 1;
      let slot = hash(row, 0) & mask;
      for (;;) {
        const code = table[slot]!;
        if (code < 0) break;
        if (isEqual(row, code)) return code;
        slot = (slot + 1) & mask;
      }
      table[slot] = count;
      values.set(row.subarray(0, width), count * width);
      count++;
      if (count * width === values.length) grow();
      return count - 1;
    },
    takeNew() {
      const first = usedSlots;
      const rows = count - first;
      usedSlots = count;
      const columns: Columns = {};
      names.forEach((name, i) => {
        columns[name] = Float64Array.from({ length: rows }, (_, r) => values[(first + r) * width + i]!);
      });
      return { first, rows, columns };
    },
  };
}
