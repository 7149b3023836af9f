import { emptySection } from './empty-section.js';
import type { TimedRequest } from '../facts/serving/requests-over-time.js';
import type { Block, Row, Section, Text } from '../views/block.js';
import type { Panel, Point, Series } from '../views/chart.js';
import { classColors } from '../vocabulary/colors.js';
import { latencyLabels } from '../vocabulary/loads.js';
import { formatCount, formatQuantity, plural } from '../vocabulary/format.js';
import { ganttRequests, requestGantt } from './requests-gantt.js';

/** Charts with more requests draw points that cover each other once. */
const allDrawn = 5000;
/** Columns and rows of a chart over the send time in which points cover each other: smaller than a symbol. */
const cells = { columns: 600, rows: 60 };
const maxListed = 500;
/** Maximum requests in flight drawn in one file, which has no links to further ones. */
const maxInFlight = 1000;

const latencies = [
  ['ttft_ms', latencyLabels.ttft],
  ['tpot_ms', latencyLabels.tpot],
  ['e2e_ms', latencyLabels.e2e],
] as const;
type Latency = (typeof latencies)[number][0];

/** Single requests of a load: when each was sent and finished, latencies over that time, and the slowest requests. */
export function requestSections(requests: readonly TimedRequest[], loads: Loads): Section[] {
  const { execution, executions, linkTo, nameOf, pages = 1, others } = loads;
  const listed = Math.ceil(maxListed / pages);
  const timed = requests.every(({ sent_s }) => sent_s !== null);
  const slowest = requests.toSorted((a, b) => (b.e2e_ms ?? -1) - (a.e2e_ms ?? -1));
  const covered = requests.length > allDrawn / pages;
  const columns = covered ? Math.ceil(cells.columns / pages) : null;
  const failed = requests.filter(({ status }) => status !== null && status !== 'ok').length;
  const panels = latencies
    .filter(([id]) => requests.some((request) => request[id] !== null))
    .map(([id, title]): Panel => ({ title, unit: 'ms', series: seriesOf(requests, id, timed, columns) }));
  const choice: Block[] =
    executions.length < 2
      ? []
      : [
          {
            type: 'text',
            text: [
              'Load: ',
              ...executions.flatMap((load, index): Text[] => [
                index === 0 ? '' : ' · ',
                load === execution || linkTo === null
                  ? { text: nameOf(load), tone: 'strong' }
                  : { link: linkTo(load), text: nameOf(load) },
              ]),
            ].flat(),
          },
        ];
  const places = new Map(requests.map((request, index) => [request, index]));
  const table = requestTable('Requests, the slowest first', slowest.slice(0, listed), (request) =>
    linkTo === null || !timed
      ? (request.id ?? '')
      : {
          link: linkTo(execution, Math.max(0, places.get(request)! - ganttRequests / 2)),
          text: request.id ?? 'request',
        },
  );
  return [
    {
      id: 'requests',
      title: 'Requests',
      blocks: [
        ...choice,
        {
          type: 'text',
          text: `${plural(requests.length, 'request')}, ${failed} failed. Circles are measured requests, squares warm-up, triangles failures.${
            covered ? ' Points that cover each other are drawn once.' : ''
          }${requests.length > listed ? ` The table has the ${listed} slowest; all: ${others}` : ''}`,
        },
        ...(panels.length > 0
          ? [
              {
                type: 'chart',
                label: 'Latency of each request',
                chart: {
                  form: 'lines',
                  x: timed
                    ? { name: 'sent, since the first request', unit: 's' }
                    : { name: 'request, in the order of the file (no send times recorded)', unit: '' },
                  panels,
                },
                behind: table,
              } satisfies Block,
            ]
          : [table]),
      ],
    },
    { id: 'gantt', title: 'Requests in flight', blocks: ganttBlocks(requests, loads) },
  ];
}

interface Loads {
  execution: string;
  executions: readonly string[];
  /** Link to a load, and to its chart from a given request on; null if all loads are on one page. */
  linkTo: ((execution: string, from?: number) => string) | null;
  /** Label of a load. */
  nameOf: (execution: string) => string;
  /** The command that shows the requests left out here. */
  others: string;
  /** Index of the first request in the chart of requests in flight. */
  from?: number;
  /** Number of loads that share the size limit of one file. */
  pages?: number;
}

