import type { LoadPlan, ServingPoint, Slo } from '../../model/documents/serving.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { meetsSlo } from '../../model/meets-slo.js';
import { mean } from '../../model/statistics.js';
import { distribution } from './distribution.js';
import type { RequestRow } from './requests.js';

const noAnswer = 'no counted request was answered';

/** All figures of one load. Failed requests are counted and never averaged in. */
export function servingPoint(
  { execution_id: id, load, client }: LoadPlan['points'][number],
  rows: readonly RequestRow[],
  slo: Slo | null,
  server: ReadonlyMap<string, { max: number; grown: number }>,
): ServingPoint {
  const measuredRequests = rows.filter((row) => row.warmup !== true && row.status !== 'cancelled');
  const ok = measuredRequests.filter((row) => row.status === 'ok');
  const startNs = Math.min(...measuredRequests.map((row) => row.sent_ns ?? row.scheduled_ns));
  const endNs = Math.max(...measuredRequests.map((row) => row.end_ns ?? row.sent_ns ?? row.scheduled_ns));
  const seconds = measuredRequests.length === 0 ? 0 : (endNs - startNs) / 1e9;
  return {
    execution_id: id,
    load,
    seconds,
    requests: {
      measured: measuredRequests.length,
      ok: ok.length,
      failed: measuredRequests.length - ok.length,
      cancelled: rows.filter((row) => row.status === 'cancelled').length,
      warmup: rows.filter((row) => row.warmup === true).length,
      failures: failuresOf(measuredRequests),
    },
    tokens: tokensOf(ok),
    latency: latencyOf(ok),
    throughput: {
      offered_requests_per_s: offeredRate(measuredRequests, load.kind),
      ...throughputOf(ok, seconds),
    },
    goodput: goodputOf(measuredRequests, slo, seconds, load.kind !== 'closed'),
    server: serverFigures(server),
    client,
  };
}

function failuresOf(rows: readonly RequestRow[]): ServingPoint['requests']['failures'] {
  const byKind = new Map<string, { kind: string; count: number; example: string | null }>();
  for (const { status, error } of rows) {
    if (status === 'ok') continue;
    const known = byKind.get(status) ?? { kind: status, count: 0, example: error };
    known.count++;
    byKind.set(status, known);
  }
  return [...byKind.values()].sort((x, y) => y.count - x.count);
}

function meanOf(values: (number | null)[], unit: string, source: string, absent: string): Figure {
  const known = values.filter((value) => value !== null);
  return known.length === 0
    ? missing('not_reported', absent)
    : figure(mean(known), unit, source, { n: known.length });
}

function tokensOf(ok: readonly RequestRow[]): ServingPoint['tokens'] {
  const countedTwice = ok.filter((row) => row.tokenizer_output_tokens !== null && row.output_tokens !== null);
  const differences = countedTwice.map((row) => row.tokenizer_output_tokens! - row.output_tokens!);
  const known = ok.filter((row) => row.cached_tokens !== null && row.input_tokens !== null);
  const cached = known.reduce((sum, row) => sum + row.cached_tokens!, 0);
  const input = known.reduce((sum, row) => sum + row.input_tokens!, 0);
  const countOutputs = (isCounted: (actual: number, requested: number) => boolean) =>
    ok.filter(
      (row) =>
        row.output_tokens !== null &&
        row.requested_output_tokens !== null &&
        isCounted(row.output_tokens, row.requested_output_tokens),
    ).length;
  const ifAnswered = (why: string) => (ok.length === 0 ? noAnswer : why);
  const uncounted = ifAnswered('neither usage nor a tokenizer counts tokens');
  return {
    input: meanOf(
      ok.map((row) => row.input_tokens),
      'tokens',
      'requests.input_tokens, mean',
      uncounted,
    ),
    output: meanOf(
      ok.map((row) => row.output_tokens),
      'tokens',
      'requests.output_tokens, mean',
      uncounted,
    ),
    shorter_outputs: countOutputs((actual, requested) => actual < requested),
    longer_outputs: countOutputs((actual, requested) => actual > requested),
    tokenizer_difference:
      countedTwice.length === 0
        ? missing('no_tokenizer', ifAnswered('no local tokenizer was given'))
        : figure(mean(differences), 'tokens', 'tokenizer_output_tokens − output_tokens, mean', {
            n: countedTwice.length,
          }),
    cached_share:
      input === 0
        ? missing('not_reported', ifAnswered('usage does not report cached tokens'))
        : figure(cached / input, 'ratio', 'Σ cached_tokens / Σ input_tokens', { n: known.length }),
    chunks_not_tokens: ok.filter((row) => row.itl_split === true || row.itl_ns === null).length,
  };
}

