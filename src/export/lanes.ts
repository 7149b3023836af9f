/**
 * Lays intervals of one track on lanes so that on each lane any two are apart or nested: Perfetto drops an event that
 * overlaps another one partially, without a word. Intervals come by start, the longer one first at the same start.
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
