import type { Figure } from '../../../model/figure.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { formatCount } from '../../format.js';
import { missingReasons } from '../../words.js';
import { DataTable, FigureText, MissingNotes } from '../parts.js';
import { asRequests, type ServingSection, Statistic } from './serving-parts.js';

export const loadsSection: ServingSection = {
  id: 'loads',
  title: 'Loads',
  render: ({ data }) => {
    const points = byLoad(data);
    const slo = data.slo !== null;
    const figures = points.flatMap(({ throughput, goodput }): [string, Figure][] => [
      ['output tok/s', throughput.output_tokens_per_s],
      ['total tok/s', throughput.total_tokens_per_s],
      ...(slo ? [['goodput', goodput.requests_per_s] as [string, Figure]] : []),
    ]);
    return (
      <>
        <DataTable
          caption="A row a load; latencies are over its counted requests that succeeded"
          columns={[
            { head: 'load' },
            { head: 'ok', numeric: true },
            { head: 'failed', numeric: true },
            ...(slo ? [{ head: 'within SLO', numeric: true }, { head: 'meets it' }] : []),
            { head: 'client-bound' },
            { head: 'requests/s', numeric: true },
            { head: 'output tok/s', numeric: true },
            { head: 'TTFT p50', numeric: true },
            { head: 'p99', numeric: true },
            { head: 'TPOT p50', numeric: true },
            { head: 'p99', numeric: true },
            { head: 'end to end p50', numeric: true },
            { head: 'p99', numeric: true },
          ]}
          rows={points.map((point) => [
            levelLabel(point),
            formatCount(point.requests.ok),
            formatCount(point.requests.failed),
            ...(slo
              ? [
                  <FigureText figure={point.goodput.share} />,
                  point.goodput.meets_slo === null ? '' : point.goodput.meets_slo ? 'yes' : 'no',
                ]
              : []),
            point.client.bound ? 'yes' : 'no',
            <FigureText figure={asRequests(point.throughput.requests_per_s)} />,
            <FigureText figure={point.throughput.output_tokens_per_s} />,
            <Statistic of={point.latency.ttft} name="p50" />,
            <Statistic of={point.latency.ttft} name="p99" />,
            <Statistic of={point.latency.tpot} name="p50" />,
            <Statistic of={point.latency.tpot} name="p99" />,
            <Statistic of={point.latency.e2e} name="p50" />,
            <Statistic of={point.latency.e2e} name="p99" />,
          ])}
        />
        <MissingNotes reasons={missingReasons(figures)} />
      </>
    );
  },
};