function latencyOf(ok: readonly RequestRow[]): ServingPoint['latency'] {
  const spread = (value: (row: RequestRow) => number | null, source: string, absent = noAnswer) => {
    const values = ok.map(value).filter((known) => known !== null);
    return distribution(
      values.map((ns) => ns / 1e6),
      'ms',
      source,
      ok.length === 0 ? noAnswer : absent,
    );
  };
  const gaps = ok.flatMap((row) => (row.itl_ns === null ? [] : (JSON.parse(row.itl_ns) as number[])));
  const difference = (to: number | null, from: number | null) =>
    to === null || from === null ? null : to - from;
  // A timer can fire early: waiting for the server never starts after sending.
  const dueNs = ({ scheduled_ns: scheduled, sent_ns: sent }: RequestRow) =>
    Math.min(scheduled, sent ?? scheduled);
  const uncounted = 'no request with two or more tokens had its tokens counted';
  return {
    ttft: spread((row) => row.ttft_ns, 'first_token_ns − sent_ns'),
    ttft_from_schedule: spread(
      (row) => difference(row.first_token_ns, dueNs(row)),
      'first_token_ns − least(scheduled_ns, sent_ns)',
    ),
    tpot: spread((row) => row.tpot_ns, '(end_ns − first_token_ns) / (output_tokens − 1)', uncounted),
    itl: distribution(
      gaps.map((ns) => ns / 1e6),
      'ms',
      'gaps between tokens, all requests',
      ok.length === 0 ? noAnswer : 'the number of tokens per chunk is not known',
    ),
    e2e: spread((row) => difference(row.end_ns, row.sent_ns), 'end_ns − sent_ns'),
    e2e_from_schedule: spread(
      (row) => difference(row.end_ns, dueNs(row)),
      'end_ns − least(scheduled_ns, sent_ns)',
    ),
  };
}

function offeredRate(counted: readonly RequestRow[], kind: string): Figure {
  if (kind === 'closed')
    return missing('closed_loop', 'in a closed loop the offered load equals the answered load');
  const span = ((counted.at(-1)?.scheduled_ns ?? 0) - (counted[0]?.scheduled_ns ?? 0)) / 1e9;
  if (!(span > 0)) return missing('no_values', 'requests were due at fewer than two times');
  return figure((counted.length - 1) / span, 'req/s', '(requests − 1) / (last due − first due)', {
    n: counted.length,
  });
}

type Rates = Omit<ServingPoint['throughput'], 'offered_requests_per_s'>;

function throughputOf(ok: readonly RequestRow[], seconds: number): Rates {
  if (ok.length === 0 || seconds === 0) {
    const none = missing('no_values', noAnswer);
    return { requests_per_s: none, output_tokens_per_s: none, total_tokens_per_s: none };
  }
  const sum = (value: (row: RequestRow) => number | null) =>
    ok.reduce<number | null>((total, row) => {
      const rowValue = value(row);
      return total === null || rowValue === null ? null : total + rowValue;
    }, 0);
  const rate = (total: number | null, source: string): Figure =>
    total === null
      ? missing('not_reported', 'the token counts of some requests are not known')
      : figure(total / seconds, 'tok/s', source, { n: ok.length });
  const output = sum((row) => row.output_tokens);
  const input = sum((row) => row.input_tokens);
  return {
    requests_per_s: figure(ok.length / seconds, 'req/s', 'answered requests / seconds', { n: ok.length }),
    output_tokens_per_s: rate(output, 'Σ output_tokens / seconds'),
    total_tokens_per_s: rate(
      output === null || input === null ? null : output + input,
      'Σ (input_tokens + output_tokens) / seconds',
    ),
  };
}

function goodputOf(
  counted: readonly RequestRow[],
  slo: Slo | null,
  seconds: number,
  openLoop: boolean,
): ServingPoint['goodput'] {
  if (slo === null || counted.length === 0 || seconds === 0) {
    const none = slo === null ? missing('no_slo', 'no --slo was given') : missing('no_values', noAnswer);
    return { requests_per_s: none, share: none, meets_slo: null };
  }
  const good = counted.filter((row) => meetsSlo(row, slo, openLoop)).length;
  const share = good / counted.length;
  return {
    requests_per_s: figure(good / seconds, 'req/s', 'requests within the SLO / seconds', {
      n: counted.length,
    }),
    share: figure(share, 'ratio', 'requests within the SLO / requests, failed ones included', {
      n: counted.length,
    }),
    meets_slo: share >= slo.share,
  };
}

function serverFigures(series: ReadonlyMap<string, { max: number; grown: number }>): ServingPoint['server'] {
  const absent = missing('not_reported', "not in the server's /metrics");
  const max = (name: string, unit: string): Figure => {
    const found = series.get(name);
    return found ? figure(found.max, unit, `largest ${name} while under load`) : absent;
  };
  const hits = series.get('prefix_cache_hits_total');
  const queries = series.get('prefix_cache_queries_total');
  const preempted = series.get('preemptions_total');
  return {
    requests_running_max: max('requests_running', 'requests'),
    requests_waiting_max: max('requests_waiting', 'requests'),
    kv_cache_usage_max: max('kv_cache_usage_ratio', 'ratio'),
    prefix_cache_hit_ratio:
      hits && queries && queries.grown > 0
        ? figure(hits.grown / queries.grown, 'ratio', 'growth of prefix_cache_hits_total / queries_total')
        : max('prefix_cache_hit_ratio', 'ratio'),
    preemptions: preempted ? figure(preempted.grown, 'requests', 'growth of preemptions_total') : absent,
  };
}
