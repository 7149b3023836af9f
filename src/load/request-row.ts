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
  seen: Exchange,
  keys: Pick<Row<'requests'>, 'execution_id' | 'capture_id' | 'host'>,
  originNs: number,
  count: TokenCounters,
): Row<'requests'> {
  const times = tokenTimes(seen, count.text);
  const at = (ns: number | null | undefined) => (ns === null || ns === undefined ? null : ns - originNs);
  return {
    ...keys,
    rank: 0,
    pid: process.pid,
    request_id: `${keys.execution_id ?? ''}-${seen.index}`,
    scheduled_ns: Math.round(seen.scheduled_ns - originNs),
    sent_ns: at(seen.sent_ns),
    first_byte_ns: at(seen.first_byte_ns),
    first_token_ns: at(seen.chunk_ns[0]),
    end_ns: at(seen.chunk_ns.at(-1)),
    input_tokens: times.input_tokens,
    output_tokens: times.output_tokens,
    status: seen.status,
    error: seen.error,
    warmup: seen.warmup,
    ttft_ns: times.ttft_ns,
    tpot_ns: times.tpot_ns,
    itl_ns: times.itl_ns === null ? null : JSON.stringify(times.itl_ns),
    itl_split: times.itl_split,
    chunks: seen.chunk_ns.length,
    requested_input_tokens: seen.requested_input_tokens,
    requested_output_tokens: seen.requested_output_tokens,
    tokenizer_input_tokens: count.prompt?.(seen.index) ?? null,
    tokenizer_output_tokens: times.tokenizer_output_tokens,
    cached_tokens: seen.usage?.cached_tokens ?? null,
    finish_reason: seen.finish_reason,
  };
}
