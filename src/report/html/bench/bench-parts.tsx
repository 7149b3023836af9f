import type { FC, PropsWithChildren } from 'hono/jsx';
import type { BenchDistribution, BenchPointResult, BenchResult } from '../../../model/documents/bench.js';
import { figure, type Figure } from '../../../model/figure.js';
import type { BatchLine } from '../../charts/bench/batch.js';
import { lengthWords } from '../../charts/bench/batch.js';
import type { Chart } from '../../charts/chart.js';
import { markOf } from '../../charts/lines.js';
import { benchCharts, type BenchChartName } from '../../charts/registry.js';
import { formatCount, formatFigureWithInterval, isAccountingFault, nbsp } from '../../format.js';
import type { PageSection } from '../document-page.js';
import { LineKey } from '../line-key.js';
import { ChartFrame, Missing } from '../parts.js';

export type BenchSection = PageSection<BenchResult>;

interface Props {
  name: BenchChartName;
  result: BenchResult;
  part?: string;
  label: string;
}

export const BenchChart: FC<PropsWithChildren<Props>> = ({ name, result, part = '', label, children }) => {
  const chart: Chart<BenchResult> = benchCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      {children}
    </ChartFrame>
  );
};

/** The mean of a distribution as a figure. */
export function meanOf(spread: BenchDistribution): Figure {
  if ('value' in spread) return spread;
  const { mean, unit, source, n, sd, ci95 } = spread;
  return figure(mean, unit, source, { n, ...(sd === null ? {} : { sd }), ...(ci95 ? { ci95 } : {}) });
}

/** A figure with its interval, for tables that say n and confidence once. */
export const Interval: FC<{ figure: Figure; utilization?: boolean }> = ({
  figure: of,
  utilization = false,
}) => {
  if (of.value === null) return <Missing reason={of.reason.text} />;
  return (
    <span class="figure" title={of.source}>
      {formatFigureWithInterval(of)}
      {utilization && isAccountingFault(of) && <span class="fault"> accounting fault</span>}
    </span>
  );
};

export const pointWords = (point: BenchPointResult): string =>
  `batch${nbsp}${formatCount(point.batch_size)}, ${lengthWords(point)}`;

export const outcomeWords: Record<BenchPointResult['outcome'], string> = {
  measured: 'measured',
  out_of_memory: 'out of memory',
  failed: 'failed',
  skipped: 'skipped',
  stopped: 'stopped',
};

/** Key of a chart with a line a variant; nothing where there is one. */
export const BatchKey: FC<{ lines: readonly BatchLine[] }> = ({ lines }) =>
  lines.length < 2 ? null : (
    <LineKey label="Lines" entries={lines.map(({ name }, index) => ({ name, ...markOf(index) }))} />
  );

/** Key of a chart with a mark a variant; nothing where there is one. */
export const VariantKey: FC<{ result: BenchResult }> = ({ result }) =>
  result.variants.length < 2 ? null : (
    <LineKey
      label="Variants"
      entries={result.variants.map(({ label }, index) => ({ name: label, ...markOf(index) }))}
    />
  );
