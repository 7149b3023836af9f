import type { FC, PropsWithChildren } from 'hono/jsx';
import type { Distribution, ServingPoint, ServingResult } from '../../../model/documents/serving.js';
import type { Figure } from '../../../model/figure.js';
import type { Chart } from '../../charts/chart.js';
import { servingCharts, type ServingChartName } from '../../charts/registry.js';
import { formatCount, formatFigureWithInterval, formatMs } from '../../format.js';
import type { PageSection } from '../document-page.js';
import { ChartFrame, Missing } from '../parts.js';

export type ServingSection = PageSection<ServingResult>;

interface Props {
  name: ServingChartName;
  result: ServingResult;
  part: string;
  label: string;
}

export const ServingChart: FC<PropsWithChildren<Props>> = ({ name, result, part, label, children }) => {
  const chart: Chart<ServingResult> = servingCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      {children}
    </ChartFrame>
  );
};

export const Statistic: FC<{ of: Distribution; name: 'mean' | 'p50' | 'p90' | 'p95' | 'p99' | 'max' }> = ({
  of,
  name,
}) => ('value' in of ? <Missing reason={of.reason.text} /> : <>{formatMs(of[name])}</>);

/** Rates of requests by what they count: "req/s" for "1/s". */
export const asRequests = (figure: Figure): Figure =>
  figure.value !== null && figure.unit === '1/s' ? { ...figure, unit: 'req/s' } : figure;

/** A figure with its interval; a whole number of things has no decimals. */
export const Counted: FC<{ figure: Figure }> = ({ figure }) => {
  if (figure.value === null) return <Missing reason={figure.reason.text} />;
  const whole = Number.isInteger(figure.value) && !figure.ci95 && /^[a-z]+$/.test(figure.unit);
  const text = whole && figure.unit !== 'ms' && figure.unit !== 'share' && figure.unit !== 'ratio';
  return (
    <span class="figure" title={figure.source}>
      {text ? formatCount(figure.value) : formatFigureWithInterval(figure)}
    </span>
  );
};

/** "no", "yes: …". */
export const clientWords = ({ client }: ServingPoint): string =>
  client.bound ? `yes: ${client.reasons.join('; ')}` : 'no';
