import type { BenchResult } from '../../../model/documents/bench.js';
import { compared, isTimedMetric, variantNames } from '../../../views/bench-series.js';
import { formatNumber } from '../../../vocabulary/format.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart } from '../chart.js';
import { lineKey, markOf } from '../lines.js';

/** Part tpot_ms, ttft_ms or e2e_ms of every variant as a multiple of the first one's, a group a point. */
export const benchVariantsChart: Chart<BenchResult> = {
  height: (result, part) =>
    60 + (14 * result.variants.length + 10) * (isTimedMetric(part) ? compared(result, part).length : 0),
  key: (result) => lineKey(variantNames(result)),
  build: (input) => {
    if (!isTimedMetric(input.part)) return base(input);
    const { theme } = input;
    const groups = compared(input.result, input.part);
    const narrow = isNarrow(input.width);
    return {
      ...base(input),
      grid: grid({ right: 52 }),
      xAxis: {
        type: 'value',
        min: 0,
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          hideOverlap: true,
          formatter: (value: number) => `${formatNumber(value, 2)}×`,
        },
        ...axisName(
          narrow ? 'times the first' : `times ${input.result.variants[0]?.label ?? 'the first'}`,
          28,
        ),
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: groups.map(({ name }) => name),
        ...axisStyle(input),
        axisTick: { show: false },
        axisLabel: { color: theme.ink, interval: 0, fontSize: narrow ? 10 : 12 },
      },
      series: input.result.variants.map(({ label }, index) => ({
        type: 'bar' as const,
        name: label,
        barMaxWidth: 14,
        itemStyle: { color: markOf(index).color },
        label: {
          show: true,
          position: 'right' as const,
          color: theme.ink,
          fontSize: 11,
          formatter: (params: { dataIndex: number }) => {
            const { values = [] } = groups[params.dataIndex] ?? {};
            const [first, own] = [values[0], values[index]];
            return first && own ? `${formatNumber(own / first, 3)}×` : '';
          },
        },
        data: groups.map(({ values }) => (values[0] && values[index] ? values[index] / values[0] : null)),
        tooltip: {
          formatter: (params: unknown) => {
            const group = groups[(params as { dataIndex: number }).dataIndex];
            const own = group?.values[index];
            return group && own ? tip(`${label}, ${group.name}`, `${formatNumber(own, 4)} ms`) : '';
          },
        },
      })),
    };
  },
};
