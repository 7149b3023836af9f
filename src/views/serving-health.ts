import type { ServingPoint, ServingResult } from '../model/documents/serving.js';
import type { Figure } from '../model/figure.js';
import { loadLabel } from '../vocabulary/loads.js';
import type { Block, Column, Row, Section, Text } from './block.js';

const load: Column = { id: 'load', head: 'load' };
const ms = (n: number | null): Text => (n === null ? { missing: 'not measured' } : { n, unit: 'ms' });
const cancelled = 'cancelled';

/** Failed requests by kind, and cancelled ones; nothing without any. */
export function failureSections(points: readonly ServingPoint[]): Section[] {
  const rows = points.flatMap(({ load: pointLoad, requests }): Row[] => [
    ...requests.failures.map(({ kind, count, example }) => ({
      cells: [
        loadLabel(pointLoad),
        kind.replaceAll('_', ' ').replace(/^http\b/, 'HTTP'),
        { count },
        requests.measured > 0
          ? { n: count / requests.measured, unit: 'ratio' }
          : { missing: 'no request was measured' },
        example ?? '',
      ],
    })),
    ...(requests.cancelled > 0
      ? [
          {
            cells: [
              loadLabel(pointLoad),
              cancelled,
              { count: requests.cancelled },
              { missing: 'they are not among the measured requests' },
              '',
            ],
          },
        ]
      : []),
  ]);
  if (rows.length === 0) return [];
  return [
    {
      id: 'failures',
      title: 'Failed requests',
      blocks: [
        {
          type: 'text',
          level: 2,
          text: 'Failed requests are excluded from latencies and throughput.',
        },
        {
          type: 'table',
          title: 'By load and kind',
          columns: [
            load,
            { id: 'kind', head: 'kind' },
            { id: 'count', head: 'count', numeric: true },
            { id: 'share', head: 'share', numeric: true },
            { id: 'example', head: 'example', wraps: true, lines: true },
          ],
          rows,
          brief: 3,
        },
      ],
    },
  ];
}

type FigureColumn = readonly [id: string, name: string, figureOf: (point: ServingPoint) => Figure];

const figureColumns = (columns: readonly FigureColumn[]): Column[] =>
  columns.map(([id, head]) => ({ id, head, numeric: true }));

/** A count without its unit, which is in the column head. */
const countText = (figure: Figure): Text =>
  figure.value !== null && /^(requests|tokens)$/.test(figure.unit) ? { count: figure.value } : { figure };

const tokenFigures: readonly FigureColumn[] = [
  ['input_tokens', 'prompt tokens', ({ tokens }) => tokens.input],
  ['output_tokens', 'output tokens', ({ tokens }) => tokens.output],
  ['cached_share', 'prompt from a cache', ({ tokens }) => tokens.cached_share],
  ['tokenizer_difference', 'tokenizer − usage', ({ tokens }) => tokens.tokenizer_difference],
];

export const tokenSection = (points: readonly ServingPoint[]): Section => ({
  id: 'tokens',
  title: 'Requests and tokens',
  level: 2,
  blocks: [
    {
      type: 'table',
      title: 'Requests per load; tokens are means per request',
      reasons: true,
      columns: [
        load,
        { id: 'measured', head: 'measured', numeric: true },
        { id: 'warmup', head: 'warm-up', numeric: true },
        { id: 'in_flight', head: 'max in flight', numeric: true },
        ...figureColumns(tokenFigures),
        {
          id: 'shorter',
          head: 'shorter',
          meaning: 'requests with shorter output than requested',
          numeric: true,
          drop: 1,
        },
        {
          id: 'longer',
          head: 'longer',
          meaning: 'requests with longer output than requested',
          numeric: true,
          drop: 0,
        },
        {
          id: 'chunks_not_tokens',
          head: 'chunks ≠ tokens',
          meaning: 'requests in which a chunk had several tokens, or an unknown number',
          numeric: true,
          drop: 2,
        },
      ],
      rows: points.map((point) => ({
        cells: [
          loadLabel(point.load),
          { count: point.requests.measured },
          { count: point.requests.warmup },
          point.load.concurrency === null
            ? { missing: 'no limit was set' }
            : { count: point.load.concurrency },
          ...tokenFigures.map(([, , figureOf]) => countText(figureOf(point))),
          { count: point.tokens.shorter_outputs },
          { count: point.tokens.longer_outputs },
          { count: point.tokens.chunks_not_tokens },
        ],
      })),
    },
  ],
});

