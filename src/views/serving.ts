import type { Document } from '../model/document.js';
import type { Distribution, ServingPoint, ServingResult } from '../model/documents/serving.js';
import type { Figure } from '../model/figure.js';
import { loadLabel, sloLabel } from '../vocabulary/loads.js';
import type { Block, Column, Section, Text, View } from './block.js';
import { clientSection, failureSections, serverSection, tokenSection } from './serving-health.js';
import { latencySection, throughputSection } from './serving-latency.js';
import { byLoad } from './serving-series.js';
import { plural, noValue } from '../vocabulary/format.js';
import { lengthWords } from '../vocabulary/workload.js';

/** A load test: what a server sustains, with which latency, and whether the client was fast enough to measure it. */
export function servingView(document: Document<ServingResult>): View {
  const { data, issues } = document;
  const points = byLoad(data);
  return {
    command: 'bench serve',
    title: data.session.title,
    document,
    session: data.session,
    lead: [
      { type: 'text', level: 2, text: identity(data) },
      { type: 'facts', terminal: false, items: answers(data) },
      { type: 'facts', level: 2, items: doubts(data, points) },
      { type: 'cards', level: 3, cards: cards(points) },
      { type: 'issues', issues },
    ],
    sections: [
      {
        id: 'loads',
        title: 'Loads',
        requested: true,
        // In the terminal with the table, which a summary never leaves out.
        blocks: [{ type: 'facts', pages: false, items: answers(data) }, loadTable(points, data.slo !== null)],
      },
      ...failureSections(points),
      latencySection(data, points),
      throughputSection(data, points),
      serverSection(data, points),
      tokenSection(points),
      clientSection(points),
      setupSection(data),
      definitions,
    ],
  };
}

/** "http://…/v1 · 128 words in + 64 out tokens · seed 7" */
function identity({ target, prompts, session }: ServingResult): Text {
  const { input_len: input, output_len: output, tokenizer, seed } = prompts;
  const lengths =
    input === null && output === null
      ? []
      : [
          tokenizer === null && input !== null
            ? `${plural(input, 'word')} in + ${output ?? noValue} out tokens`
            : lengthWords(input, output),
        ];
  return [
    target.url,
    ...lengths,
    `seed ${seed}`,
    ...(session.status === 'complete' ? [] : [session.status]),
  ].join(' · ');
}

function answers({ saturation, best_under_slo: best }: ServingResult): { name: string; text: Text }[] {
  return [{ name: 'Saturation', text: saturation.text }, ...(best ? [{ name: 'SLO', text: best.text }] : [])];
}

/** Doubts about the figures; a summary has a column of client-bound loads and one of failures instead, if there are any. */
function doubts({ probe }: ServingResult, points: readonly ServingPoint[]): { name: string; text: Text }[] {
  return [
    { name: 'Client-bound', text: clientAnswer(points) },
    { name: 'Failures', text: failureAnswer(points) },
    ...(probe?.caches_prefixes
      ? [
          {
            name: 'Prefix cache',
            text: [
              'The server answers a repeated prompt from its cache: first token after ',
              ms(probe.repeated_ttft_ms),
              ' instead of ',
              ms(probe.ttft_ms),
              '. Load prompts are new, so they do not hit it.',
            ] as Text,
          },
        ]
      : []),
  ];
}

/** Whether the server or our client limits the figures. */
function clientAnswer(points: readonly ServingPoint[]): Text {
  const bound = points.filter(({ client }) => client.bound);
  if (points.length === 0) return 'No load was measured.';
  if (bound.length === 0) return 'No: the load generator kept up at every load level.';
  const which =
    bound.length === points.length ? 'every load' : bound.map(({ load }) => loadLabel(load)).join(', ');
  return `Yes, at ${which}: these latencies include its delays.`;
}

function failureAnswer(points: readonly ServingPoint[]): Text {
  const failed = points.reduce((sum, { requests }) => sum + requests.failed, 0);
  const all = points.reduce((sum, { requests }) => sum + requests.measured, 0);
  return failed === 0
    ? ['None of ', { count: all }, ' measured requests failed.']
    : [
        { count: failed },
        ' of ',
        { count: all },
        ' measured requests failed; they are excluded from latencies.',
      ];
}

