import type { ServingPoint } from '../../../model/documents/serving.js';
import type { Figure } from '../../../model/figure.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { formatCount, formatMs, formatNumber, formatPercent, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { Absent, DataTable, MissingNotes } from '../parts.js';
import { clientWords, Counted, type ServingSection } from './serving-parts.js';

const ms = (value: number | null): string => (value === null ? noValue : formatMs(value));

export const clientSection: ServingSection = {
  id: 'client',
  title: 'The load generator itself',
  render: ({ data }) => (
    <>
      <p>
        A client that is too slow measures itself. Send lag is how late requests left, event-loop delay how
        long arrived data waited to be stamped.
      </p>
      <DataTable
        caption="By load"
        columns={[
          { head: 'load' },
          { head: 'threads', numeric: true },
          { head: 'send lag p50', numeric: true },
          { head: 'p99', numeric: true },
          { head: 'event-loop delay p99', numeric: true },
          { head: 'max', numeric: true },
          { head: 'event loop busy', numeric: true },
          { head: 'CPU cores', numeric: true },
          { head: 'client-bound', wraps: true },
        ]}
        rows={byLoad(data).map((point) => {
          const { client } = point;
          return [
            levelLabel(point),
            formatCount(client.threads),
            ms(client.send_lag_p50_ms),
            ms(client.send_lag_p99_ms),
            ms(client.event_loop_delay_p99_ms),
            ms(client.event_loop_delay_max_ms),
            formatPercent(client.event_loop_utilization),
            formatNumber(client.process_cores, 2),
            clientWords(point),
          ];
        })}
      />
    </>
  ),
};

const serverFigures: [name: string, of: (point: ServingPoint) => Figure][] = [
  ['running, most', ({ server }) => server.requests_running_max],
  ['waiting, most', ({ server }) => server.requests_waiting_max],
  ['KV cache in use, most', ({ server }) => server.kv_cache_usage_max],
  ['prefix cache hits', ({ server }) => server.prefix_cache_hit_ratio],
  ['preemptions', ({ server }) => server.preemptions],
];

export const serverSection: ServingSection = {
  id: 'server',
  title: 'The server’s own metrics',
  render: ({ data }) => {
    const points = byLoad(data);
    const known = serverFigures.filter(([, of]) => points.some((point) => of(point).value !== null));
    const named = serverFigures.flatMap(([name, of]): [string, Figure][] => {
      const gone = points.map(of).find(({ value }) => value === null);
      return gone ? [[name, gone]] : [];
    });
    const { metrics_url: url, server } = data.target;
    return (
      <>
        {url !== null && (
          <p>
            {server ?? 'A server'}, read from {url} while the loads ran.
          </p>
        )}
        {known.length === 0 ? (
          <Absent what="Nothing is known from the server itself." why="It told none of these." />
        ) : (
          <DataTable
            caption="By load"
            columns={[{ head: 'load' }, ...known.map(([head]) => ({ head, numeric: true }))]}
            rows={points.map((point) => [
              levelLabel(point),
              ...known.map(([, of]) => <Counted figure={of(point)} />),
            ])}
          />
        )}
        <MissingNotes reasons={missingReasons(named)} />
      </>
    );
  },
};
