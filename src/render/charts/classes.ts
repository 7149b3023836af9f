import type { Breakdown } from '../../model/documents/profile.js';
import { opClasses, type OpClass } from '../../model/classes.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { barColors, classColors, type Theme } from '../palette.js';
import { stagesWithOperators } from '../../views/profile-series.js';
import type { Chart, KeyEntry } from './chart.js';
import { sharesHeight, sharesOption, type Segment } from './shares.js';

/** Operators by class, then what is no operator: the segments of a stage's bar sum to its profiled time. */
export function segments(breakdown: Breakdown, theme: Theme): Segment[] {
  const idle = barColors.idle[theme.dark ? 'dark' : 'light'];
  const msOf = (opClass: OpClass): number => breakdown.by_class.find((row) => row.class === opClass)?.ms ?? 0;
  return [
    ...opClasses.map((opClass) => ({
      name: classLabels[opClass],
      ms: msOf(opClass),
      color: classColors[opClass],
    })),
    { name: 'gaps between operators', ms: breakdown.gaps_between_operators_ms, color: idle },
    { name: 'gaps at the edges', ms: breakdown.gaps_at_edges_ms, color: idle },
    { name: 'remainder', ms: breakdown.remainder_ms, color: idle },
  ];
}

/** What the colours of classes mean, in the order of the classes. */
export const classKey = (present: (name: OpClass) => boolean): KeyEntry[] =>
  opClasses.filter(present).map((name) => ({ name: classLabels[name], color: classColors[name] }));

/** One bar per stage, 100 % = its profiled time. */
export const classesChart: Chart = {
  height: (result) => sharesHeight(stagesWithOperators(result).length),
  key: (result, _part, theme) => [
    ...classKey((name) =>
      stagesWithOperators(result).some(({ breakdown }) =>
        breakdown.by_class.some((row) => row.class === name),
      ),
    ),
    { name: 'gaps', color: barColors.idle[theme.dark ? 'dark' : 'light'] },
  ],
  build: (input) =>
    sharesOption(
      input,
      stagesWithOperators(input.result).map(({ kind, breakdown }) => ({
        name: kind,
        whole: breakdown.stage_ms,
        parts: segments(breakdown, input.theme),
      })),
    ),
};
