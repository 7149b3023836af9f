import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { Distribution, ServingPoint, ServingResult } from '../../model/documents/serving.js';
import type { Figure } from '../../model/figure.js';
import { formatMs, formatNumber, formatPercent, nbsp, noValue } from '../format.js';
import { colour } from './colour.js';
import { explainBrief } from './explain.js';
import { type TextColumn, textTable } from './table.js';
import { hanging, inert, readingWidth, textWidth, withPlainSpaces, wrap } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });
const number = (figure: Figure) => (figure.value === null ? noValue : formatNumber(figure.value));
const at = (spread: Distribution, statistic: 'p50' | 'p99' | 'mean') =>
  'p50' in spread ? formatMs(spread[statistic]) : noValue;

function loadWords({ load }: ServingPoint): string {
  if (load.rate_per_s === null) return `${load.concurrency} user${load.concurrency === 1 ? '' : 's'}`;
  const bound = load.concurrency === null ? '' : `, ≤${nbsp}${load.concurrency}`;
  return `${load.kind} ${formatNumber(load.rate_per_s)}/s${bound}`;
}

/** A row a load, in one table where the terminal is wide enough, else in two. */
function pointTables(points: readonly ServingPoint[], slo: boolean, width: number): string {
  const load: Column = [{ head: 'load', flexible: true }, loadWords];
  const rate = rateColumns(slo);
  const one = table([load, ...rate.counts, ...latencyColumns, ...rate.verdicts], points, Infinity);
  if (one.split('\n').every((line) => textWidth(line) <= width)) return one;
  return [
    [load, ...rate.counts, ...rate.verdicts],
    [load, ...latencyColumns],
  ]
    .map((columns) => table(columns, points, width))
    .join('\n\n');
}

type Column = [head: TextColumn, cell: (point: ServingPoint) => string];

const table = (columns: readonly Column[], points: readonly ServingPoint[], width: number): string =>
  textTable(
    columns.map(([head]) => head),
    points.map((point) => columns.map(([, cell]) => cell(point))),
    { width },
  );

function rateColumns(slo: boolean): { counts: Column[]; verdicts: Column[] } {
  const answered: Column = [
    right('ok'),
    ({ requests: { ok, failed } }) => `${ok}${failed === 0 ? '' : ` (${failed} failed)`}`,
  ];
  const rate: Column = [right('tok/s'), ({ throughput }) => number(throughput.output_tokens_per_s)];
  const within: Column = [
    right('within SLO'),
    ({ goodput: { share, meets_slo } }) => {
      const good = share.value === null ? noValue : formatPercent(share.value);
      return meets_slo ? colour.green(good) : good;
    },
  ];
  const bound: Column = [
    { head: 'client-bound' },
    ({ client }) => (client.bound ? colour.yellow('yes') : 'no'),
  ];
  return { counts: [answered, rate], verdicts: slo ? [within, bound] : [bound] };
}

const latencyColumns: Column[] = [
  [right('TTFT p50'), ({ latency }) => at(latency.ttft, 'p50')],
  [right('p99'), ({ latency }) => at(latency.ttft, 'p99')],
  [right('TPOT p50'), ({ latency }) => at(latency.tpot, 'p50')],
  [right('p99'), ({ latency }) => at(latency.tpot, 'p99')],
  [right('e2e p50'), ({ latency }) => at(latency.e2e, 'p50')],
  [right('p99'), ({ latency }) => at(latency.e2e, 'p99')],
];