export const clientSection = (points: readonly ServingPoint[]): Section => ({
  id: 'client',
  title: 'Load generator',
  level: 2,
  blocks: [
    {
      type: 'text',
      level: 3,
      text: 'Checks that the client was not the limit. Send lag: delay of sent requests; event-loop delay: time until arrived data gets its timestamp.',
    },
    {
      type: 'table',
      title: 'By load',
      reasons: true,
      columns: [
        load,
        { id: 'threads', head: 'threads', numeric: true, drop: 3 },
        { id: 'send_lag_p50_ms', head: 'send lag p50', numeric: true, drop: 0 },
        { id: 'send_lag_p99_ms', head: 'send lag p99', numeric: true },
        { id: 'loop_delay_p99_ms', head: 'loop delay p99', numeric: true },
        { id: 'loop_delay_max_ms', head: 'loop delay max', numeric: true, drop: 1 },
        { id: 'loop_busy_share', head: 'loop busy', numeric: true },
        { id: 'cpu_cores', head: 'CPU cores', numeric: true, drop: 2 },
        { id: 'client_bound', head: 'client-bound' },
      ],
      rows: points.map(({ load: pointLoad, client }) => ({
        cells: [
          loadLabel(pointLoad),
          { count: client.threads },
          ms(client.send_lag_p50_ms),
          ms(client.send_lag_p99_ms),
          ms(client.event_loop_delay_p99_ms),
          ms(client.event_loop_delay_max_ms),
          { n: client.event_loop_utilization, unit: 'ratio' },
          { n: client.process_cores, unit: '', digits: 2 },
          client.bound ? { text: 'yes', tone: 'fault' } : 'no',
        ],
      })),
    },
    {
      type: 'notes',
      items: points
        .filter(({ client }) => client.bound)
        .map(({ load: pointLoad, client }) => `${loadLabel(pointLoad)}: ${client.reasons.join('; ')}.`),
    },
  ],
});

const serverFigures: readonly FigureColumn[] = [
  ['running_max', 'running, max', ({ server }) => server.requests_running_max],
  ['waiting_max', 'waiting, max', ({ server }) => server.requests_waiting_max],
  ['kv_cache_max_share', 'KV cache, max', ({ server }) => server.kv_cache_usage_max],
  ['prefix_hit_share', 'prefix cache hits', ({ server }) => server.prefix_cache_hit_ratio],
  ['preemptions', 'preemptions', ({ server }) => server.preemptions],
];

export function serverSection({ target }: ServingResult, points: readonly ServingPoint[]): Section {
  const { metrics_url: url, server } = target;
  const hasMetrics = points.some((point) =>
    serverFigures.some(([, , figureOf]) => figureOf(point).value !== null),
  );
  const table: Block = {
    type: 'table',
    title: 'By load',
    reasons: true,
    columns: [load, ...figureColumns(serverFigures)],
    rows: points.map((point) => ({
      cells: [loadLabel(point.load), ...serverFigures.map(([, , figureOf]) => countText(figureOf(point)))],
    })),
  };
  return {
    id: 'server',
    title: "The server's own metrics",
    level: 2,
    blocks: [
      ...(url === null
        ? []
        : [
            {
              type: 'text',
              text: `${server ?? 'Unknown server'}, read from ${url} while the loads ran.`,
            } satisfies Block,
          ]),
      hasMetrics
        ? table
        : {
            type: 'missing',
            what: 'The server has no metrics.',
            why: 'It reported no known metric.',
          },
    ],
  };
}
