import { InferscopeError } from '../model/errors.js';
import type { Probe } from '../model/documents/serving.js';
import { median } from '../model/statistics.js';
import { monotonicNs } from '../model/clock.js';
import type { Exchange } from './exchange.js';
import { failureWords, tlsFix } from './failure-kind.js';
import { makePrompt, type PromptTokenizer } from './prompts.js';
import type { Random } from '../model/random.js';
import { runPoint } from './run-point.js';
import type { LoadTarget } from './target.js';

/** A repeat below this share of a fresh prompt's time came from a prefix cache. */
const cachedBelow = 0.5;
/** Smaller differences are noise of the connection. */
const cachedMs = 5;
/** Number of fresh prompts and repeats that must agree, because one slow answer may be noise. */
const pairs = 3;

/**
 * Requests before any load: a fresh prompt (which warms up connection and server), then another one twice. Checks that
 * the server answers as requested. If the repeat was faster, the pair is repeated: a prefix cache is reported only if
 * all repeats were faster than all fresh prompts, or usage counts cached tokens.
 * @throws E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_INTERRUPTED if one of them fails
 */
export async function probeServer(
  target: LoadTarget,
  shape: { inputLen: number; outputLen: number },
  random: Random,
  tokenizer: PromptTokenizer | undefined,
  signal: AbortSignal,
): Promise<Probe> {
  let index = 0;
  async function sendProbe(prompt: ReturnType<typeof makePrompt>): Promise<Exchange> {
    const request = {
      index: index++,
      prompt: prompt.text,
      input_tokens: prompt.tokens,
      output_tokens: Math.min(shape.outputLen, 4),
      warmup: true,
      due_ns: null,
    };
    const plan = { target, requests: [request], concurrency: 1, loop: 'closed' as const, ramp_s: 0 };
    const { exchanges } = await runPoint(
      { ...plan, seconds: Number.POSITIVE_INFINITY, begin_ns: monotonicNs() },
      { signal },
    );
    const first = exchanges[0];
    if (first === undefined) throw stoppedEarly();
    if (first.status !== 'ok') throw probeFailure(first, target);
    return first;
  }
  const newPrompt = () => makePrompt(shape.inputLen, random, tokenizer);
  const ttft = (exchange: Exchange) => (exchange.chunk_ns[0]! - exchange.sent_ns!) / 1e6;
  const { usage } = await sendProbe(newPrompt());
  const freshMs: number[] = [];
  const repeatMs: number[] = [];
  let cached: number | null = null;
  do {
    const prompt = newPrompt();
    freshMs.push(ttft(await sendProbe(prompt)));
    const repeat = await sendProbe(prompt);
    repeatMs.push(ttft(repeat));
    cached = repeat.usage?.cached_tokens ?? null;
  } while ((cached ?? 0) === 0 && repeatMs.length < pairs && allFaster(repeatMs, freshMs));
  return {
    ttft_ms: median(freshMs),
    repeated_ttft_ms: median(repeatMs),
    repeated_cached_tokens: cached,
    caches_prefixes: (cached ?? 0) > 0 || allFaster(repeatMs, freshMs),
    usage: usage !== null && usage.output_tokens !== null,
  };
}

/** Whether the slowest repeat was clearly faster than the fastest fresh prompt. */
export function allFaster(repeatMs: readonly number[], freshMs: readonly number[]): boolean {
  const [slowest, fastest] = [Math.max(...repeatMs), Math.min(...freshMs)];
  return slowest < fastest * cachedBelow && fastest - slowest > cachedMs;
}

export function stoppedEarly(): InferscopeError {
  return new InferscopeError('E_INTERRUPTED', {
    what: 'stopped before any load',
    why: 'There is nothing to keep yet, so no session was made.',
    fix: 'Run it again.',
  });
}

function probeFailure({ status, error }: Exchange, target: LoadTarget): InferscopeError {
  const url = `${target.baseUrl}/${target.api === 'chat' ? 'chat/completions' : 'completions'}`;
  const serverText = error ? `: ${error.replace(/\s+/g, ' ').trim()}` : '';
  if (status === 'cancelled') return stoppedEarly();
  if (status === 'connect' || status === 'tls' || status === 'disconnected' || status === 'timeout') {
    return new InferscopeError('E_SERVER_UNREACHABLE', {
      what: `no answer from ${url}`,
      why: `${failureWords(status)}${serverText}`,
      fix: {
        connect: 'Start the server, or check host and port. `inferscope serve` starts one to try.',
        tls: tlsFix,
        disconnected: "Look at the server's log; it closed the connection.",
        timeout: 'Raise --timeout, or look whether the server hangs.',
      }[status],
    });
  }
  const otherApi = target.api === 'chat' ? 'completions' : 'chat';
  const fixes: Record<string, string> = {
    http_401: 'Set OPENAI_API_KEY (or INFERSCOPE_API_KEY) to a key of this server.',
    http_403: 'Set OPENAI_API_KEY (or INFERSCOPE_API_KEY) to a key that may use this model.',
    http_404: `Check the URL (it ends in /v1 for most servers) and --model, or try --api ${otherApi}.`,
    http_429: 'Wait, or ask for a higher limit: a load test would only measure the limiter.',
    not_streamed: 'Check that the server (or the gateway before it) can stream.',
    empty: 'Check --model and --output-len: the answer held no text.',
  };
  return new InferscopeError('E_SERVER_RESPONSE', {
    what: `unexpected response from ${url}`,
    why: `${failureWords(status)}${serverText}`,
    fix: fixes[status] ?? "Look at the server's log, and try one request with curl.",
  });
}