/** Requests over the time in which they were in flight, one chart of up to `ganttRequests` at a time. */
function ganttBlocks(
  requests: readonly TimedRequest[],
  { execution, linkTo, from: requestedFrom = 0, pages = 1, others }: Loads,
): Block[] {
  const most = linkTo === null ? Math.ceil(maxInFlight / pages) : ganttRequests;
  const from = Math.max(0, Math.min(requestedFrom, requests.length - most));
  const gantt = requestGantt(requests, from, most);
  if (gantt === null)
    return [
      {
        type: 'missing',
        what: 'Requests are not drawn over time.',
        why: 'The session does not record when they were sent and answered.',
      },
    ];
  const { chart, drawn, before, endless, start_s } = gantt;
  const last = from + drawn.length;
  const step = (link: string, text: string): Text[] => [' · ', { link, text }];
  return [
    {
      type: 'text',
      text: [
        drawn.length < requests.length
          ? `Requests ${formatCount(from + 1)} to ${formatCount(last)} of ${formatCount(requests.length)} in the order of sending`
          : `${plural(requests.length, 'request')} in the order of sending`,
        from > 0 ? `, starting ${formatQuantity(start_s, 's')} after the first one` : '',
        before > 0 ? `, and ${formatCount(before)} sent before that were still in flight` : '',
        '. Each row shows one request at a time.',
        endless > 0
          ? ` ${plural(endless, 'request')} without an end ${endless === 1 ? 'is' : 'are'} not drawn.`
          : '',
        ...(linkTo !== null && from > 0
          ? step(linkTo(execution, Math.max(0, from - ganttRequests)), 'earlier')
          : []),
        ...(last === requests.length
          ? []
          : linkTo === null
            ? [` The others: ${others}`]
            : step(linkTo(execution, last), 'later')),
      ].flat(),
    },
    {
      type: 'chart',
      label: `Requests over the time at which they were in flight: ${plural(drawn.length, 'request')} in ${plural(chart.lanes.length, 'row')}`,
      chart,
      behind: requestTable('Requests in the order of sending', drawn, ({ id }) => id ?? ''),
    },
  ];
}

const requestTable = (
  title: string,
  requests: readonly TimedRequest[],
  named: (request: TimedRequest) => Text,
): Block => ({
  type: 'table',
  title,
  filter: true,
  columns: [
    { id: 'request', head: 'request' },
    { id: 'sent_s', head: 'sent at', numeric: true },
    ...latencies.map(([id, head]) => ({ id, head, numeric: true })),
    { id: 'input_tokens', head: 'tokens in', numeric: true },
    { id: 'output_tokens', head: 'tokens out', numeric: true },
    { id: 'status', head: 'status' },
  ],
  rows: requests.map((request): Row => ({
    cells: [
      named(request),
      quantity(request.sent_s, 's'),
      ...latencies.map(([id]) => quantity(request[id], 'ms')),
      quantity(request.input_tokens, ''),
      quantity(request.output_tokens, ''),
      `${request.status ?? ''}${request.warmup ? ' (warm-up)' : ''}`,
    ],
  })),
});

const quantity = (n: number | null, unit: string): Text =>
  n === null ? { missing: 'not recorded' } : { n, unit };

/** @param columns of the cells in which one point is drawn; null draws every point */
function seriesOf(
  requests: readonly TimedRequest[],
  id: Latency,
  timed: boolean,
  columns: number | null,
): Series[] {
  const xOf = (request: TimedRequest, index: number): number => (timed ? request.sent_s! : index);
  const width = requests.reduce((most, request, index) => Math.max(most, xOf(request, index)), 0) || 1;
  const height = requests.reduce((most, request) => Math.max(most, request[id] ?? 0), 0) || 1;
  const points = (matches: (request: TimedRequest) => boolean): Point[] => {
    const highest = new Map<string, Point>();
    for (const [index, request] of requests.entries()) {
      const y = request[id];
      if (!matches(request) || y === null) continue;
      const x = xOf(request, index);
      const cell =
        columns === null
          ? String(index)
          : [Math.floor((x / width) * columns), Math.floor((y / height) * cells.rows)].join(' ');
      if (y > (highest.get(cell)?.[1] ?? -1)) highest.set(cell, [x, y]);
    }
    return [...highest.values()];
  };
  const series: Series[] = [
    {
      name: 'measured',
      color: classColors.gemm,
      symbol: 'circle',
      style: 'dots',
      points: points(({ warmup, status }) => !warmup && (status === null || status === 'ok')),
    },
    {
      name: 'warm-up',
      color: 'idle',
      symbol: 'rect',
      style: 'dots',
      points: points(({ warmup }) => warmup),
    },
    {
      name: 'failed',
      color: classColors.sampling,
      symbol: 'triangle',
      style: 'dots',
      points: points(({ warmup, status }) => !warmup && status !== null && status !== 'ok'),
    },
  ];
  return series.filter((line) => line.points.length > 0);
}

/** Shown if the session has no requests: the reason, and the commands that record them. */
export const noRequests = emptySection(
  'requests',
  'Requests',
  'No requests.',
  'This session has no record of single requests.',
  ['inferscope bench serve URL', 'Load a server and record each request'],
  [
    'inferscope import FILE',
    'Read a result file with single requests: AIPerf, GuideLLM, SGLang, vllm bench serve --save-detailed',
  ],
);
