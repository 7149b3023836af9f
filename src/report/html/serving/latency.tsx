import type { ServingResult } from '../../../model/documents/serving.js';
import { markOf } from '../../charts/lines.js';
import {
  type ServingMetric,
  servingMetrics,
  shownPercentiles,
  sloBound,
} from '../../charts/serving/latency.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { formatCount, formatMs, noValue } from '../../format.js';
import { LineKey } from '../line-key.js';
import { DataTable, Missing } from '../parts.js';
import { ServingChart, type ServingSection, Statistic } from './serving-parts.js';

/** Of an open load alone does the time since a request was due differ from that since it was sent. */
function shownMetrics({ points }: ServingResult): ServingMetric[] {
  return (Object.keys(servingMetrics) as ServingMetric[]).filter((metric) =>
    points.some(
      ({ latency, load }) =>
        !('value' in latency[metric]) && (!metric.endsWith('_from_schedule') || load.kind !== 'closed'),
    ),
  );
}

export const servingLatencySection: ServingSection = {
  id: 'latency',
  title: 'Latency against the load',
  render: ({ data }) => {
    const points = byLoad(data);
    return (
      <>
        <LineKey
          label="Percentiles"
          entries={shownPercentiles.map((name, index) => ({ name, ...markOf(index) }))}
        />
        <div class="two">
          {shownMetrics(data).map((metric) => {
            const bound = sloBound(data, metric);
            return (
              <div>
                <h3>{servingMetrics[metric]}</h3>
                <ServingChart
                  name="serving_latency"
                  part={metric}
                  result={data}
                  label={`Percentiles of ${servingMetrics[metric]} against the load`}
                >
                  <DataTable
                    caption={`${servingMetrics[metric]}${bound === null ? '' : `; SLO ${formatMs(bound)}`}`}
                    columns={[
                      { head: 'load' },
                      ...['n', 'mean', '95 % interval', 'sd', 'p50', 'p90', 'p95', 'p99', 'max'].map(
                        (head) => ({ head, numeric: true }),
                      ),
                    ]}
                    rows={points.map((point) => {
                      const of = point.latency[metric];
                      if ('value' in of) return [levelLabel(point), <Missing reason={of.reason.text} />];
                      return [
                        levelLabel(point),
                        formatCount(of.n),
                        formatMs(of.mean),
                        of.ci95 === null ? noValue : `${formatMs(of.ci95[0])} to ${formatMs(of.ci95[1])}`,
                        of.sd === null ? noValue : formatMs(of.sd),
                        ...(['p50', 'p90', 'p95', 'p99', 'max'] as const).map((name) => (
                          <Statistic of={of} name={name} />
                        )),
                      ];
                    })}
                  />
                </ServingChart>
              </div>
            );
          })}
        </div>
      </>
    );
  },
};
