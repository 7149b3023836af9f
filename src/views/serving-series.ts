import { loadKinds, type ServingPoint, type ServingResult } from '../model/documents/serving.js';
import type { Figure } from '../model/figure.js';
import { lineMark } from '../vocabulary/colors.js';
import { formatMs } from '../vocabulary/format.js';
import { latencyLabels, type LatencyId, loadLabel, rateLabels } from '../vocabulary/loads.js';
import type { LinesChart, Panel, Point } from './chart.js';

/** Id of the section with latencies against load, shared by our load tests and results of other tools. */
export const latencySectionId = 'latency';

/** Points by kind and load: a sweep does not run in this order. */
export function byLoad({ points }: ServingResult): ServingPoint[] {
  return points.toSorted(
    (a, b) =>
      loadKinds.indexOf(a.load.kind) - loadKinds.indexOf(b.load.kind) ||
      (a.load.rate_per_s ?? a.load.concurrency ?? 0) - (b.load.rate_per_s ?? b.load.concurrency ?? 0),
  );
}

/** Latencies that any load has; the time since a request was due differs from the time since it was sent only in open loads. */
export const knownLatencies = ({ points }: ServingResult): LatencyId[] =>
  (Object.keys(latencyLabels) as LatencyId[]).filter((metric) =>
    points.some(
      ({ latency, load }) =>
        !('value' in latency[metric]) && (!metric.endsWith('_from_schedule') || load.kind !== 'closed'),
    ),
  );

/** Percentiles in the chart of a latency. */
const drawnPercentiles = ['p50', 'p95', 'p99'] as const;

/** The SLO's limit on a latency, ms. */
export function sloBound({ slo }: ServingResult, metric: LatencyId): number | null {
  if (!slo) return null;
  const bounds: Partial<Record<LatencyId, number | null>> = {
    ttft: slo.ttft_ms,
    ttft_from_schedule: slo.ttft_ms,
    tpot: slo.tpot_ms,
    e2e: slo.e2e_ms,
    e2e_from_schedule: slo.e2e_ms,
  };
  return bounds[metric] ?? null;
}

interface Rate {
  id: keyof typeof rateLabels;
  name: string;
  figure: (point: ServingPoint) => Figure;
}

const rate = (id: Rate['id'], figureOf: Rate['figure']): Rate => ({
  id,
  name: rateLabels[id],
  figure: figureOf,
});

/** Rates in each part of the throughput chart. */
const rateParts = {
  tokens: {
    unit: 'tok/s',
    rates: [
      rate('output_tokens_per_s', ({ throughput }) => throughput.output_tokens_per_s),
      rate('total_tokens_per_s', ({ throughput }) => throughput.total_tokens_per_s),
    ],
  },
  requests: {
    unit: 'req/s',
    rates: [
      rate('requests_per_s', ({ throughput }) => throughput.requests_per_s),
      rate('goodput', ({ goodput }) => goodput.requests_per_s),
      rate('offered_requests_per_s', ({ throughput }) => throughput.offered_requests_per_s),
    ],
  },
} as const;
export type RatePart = keyof typeof rateParts;

/** Rates of a part that any load has. */
export const knownRates = ({ points }: ServingResult, part: RatePart): Rate[] =>
  rateParts[part].rates.filter(({ figure }) => points.some((point) => figure(point).value !== null));

/** Title of the load axis. */
function loadAxis(points: readonly ServingPoint[]): string {
  const closed = points.some(({ load }) => load.kind === 'closed');
  const open = points.some(({ load }) => load.kind !== 'closed');
  if (closed && open) return 'load';
  return closed ? 'concurrent users (closed loop)' : 'offered requests';
}

const loadChart = (points: readonly ServingPoint[], panel: Panel): LinesChart => ({
  form: 'lines',
  x: { name: loadAxis(points), categories: points.map(({ load }) => loadLabel(load)) },
  panels: [panel],
});

/** Percentiles of one latency against load, with the SLO's limit. */
export function latencyChart(data: ServingResult, metric: LatencyId): LinesChart {
  const points = byLoad(data);
  const bound = sloBound(data, metric);
  const series = drawnPercentiles.map((percentile, index) => ({
    name: percentile,
    ...lineMark(index),
    points: points.map(({ latency: { [metric]: spread }, client }, position): Point => {
      if ('value' in spread) return [position, null];
      const late = client.bound ? ['client-bound: the client was too slow for this load'] : [];
      const mean = ['mean ', { n: spread.mean, unit: 'ms' }, ', n = ', { count: spread.n }];
      return [position, spread[percentile], { notes: [mean, ...late] }];
    }),
  }));
  const top = Math.max(0, ...series.flatMap((line) => line.points.map(([, y]) => y ?? 0)));
  // A limit far above all measurements would flatten the lines; the table has it.
  const isBoundNear = bound !== null && bound < 4 * top;
  return loadChart(points, {
    unit: 'ms',
    series,
    bounds: isBoundNear ? [{ value: bound, name: `SLO ${formatMs(bound)}` }] : [],
  });
}

export function rateChart(data: ServingResult, part: RatePart): LinesChart {
  const points = byLoad(data);
  return loadChart(points, {
    unit: rateParts[part].unit,
    series: knownRates(data, part).map(({ name, figure: figureOf }, index) => ({
      name,
      ...lineMark(index),
      points: points.map((point, position): Point => {
        const figure = figureOf(point);
        return figure.value === null
          ? [position, null]
          : [position, figure.value, { ci95: figure.ci95 ?? null }];
      }),
    })),
  });
}
