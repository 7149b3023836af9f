import type { Breakdown, ProfileResult } from '../../model/documents/profile.js';
import { opClasses, type OpClass } from '../../model/classes.js';
import { formatMs, formatPercent } from '../format.js';
import { classNames } from '../names.js';
import { barColors, classColors, type Theme } from '../palette.js';
import { axisStyle, base, grid, textOn, tip, type Chart } from './chart.js';

interface Segment {
  name: string;
  ms: number;
  color: string;
}

/** Operators by class, then what is no operator: the segments of a stage's bar sum to its profiled time. */
export function segments(breakdown: Breakdown, theme: Theme): Segment[] {
  const idle = barColors.idle[theme.dark ? 'dark' : 'light'];
  const msOf = (opClass: OpClass): number => breakdown.by_class.find((row) => row.class === opClass)?.ms ?? 0;
  return [
    ...opClasses.map((opClass) => ({
      name: classNames[opClass],
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
  height: (result) => 44 + 44 * stagesWithOperators(result).length,
  build: (input) => {
    const stages = stagesWithOperators(input.result).map(({ kind, breakdown }) => ({
      kind,
      whole: breakdown.stage_ms,
      parts: segments(breakdown, input.theme),
    }));
    const names = stages[0]?.parts.map(({ name }) => name) ?? [];
    return {
      ...base(input),
      grid: grid(),
      xAxis: {
        type: 'value',
        min: 0,
        max: 1,
        ...axisStyle(input),
        axisLabel: { color: input.theme.muted, formatter: (value: number) => formatPercent(value) },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: stages.map(({ kind }) => kind),
        ...axisStyle(input),
        axisTick: { show: false },
        axisLabel: { color: input.theme.ink },
      },
      series: names.map((name, index) => ({
        type: 'bar',
        name,
        stack: 'share',
        barWidth: 26,
        data: stages.map(({ parts, whole }) => {
          const part = parts[index];
          const share = part && whole > 0 ? part.ms / whole : 0;
          const color = part?.color ?? input.theme.line;
          return {
            value: share,
            itemStyle: { color, borderColor: input.theme.surface, borderWidth: share > 0.002 ? 1 : 0 },
            label: {
              show: share > (input.width < 500 ? 0.14 : 0.06),
              color: textOn(color),
              formatter: formatPercent(share),
            },
          };
        }),
        tooltip: {
          formatter: (params) => {
            const stage = stages[(params as { dataIndex: number }).dataIndex];
            const part = stage?.parts[index];
            if (!stage || !part) return '';
            const share = formatPercent(part.ms / stage.whole);
            return tip(part.name, `${formatMs(part.ms)}, ${share} of ${stage.kind}`);
          },
        },
      })),
    };
  },
};
