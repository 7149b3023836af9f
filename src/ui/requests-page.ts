import { nothing } from './nothing.js';
import type { RequestSeen } from '../facts/serving/requests-over-time.js';
import type { Block, Row, Section, Text } from '../views/block.js';
import type { Panel, Point, Series } from '../views/chart.js';
import { classColors } from '../vocabulary/colours.js';
import { plural } from '../vocabulary/format.js';

/** Requests that charts have; the table and SQL have the others. */
const mostDrawn = 5000;
const mostListed = 500;

const latencies = [
  ['ttft_ms', 'TTFT'],
  ['tpot_ms', 'TPOT'],
  ['e2e_ms', 'E2E latency'],
] as const;
type Latency = (typeof latencies)[number][0];

/** Latencies of single requests over the time at which they were sent, and the slowest requests. */
export function requestSections(
  requests: readonly RequestSeen[],
  { execution, executions, linkTo, pages = 1 }: Loads,
): Section[] {
  const drawn = Math.ceil(mostDrawn / pages);
  const listed = Math.ceil(mostListed / pages);
  const timed = requests.every(({ sent_s }) => sent_s !== null);
  const slowest = requests.toSorted((a, b) => (b.e2e_ms ?? -1) - (a.e2e_ms ?? -1));
  const kept = new Set(slowest.slice(0, drawn));
  const shown = requests.filter((one) => kept.has(one));
  const failed = requests.filter(({ status }) => status !== null && status !== 'ok').length;
  const panels = latencies
    .filter(([id]) => shown.some((one) => one[id] !== null))
    .map(([id, title]): Panel => ({ title, unit: 'ms', series: seriesOf(shown, id, timed) }));
  const loads: Block[] =
    executions.length < 2
      ? []
      : [
          {
            t: 'text',
            text: [
              'Load: ',
              ...executions.flatMap((one, index): Text[] => [
                index === 0 ? '' : ' · ',
                one === execution ? { text: one, tone: 'strong' } : { link: linkTo(one), text: one },
              ]),
            ].flat(),
          },
        ];
  const table: Block = {
    t: 'table',
    title: 'Requests, the slowest first',
    filter: true,
    columns: [
      { id: 'request', head: 'request' },
      { id: 'sent_s', head: 'sent at', numeric: true },
      ...latencies.map(([id, head]) => ({ id, head, numeric: true })),
      { id: 'input_tokens', head: 'tokens in', numeric: true },
      { id: 'output_tokens', head: 'tokens out', numeric: true },
      { id: 'status', head: 'status' },
    ],
    rows: slowest.slice(0, listed).map((one): Row => ({
      cells: [
        one.id ?? '',
        quantity(one.sent_s, 's'),
        ...latencies.map(([id]) => quantity(one[id], 'ms')),
        quantity(one.input_tokens, ''),
        quantity(one.output_tokens, ''),
        `${one.status ?? ''}${one.warmup ? ' (warm-up)' : ''}`,
      ],
    })),
  };
  return [
    {
      id: 'requests',
      title: 'Requests',
      blocks: [
        ...loads,
        {
          t: 'text',
          text: `${plural(requests.length, 'request')}, ${failed} not ok. Circles are measured requests, squares warm-up, triangles failures.${
            kept.size < requests.length ? ` Charts have the ${drawn} slowest.` : ''
          }${requests.length > listed ? ` The table has the ${listed} slowest.` : ''}`,
        },
        ...(panels.length > 0
          ? [
              {
                t: 'chart',
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
  ];
}

interface Loads {
  execution: string;
  executions: readonly string[];
  linkTo: (execution: string) => string;
  /** Loads that share what one file may hold. */
  pages?: number;
}

const quantity = (n: number | null, unit: string): Text =>
  n === null ? { missing: 'not recorded' } : { n, unit };

function seriesOf(requests: readonly RequestSeen[], id: Latency, timed: boolean): Series[] {
  const points = (of: (one: RequestSeen) => boolean): Point[] =>
    requests.flatMap((one, index): Point[] =>
      of(one) && one[id] !== null ? [[timed ? one.sent_s! : index, one[id]]] : [],
    );
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
  return series.filter((one) => one.points.length > 0);
}

/** Why there is nothing, and what records it. */
export const noRequests = nothing(
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
