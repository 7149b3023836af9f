/**
 * Puts intervals of one track on lanes so that any two on a lane are disjoint or nested: Perfetto silently drops an event that partially
 * overlaps another. Intervals are sorted by start, the longer one first for equal starts.
 */
export function lanePicker(): (start_ns: number, end_ns: number) => number {
  /** Ends of the open intervals of each lane, the innermost last. */
  const lanes: number[][] = [];
  return (start_ns, end_ns) => {
    for (const [index, open] of lanes.entries()) {
      while (open.length > 0 && open.at(-1)! <= start_ns) open.pop();
      const innermost = open.at(-1);
      if (innermost !== undefined && innermost < end_ns) continue;
      open.push(end_ns);
      return index;
    }
    lanes.push([end_ns]);
    return lanes.length - 1;
  };
}
