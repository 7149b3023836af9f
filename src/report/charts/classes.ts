import type { Breakdown, ProfileResult } from '../../model/documents/profile.js';
import { opClasses, type OpClass } from '../../model/classes.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { barColors, classColors, type Theme } from '../palette.js';
import type { Chart } from './chart.js';
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

export const stagesWithOperators = (result: ProfileResult): { kind: string; breakdown: Breakdown }[] =>
  result.stages.flatMap(({ kind, breakdown }) => (breakdown ? [{ kind, breakdown }] : []));

/** One bar a stage, 100 % = its profiled time. */
export const classesChart: Chart = {
  height: (result) => sharesHeight(stagesWithOperators(result).length),
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