function detail(point: ServingPoint): [string, string][] {
  const { latency, requests, tokens, client, server, load, throughput } = point;
  const named: [string, string][] = [];
  const spread = (one: Distribution) => {
    if (!('p50' in one)) return `${noValue} ${one.reason.text}`;
    const interval = one.ci95 === null ? '' : ` ±${nbsp}${formatNumber((one.ci95[1] - one.ci95[0]) / 2)}`;
    return `mean ${formatMs(one.mean)}${interval}, sd ${one.sd === null ? noValue : formatMs(one.sd)}, p90 ${formatMs(one.p90)}, p95 ${formatMs(one.p95)}, n${nbsp}=${nbsp}${one.n}`;
  };
  named.push(['TTFT', spread(latency.ttft)], ['TPOT', spread(latency.tpot)], ['ITL', spread(latency.itl)]);
  if (load.kind !== 'closed')
    named.push([
      'from schedule',
      `TTFT ${at(latency.ttft_from_schedule, 'p50')} p50, ${at(latency.ttft_from_schedule, 'p99')} p99; e2e ${at(latency.e2e_from_schedule, 'p99')} p99 (waits before sending count)`,
    ]);
  named.push([
    'requests',
    `${requests.counted} counted, ${requests.warmup} warm-up left out, ${number(throughput.requests_per_s)}/s; tokens in ${number(tokens.input)}, out ${number(tokens.output)}`,
  ]);
  for (const { kind, count, example } of requests.failures)
    named.push(['failed', `${count} ${kind}${example ? `: ${inert(example).slice(0, 200)}` : ''}`]);
  const lag = client.send_lag_p99_ms === null ? noValue : formatMs(client.send_lag_p99_ms);
  named.push([
    'client',
    `send lag p99 ${lag}, event loop late ${formatMs(client.event_loop_delay_p99_ms)} p99, busy ${formatPercent(client.event_loop_utilization)}, ${client.threads} thread${client.threads === 1 ? '' : 's'}, ${formatNumber(client.process_cores, 2)} cores`,
  ]);
  if (server.requests_running_max.value !== null) {
    const kv =
      server.kv_cache_usage_max.value === null
        ? ''
        : `, KV cache ${formatPercent(server.kv_cache_usage_max.value)}`;
    named.push([
      'server',
      `at most ${number(server.requests_running_max)} running, ${number(server.requests_waiting_max)} waiting${kv}`,
    ]);
  }
  return named;
}

/** What `inferscope bench serve` prints: sentences and the waterfall of a request, a row a load, the answers, the client's own health. */
export function servingSummary(
  document: Document<ServingResult>,
  { width: columns, explain = null }: { width: number; explain?: Document<ExplainResult> | null },
): string {
  const width = readingWidth(columns);
  const { target, prompts, points, saturation, best_under_slo: best, slo, probe, session } = document.data;
  const unit = prompts.tokenizer === null ? 'words' : 'tokens';
  const title = [
    `inferscope${nbsp}${document.tool_version}`,
    'bench serve',
    inert(target.model),
    inert(target.server ?? 'OpenAI-compatible server'),
    `${prompts.input_len} ${unit} → ${prompts.output_len} tokens`,
    `seed ${prompts.seed}`,
  ].join(' · ');
  const lines = [
    ...wrap(title, width),
    ...(explain ? ['', explainBrief(explain, width)] : []),
    '',
    pointTables(points, slo !== null, width),
    '',
  ];
  const answer = (text: string) => lines.push(...hanging('  ', text, width));
  if (points.length > 1 || saturation.execution_id !== null) answer(saturation.text);
  if (best) answer(best.text);
  if (probe?.caches_prefixes)
    answer(
      `The server caches prefixes: a repeated prompt had its first token after ${formatMs(probe.repeated_ttft_ms ?? 0)} instead of ${formatMs(probe.ttft_ms ?? 0)}. Prompts of the loads are fresh.`,
    );
  const last = points.at(-1);
  if (last) {
    if (lines.at(-1) !== '') lines.push('');
    lines.push(`  ${colour.bold(loadWords(last))}`);
    for (const [name, text] of detail(last)) lines.push(...hanging(`    ${name.padEnd(14)}`, text, width));
  }
  if (document.issues.length > 0) lines.push('');
  for (const { severity, text } of document.issues)
    lines.push(...hanging(`  ${severity}: `, inert(text), width));
  lines.push('', `  Session ${session.id}`);
  return withPlainSpaces(lines.join('\n'));
}
