import type { BenchPointResult, BenchResult } from '../../../model/documents/bench.js';
import { formatCount, formatNumber } from '../../format.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart } from '../chart.js';
import { markOf } from '../lines.js';
import { lengthWords } from './batch.js';

export const comparedMetrics = {
  tpot_ms: 'TPOT',
  ttft_ms: 'TTFT',
  e2e_ms: 'end to end',
} as const;
export type ComparedMetric = keyof typeof comparedMetrics;

export interface Compared {
  name: string;
  /** Mean, ms; null where the variant did not measure the point. */
  values: (number | null)[];
}

const meanOf = (point: BenchPointResult | undefined, metric: ComparedMetric): number | null => {
  const spread = point?.latency[metric];
  return !spread || 'value' in spread ? null : spread.mean;
};

/** Points that the first variant and another have measured, with every variant's mean. */
export function compared({ variants }: BenchResult, metric: ComparedMetric): Compared[] {
  return (variants[0]?.points ?? []).flatMap((point) => {
    const values = variants.map(({ points }) =>
      meanOf(
        points.find((one) => one.point === point.point),
        metric,
      ),
    );
    const name = `batch ${formatCount(point.batch_size)}, ${lengthWords(point)}`;
    return values[0] !== null && values.slice(1).some((value) => value !== null) ? [{ name, values }] : [];
  });
}

const isMetric = (part: string): part is ComparedMetric => part in comparedMetrics;

/** Part tpot_ms, ttft_ms or e2e_ms of every variant as a multiple of the first one's, a group a point. */
export const benchVariantsChart: Chart<BenchResult> = {
  height: (result, part) =>
    60 + (14 * result.variants.length + 10) * (isMetric(part) ? compared(result, part).length : 0),
  build: (input) => {
    if (!isMetric(input.part)) return base(input);
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
