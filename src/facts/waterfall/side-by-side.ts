import type { WaterfallBar } from '../../model/documents/explain.js';
import { barRank } from '../../model/bars.js';

/**
 * A bar of several waterfalls: ms for each side, 0 if the waterfall does not have this bar, null if the side has no
 * waterfall.
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
  return [...labels]
    .map(([id, label]) => ({
      id,
      label,
      values: sides.map((bars) => bars && (bars.find((bar) => bar.id === id)?.ms ?? 0)),
    }))
    .toSorted((a, b) => barRank(a.id) - barRank(b.id) || largest(b) - largest(a));
}
