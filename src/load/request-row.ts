import type { Row } from '../model/tables.js';
import type { Exchange } from './exchange.js';
import { tokenTimes } from './token-times.js';

/** Counts tokens with the model's own tokenizer. */
interface TokenCounters {
  prompt: ((index: number) => number | null) | null;
  text: ((text: string) => number) | null;
}

/**
 * A row of `requests`.
 * @param originNs CLOCK_MONOTONIC of the session's time 0
 */
export function requestRow(
  exchange: Exchange,
  keys: Pick<Row<'requests'>, 'execution_id' | 'capture_id' | 'host'>,
  originNs: number,
  count: TokenCounters,
): Row<'requests'> {
  const times = tokenTimes(exchange, count.text);
  const sessionNs = (ns: number | null | undefined) =>
    ns === null || ns === undefined ? null : ns - originNs;
  return {
    ...keys,
    rank: 0,
    pid: process.pid,
    request_id: `${keys.execution_id ?? ''}-${exchange.index}`,
    scheduled_ns: Math.round(exchange.scheduled_ns - originNs),
    sent_ns: sessionNs(exchange.sent_ns),
    first_byte_ns: sessionNs(exchange.first_byte_ns),
    first_token_ns: sessionNs(exchange.chunk_ns[0]),
    end_ns: sessionNs(exchange.chunk_ns.at(-1)),
    input_tokens: times.input_tokens,
    output_tokens: times.output_tokens,
    status: exchange.status,
    error: exchange.error,
    warmup: exchange.warmup,
    ttft_ns: times.ttft_ns,
    tpot_ns: times.tpot_ns,
    itl_ns: times.itl_ns === null ? null : JSON.stringify(times.itl_ns),
    itl_split: times.itl_split,
    chunks: exchange.chunk_ns.length,
    requested_input_tokens: exchange.requested_input_tokens,
    requested_output_tokens: exchange.requested_output_tokens,
    tokenizer_input_tokens: count.prompt?.(exchange.index) ?? null,
    tokenizer_output_tokens: times.tokenizer_output_tokens,
    cached_tokens: exchange.usage?.cached_tokens ?? null,
    finish_reason: exchange.finish_reason,
  };
}
