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
    let h = 0;
    for (let i = 0; i < width; i++) {
      double[0] = from[offset + i]!;
      h = Math.imul(h ^ words[0]!, 0x85ebca6b) ^ words[1]!;
      h = Math.imul(h ^ (h >>> 15), 0xc2b2ae35);
    }
    return h ^ (h >>> 13);
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
      let place = hash(values, code * width) & mask;
      while (table[place]! >= 0) place = (place + 1) & mask;
      table[place] = code;
    }
  }

  return {
    code(row) {
      const mask = table.length - 1;
      let place = hash(row, 0) & mask;
      for (;;) {
        const code = table[place]!;
        if (code < 0) break;
        if (isEqual(row, code)) return code;
        place = (place + 1) & mask;
      }
      table[place] = count;
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
