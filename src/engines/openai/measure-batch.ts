import type { BenchPoint } from '../../model/bench.js';
import { mean, median } from '../../model/statistics.js';
import { type ClientVerdict, clientVerdict } from '../../load/client-verdict.js';
import { monotonicNs } from '../../model/clock.js';
import type { Exchange } from '../../load/exchange.js';
import { failureWords } from '../../load/failure-kind.js';
import { makePrompt, type PromptTokenizer } from '../../load/prompts.js';
import type { Random } from '../../model/random.js';
import { runPoint } from '../../load/run-point.js';
import type { LoadTarget } from '../../load/target.js';
import { tokenTimes } from '../../load/token-times.js';
import { plural } from '../../vocabulary/format.js';

/** Times are CLOCK_MONOTONIC, ns. */
export interface Batch {
  /** First send of its streams. */
  begin_ns: number;
  /** begin_ns + the mean over the streams of (first content − its send time). */
  first_token_ns: number;
  /** Last content of its streams. */
  end_ns: number;
  /** Mean over the streams of (last − first content) / (tokens − 1); null for one token. */
  tpot_ns: number | null;
  /** Prompt tokens per stream as counted by the server, if all counts are equal. */
  input_tokens: number | null;
  /** Prompt tokens from the server's prefix cache, over all streams; null if not reported. */
  cached_tokens: number | null;
  client: ClientVerdict;
}

type BatchOutcome = { batch: Batch } | { outcome: 'out_of_memory' | 'failed' | 'stopped'; text: string };

/**
 * One batch: one stream per sequence, started together, each with a fresh prompt. Never rejects for a server's error.
 */
export async function measureBatch(
  target: LoadTarget,
  { batch_size, input_len, output_len }: BenchPoint,
  random: Random,
  tokenizer: PromptTokenizer | undefined,
  signal: AbortSignal,
): Promise<BatchOutcome> {
  const requests = Array.from({ length: batch_size }, (_, index) => {
    const prompt = makePrompt(input_len, random, tokenizer);
    return {
      index,
      prompt: prompt.text,
      input_tokens: prompt.tokens,
      output_tokens: output_len,
      warmup: false,
      due_ns: null,
    };
  });
  const { exchanges, health } = await runPoint(
    {
      target,
      requests,
      concurrency: batch_size,
      loop: 'closed',
      ramp_s: 0,
      seconds: Number.POSITIVE_INFINITY,
      begin_ns: monotonicNs(),
    },
    { signal },
  );
  if (signal.aborted) return { outcome: 'stopped', text: 'stopped by the user' };
  const failure = batchFailure(exchanges, output_len, tokenizer);
  if (failure) return failure;
  const ttfts = exchanges.map(({ chunk_ns, sent_ns }) => chunk_ns[0]! - sent_ns!);
  const lags = exchanges
    .map(({ dispatched_ns, scheduled_ns }) => (dispatched_ns - scheduled_ns) / 1e6)
    .sort((x, y) => x - y);
  return {
    batch: {
      ...batchTimes(exchanges, output_len),
      input_tokens: commonValue(exchanges.map(({ usage }) => usage?.input_tokens ?? null)),
      cached_tokens: sumOfKnown(exchanges.map(({ usage }) => usage?.cached_tokens ?? null)),
      client: clientVerdict([health], lags, median(ttfts) / 1e6),
    },
  };
}

/** @param exchanges complete ones of equal length */
export function batchTimes(
  exchanges: readonly Pick<Exchange, 'sent_ns' | 'chunk_ns'>[],
  outputLen: number,
): Pick<Batch, 'begin_ns' | 'first_token_ns' | 'end_ns' | 'tpot_ns'> {
  const begin_ns = Math.min(...exchanges.map(({ sent_ns }) => sent_ns!));
  return {
    begin_ns,
    first_token_ns:
      begin_ns + Math.round(mean(exchanges.map(({ chunk_ns, sent_ns }) => chunk_ns[0]! - sent_ns!))),
    end_ns: Math.max(...exchanges.map(({ chunk_ns }) => chunk_ns.at(-1)!)),
    tpot_ns:
      outputLen > 1
        ? mean(exchanges.map(({ chunk_ns }) => (chunk_ns.at(-1)! - chunk_ns[0]!) / (outputLen - 1)))
        : null,
  };
}

/** A batch counts only if every stream is complete and of the requested length; otherwise it is another workload. */
function batchFailure(
  exchanges: readonly Exchange[],
  outputLen: number,
  tokenizer: PromptTokenizer | undefined,
): Exclude<BatchOutcome, { batch: Batch }> | null {
  const failed = exchanges.filter(({ status }) => status !== 'ok');
  const [first] = failed;
  if (first) {
    const text = `${failed.length} of ${exchanges.length} streams failed: ${failureWords(first.status)}${first.error ? `: ${first.error}` : ''}`;
    return { outcome: /out of memory|OutOfMemory/i.test(text) ? 'out_of_memory' : 'failed', text };
  }
  const count = tokenizer ? (text: string) => tokenizer.encode(text).length : null;
  const lengths = exchanges.map(
    (exchange) => exchange.usage?.output_tokens ?? tokenTimes(exchange, count).output_tokens,
  );
  if (lengths.some((length) => length === null)) {
    return {
      outcome: 'failed',
      text: 'the server reports no usage and there is no tokenizer, so the number of tokens is unknown: add --engine-arg tokenizer=PATH',
    };
  }
  const mismatch = exchanges.findIndex((_, index) => lengths[index] !== outputLen);
  if (mismatch < 0) return null;
  const { finish_reason: reason } = exchanges[mismatch]!;
  const ended = reason === null ? '' : ` (finish_reason ${reason})`;
  const why =
    lengths[mismatch]! < outputLen
      ? 'it does not support ignore_eos, or its context is too short'
      : 'it ignores max_tokens';
  return {
    outcome: 'failed',
    text: `a stream had ${plural(lengths[mismatch]!, 'token')}, not the requested ${outputLen}${ended}: ${why}`,
  };
}

function commonValue(values: readonly (number | null)[]): number | null {
  return values.every((value) => value === values[0]) ? (values[0] ?? null) : null;
}

function sumOfKnown(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>((sum, value) => (value === null ? sum : (sum ?? 0) + value), null);
}
