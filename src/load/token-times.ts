import type { Exchange } from './exchange.js';

/** Token times of a stream, ns. */
interface TokenTimes {
  ttft_ns: number | null;
  /** (last − first) / (n − 1); null for fewer than two tokens or an unknown count. */
  tpot_ns: number | null;
  /** Gaps between tokens; null if the number of tokens per chunk is unknown. */
  itl_ns: number[] | null;
  /** True when a chunk of k tokens was split into k equal gaps. */
  itl_split: boolean;
  input_tokens: number | null;
  output_tokens: number | null;
  tokenizer_output_tokens: number | null;
}

/**
 * @param count counts the tokens of a text with the model's tokenizer; null without one. A chunk is not a token: with
 * speculative decoding, or a server that flushes rarely, it has several. The number is known from usage in every chunk,
 * or if there are as many chunks as tokens; otherwise the gaps are unknown.
 */
export function tokenTimes(exchange: Exchange, count: ((text: string) => number) | null): TokenTimes {
  const { chunk_ns: chunks, usage, sent_ns: sent } = exchange;
  const local = count === null || exchange.text === '' ? null : count(exchange.text);
  const output = usage?.output_tokens ?? local;
  const first = chunks[0] ?? null;
  const last = chunks.at(-1) ?? null;
  const perChunk = tokensPerChunk(exchange, output);
  return {
    ttft_ns: first === null || sent === null ? null : first - sent,
    tpot_ns:
      first === null || last === null || output === null || output < 2 ? null : (last - first) / (output - 1),
    itl_ns: perChunk === null ? null : gaps(chunks, perChunk),
    itl_split: perChunk !== null && perChunk.some((tokens, index) => index > 0 && tokens > 1),
    input_tokens: usage?.input_tokens ?? exchange.requested_input_tokens,
    output_tokens: output,
    tokenizer_output_tokens: local,
  };
}

function tokensPerChunk(
  { chunk_ns: chunks, chunk_totals: totals }: Exchange,
  output: number | null,
): number[] | null {
  if (totals !== null && totals.length === chunks.length) {
    const counts = totals.map((total, index) => total - (totals[index - 1] ?? 0));
    // A decreasing total is invalid.
    return counts.every((tokens) => tokens >= 0) ? counts : null;
  }
  return output === chunks.length ? chunks.map(() => 1) : null;
}

function gaps(chunks: number[], perChunk: number[]): number[] {
  const all: number[] = [];
  for (let index = 1; index < chunks.length; index++) {
    const tokens = Math.max(1, perChunk[index]!);
    const gap = (chunks[index]! - chunks[index - 1]!) / tokens;
    for (let token = 0; token < tokens; token++) all.push(Math.round(gap));
  }
  return all;
}
