/** The time that one thread spends in synchronizing calls, queried per interval. */
export interface Waiting {
  /** Must be added in order of start; a nested or overlapping call extends the previous one. */
  add(startNs: number, endNs: number): void;
  /** @returns ns of [fromNs, toNs] inside such calls; cheap when queried in time order */
  within(fromNs: number, toNs: number): number;
}

export function newWaiting(): Waiting {
  // 16 bytes per call: synchronizing calls are far rarer than launches.
  let starts = new Float64Array(64);
  let ends = new Float64Array(64);
  let count = 0;
  let hint = 0;
  return {
    add(startNs, endNs) {
      if (count > 0 && startNs <= ends[count - 1]!) {
        ends[count - 1] = Math.max(ends[count - 1]!, endNs);
        return;
      }
      if (count === starts.length) {
        starts = doubled(starts);
        ends = doubled(ends);
      }
      starts[count] = startNs;
      ends[count++] = endNs;
    },
    within(fromNs, toNs) {
      hint = firstEndingAfter(ends, count, fromNs, hint);
      let sum = 0;
      for (let i = hint; i < count && starts[i]! < toNs; i++)
        sum += Math.min(ends[i]!, toNs) - Math.max(starts[i]!, fromNs);
      return sum;
    },
  };
}

/** Index of the first end > time: a few steps from the hint, else binary search. */
function firstEndingAfter(ends: Float64Array, count: number, time: number, hint: number): number {
  let low = 0;
  let high = count;
  if (hint === 0 || ends[hint - 1]! <= time) {
    low = hint;
    for (let i = hint; i < count && i < hint + 4; i++) if (ends[i]! > time) return i;
  } else {
    high = hint;
  }
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function doubled(array: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(array.length * 2);
  larger.set(array);
  return larger;
}
