import { argmax } from '../sampling.js';
import type { TextTokenizer } from '../tokenizer.js';
import type { DecoderThread } from './decoder-thread.js';
import { detokenizer } from './detokenizer.js';
import { sampler } from './temperature.js';

export interface GenerationRequest {
  prompt: number[];
  maxTokens: number;
  /** 0 is greedy. */
  temperature: number;
  seed: number;
  stop: readonly string[];
  ignoreEos: boolean;
  /** Aborted when the client no longer waits for the answer. */
  signal: AbortSignal;
}

type FinishReason = 'stop' | 'length' | 'abort';

export interface Generated {
  text: string;
  tokens: number;
  finishReason: FinishReason;
}

/** Counters and gauges of /metrics. Seconds and tokens. */
export interface GenerationMetrics {
  running: number;
  waiting: number;
  /** Tokens in the KV cache of the running request; 0 without one. */
  contextTokens: number;
  promptTokens: number;
  generationTokens: number;
  finished: Record<FinishReason, number>;
  /** From the arrival of a request, including queue time. */
  ttft: { count: number; sum: number };
  queueTime: { count: number; sum: number };
  /** From the start of the prefill to the first token. */
  prefill: { count: number; sum: number };
  e2e: { count: number; sum: number };
}

export interface GenerationQueue {
  /** @param onText called with each piece of text when its token is computed; not called for empty pieces */
  generate(request: GenerationRequest, onText: (text: string) => void): Promise<Generated>;
  metrics: GenerationMetrics;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}

/**
 * Requests run one after the other, in arrival order: the decoder has one KV cache, so there is no batching, and a
 * second request waits for the whole answer of the first. It counts from its arrival, because this thread accepts requests
 * while the decoder's computes.
 */
export function generationQueue(
  decoder: Pick<DecoderThread, 'prefill' | 'decode'>,
  tokenizer: TextTokenizer,
  eosTokens: readonly number[],
): GenerationQueue {
  const metrics: GenerationMetrics = {
    running: 0,
    waiting: 0,
    contextTokens: 0,
    promptTokens: 0,
    generationTokens: 0,
    finished: { stop: 0, length: 0, abort: 0 },
    ttft: { count: 0, sum: 0 },
    queueTime: { count: 0, sum: 0 },
    prefill: { count: 0, sum: 0 },
    e2e: { count: 0, sum: 0 },
  };
  const eos = new Set(eosTokens);
  let tail: Promise<void> = Promise.resolve();

  async function run(
    request: GenerationRequest,
    arrived: number,
    onText: (text: string) => void,
  ): Promise<Generated> {
    const pick = request.temperature > 0 ? sampler(request.temperature, request.seed) : greedy;
    const pieces = detokenizer(tokenizer, request.stop);
    let text = '';
    let tokens = 0;
    let finishReason: FinishReason = 'abort';
    const emit = (piece: string) => {
      if (piece === '') return;
      text += piece;
      onText(piece);
    };
    if (!request.signal.aborted) {
      observe(metrics.queueTime, arrived);
      const started = performance.now();
      metrics.promptTokens += request.prompt.length;
      let token = pick(await decoder.prefill(request.prompt, request.prompt.length + request.maxTokens));
      for (;;) {
        metrics.contextTokens = request.prompt.length + tokens;
        tokens++;
        metrics.generationTokens++;
        if (tokens === 1) {
          observe(metrics.ttft, arrived);
          observe(metrics.prefill, started);
        }
        if (!request.ignoreEos && eos.has(token)) {
          finishReason = 'stop';
          break;
        }
        emit(pieces.push(token));
        if (pieces.stopped()) finishReason = 'stop';
        else if (tokens === request.maxTokens) finishReason = 'length';
        if (finishReason !== 'abort') break;
        if (request.signal.aborted) break;
        token = pick(await decoder.decode(token));
      }
    }
    if (finishReason !== 'abort') emit(pieces.flush());
    metrics.finished[finishReason]++;
    observe(metrics.e2e, arrived);
    return { text, tokens, finishReason };
  }

  return {
    metrics,
    idle: () => tail,
    async generate(request, onText) {
      const arrived = performance.now();
      const before = tail;
      let release = () => {};
      tail = new Promise<void>((resolve) => {
        release = resolve;
      });
      metrics.waiting++;
      await before;
      metrics.waiting--;
      metrics.running++;
      try {
        return await run(request, arrived, onText);
      } finally {
        metrics.running--;
        metrics.contextTokens = 0;
        release();
      }
    },
  };
}

function greedy(logits: Float32Array): number {
  return argmax(logits, 1)[0]!;
}

function observe(series: { count: number; sum: number }, sinceMs: number): void {
  series.count++;
  series.sum += (performance.now() - sinceMs) / 1000;
}
