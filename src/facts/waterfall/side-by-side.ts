import type { WaterfallBar } from '../../model/documents/explain.js';
import { barRank, isKernelBar } from '../../model/bars.js';

/**
 * A bar of several waterfalls: ms for each side, 0 if the waterfall does not have this bar. Null if the side has no waterfall, or if only
 * its roofline, or only those of the sides with this bar, are unknown: kernels are split into other bars then.
 */
interface SharedBar {
  id: string;
  label: string;
  values: (number | null)[];
}

type Side = readonly Pick<WaterfallBar, 'id' | 'label' | 'ms'>[] | null;

/** Lines up the bars of all sides by id, from roofline to measured time. The bars of each side keep their sum. */
export function barsSideBySide(sides: readonly Side[]): SharedBar[] {
  const labels = new Map(sides.flatMap((bars) => (bars ?? []).map(({ id, label }) => [id, label] as const)));
  const largest = ({ values }: SharedBar) => Math.max(...values.map((ms) => ms ?? 0));
  const valueOf = (bars: Side, id: string): number | null => {
    if (bars === null) return null;
    const bar = find(bars, id);
    if (bar) return bar.ms;
    const having = sides.filter((side) => side !== null && find(side, id) !== undefined);
    return isKernelBar(id) && having.every((side) => hasRoofline(side) !== hasRoofline(bars)) ? null : 0;
  };
  return [...labels]
    .map(([id, label]) => ({ id, label, values: sides.map((bars) => valueOf(bars, id)) }))
    .toSorted((a, b) => barRank(a.id) - barRank(b.id) || largest(b) - largest(a));
}

const find = (bars: NonNullable<Side>, id: string) => bars.find((bar) => bar.id === id);
const hasRoofline = (bars: Side): boolean => bars !== null && find(bars, 'roofline') !== undefined;