const ms = (n: number | null) => (n === null ? { missing: 'not measured' } : { n, unit: 'ms' });

const highest = (points: readonly ServingPoint[], figureOf: (point: ServingPoint) => Figure) =>
  points
    .filter((point) => figureOf(point).value !== null)
    .toSorted((a, b) => figureOf(b).value! - figureOf(a).value!)
    .at(0);

/** Latency of the lowest load, throughput of the best load. */
function cards(points: readonly ServingPoint[]): { label: string; value: Text; note: Text }[] {
  const [lowestLoad] = points;
  if (!lowestLoad) return [];
  const latency = (label: string, distribution: Distribution) =>
    'value' in distribution
      ? []
      : [
          {
            label,
            value: ms(distribution.p50),
            note: [`${loadLabel(lowestLoad.load)}; p99 `, ms(distribution.p99)] as Text,
          },
        ];
  const fastest = highest(points, ({ throughput }) => throughput.output_tokens_per_s);
  const best = highest(points, ({ goodput }) => goodput.requests_per_s);
  return [
    ...latency('TTFT, median', lowestLoad.latency.ttft),
    ...latency('TPOT, median', lowestLoad.latency.tpot),
    ...(fastest
      ? [
          {
            label: 'Highest output rate',
            value: { figure: fastest.throughput.output_tokens_per_s },
            note: loadLabel(fastest.load),
          },
        ]
      : []),
    ...(best
      ? [
          {
            label: 'Highest goodput',
            value: { figure: best.goodput.requests_per_s },
            note: [`${loadLabel(best.load)}; `, { figure: best.goodput.share }, ' within the SLO'] as Text,
          },
        ]
      : []),
  ];
}

const withoutUnit = (figure: Figure): Text =>
  figure.value === null ? { figure } : { n: figure.value, unit: figure.unit, bare: true };

interface LoadColumn extends Column {
  cell: (point: ServingPoint) => Text;
}

const latencyColumn = (
  metric: 'ttft' | 'tpot' | 'e2e',
  name: string,
  percentile: 'p50' | 'p99',
  drop: number,
): LoadColumn => ({
  id: `${metric}_${percentile}_ms`,
  head: `${name} ${percentile}`,
  numeric: true,
  drop,
  cell: ({ latency }) => percentileText(latency[metric], percentile),
});

const percentileText = (distribution: Distribution, name: 'p50' | 'p99'): Text =>
  'value' in distribution ? { missing: distribution.reason.text } : { n: distribution[name], unit: 'ms' };

/** One row per load; latencies are over successful measured requests. */
function loadTable(points: readonly ServingPoint[], slo: boolean): Block {
  const columns: LoadColumn[] = [
    { id: 'load', head: 'load', cell: ({ load }) => loadLabel(load) },
    { id: 'ok', head: 'ok', numeric: true, cell: ({ requests }) => ({ count: requests.ok }) },
    ...(points.some(({ requests }) => requests.failed > 0) ? [failedColumn] : []),
    ...(slo ? sloColumns : []),
    // Never dropped: such a row does not describe the server.
    ...(points.some(({ client }) => client.bound) ? [clientBoundColumn] : []),
    {
      id: 'requests_per_s',
      head: 'req/s',
      numeric: true,
      drop: 0,
      cell: ({ throughput }) => withoutUnit(throughput.requests_per_s),
    },
    {
      id: 'output_tokens_per_s',
      head: 'tok/s',
      numeric: true,
      cell: ({ throughput }) => withoutUnit(throughput.output_tokens_per_s),
    },
    latencyColumn('ttft', 'TTFT', 'p50', 7),
    latencyColumn('ttft', 'TTFT', 'p99', 6),
    latencyColumn('tpot', 'TPOT', 'p50', 8),
    latencyColumn('tpot', 'TPOT', 'p99', 5),
    latencyColumn('e2e', 'e2e', 'p50', 1),
    latencyColumn('e2e', 'e2e', 'p99', 4),
  ];
  return {
    type: 'table',
    title:
      'Latencies from sending a request, over the measured requests that succeeded; tok/s are output tokens',
    reasons: true,
    columns,
    rows: points.map((point) => ({ cells: columns.map(({ cell }) => cell(point)) })),
    brief: 8,
  };
}

const failedColumn: LoadColumn = {
  id: 'failed',
  head: 'failed',
  numeric: true,
  cell: ({ requests }) =>
    requests.failed > 0 ? { text: String(requests.failed), tone: 'fault' } : { count: 0 },
};

const clientBoundColumn: LoadColumn = {
  id: 'client_bound',
  head: 'client-bound',
  cell: ({ client }) => (client.bound ? { text: 'yes', tone: 'fault' } : 'no'),
};

const sloColumns: readonly LoadColumn[] = [
  {
    id: 'within_slo_share',
    head: 'in SLO',
    numeric: true,
    cell: ({ goodput }) => ({ figure: goodput.share }),
  },
  {
    id: 'meets_slo',
    head: 'meets SLO',
    drop: 2,
    cell: ({ goodput: { meets_slo: meets } }) =>
      meets === null ? { missing: 'no request was measured' } : meets ? 'yes' : { text: 'no', tone: 'fault' },
  },
];

function setupSection({ target, prompts, slo, probe }: ServingResult): Section {
  const length = (count: number | null, unit: string): Text =>
    count === null ? 'varies per request' : { count, unit };
  return {
    id: 'setup',
    title: 'Target and prompts',
    level: 2,
    blocks: [
      {
        type: 'facts',
        items: [
          { name: 'endpoint', text: `${target.url} (${target.api})` },
          { name: 'model', text: target.model },
          { name: 'server', text: target.server ?? 'unknown: no known /metrics page' },
          {
            name: 'prompt',
            text: length(prompts.input_len, prompts.tokenizer === null ? 'words' : 'tokens, exact'),
          },
          { name: 'output', text: length(prompts.output_len, 'tokens requested') },
          {
            name: 'seed',
            text: `${prompts.seed}${prompts.seed_used_before ? ', used before: prompts may be cached' : ''}`,
          },
          { name: 'SLO', text: slo ? sloLabel(slo) : 'none' },
          ...(probe ? [{ name: 'probe before the loads', text: probeText(probe) }] : []),
        ],
      },
    ],
  };
}

const probeText = (probe: NonNullable<ServingResult['probe']>): Text => [
  'first token after ',
  ms(probe.ttft_ms),
  ', the same prompt again after ',
  ms(probe.repeated_ttft_ms),
  probe.caches_prefixes === null
    ? ''
    : probe.caches_prefixes
      ? ', it caches prefixes'
      : ', no prefix cache seen',
  probe.usage ? ', usage is reported' : ', usage is not reported',
];

/** Definitions of the figures on the page. */
const meanings: readonly [name: string, text: string][] = [
  ['TTFT', 'Request sent to the first chunk with generated text.'],
  ['TPOT', '(last − first chunk) / (output tokens − 1) per request; not defined below two tokens.'],
  ['ITL', 'Every gap between tokens; a chunk of k tokens counts as k gaps.'],
  ['End to end', 'Request sent to the last chunk with content.'],
  [
    'From schedule',
    'Open loop: from the scheduled send time, so client queueing is included (no coordinated omission).',
  ],
  [
    'Closed, open',
    'Closed-loop users wait for each response; an open loop sends at planned times regardless of the server.',
  ],
  ['Goodput', 'Requests per second that met all SLO limits.'],
  [
    '95 % interval',
    'Interval of the mean, from the means of ten consecutive batches of requests; none below 20 requests.',
  ],
  ['Percentiles, sd', 'Linear between order statistics (type 7); the sample standard deviation (n − 1).'],
  [
    'Client-bound',
    'The load generator, not the server, was the limit: it sent late, or its event loop was busy.',
  ],
];

const definitions: Section = {
  id: 'definitions',
  title: 'Definitions',
  level: 3,
  blocks: [{ type: 'facts', items: meanings.map(([name, text]) => ({ name, text })) }],
};
