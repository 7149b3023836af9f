import { InferscopeError } from '../model/errors.js';

/**
 * An encoder-decoder model's encoder in a stage. encode: only the encoder runs. encode-and-decode: then the decoder,
 * too. first: the decoder runs with an empty cache, and computes keys and values of the source. cached: it reads them.
 */
export interface SourceShape {
  step: 'encode' | 'encode-and-decode' | 'first' | 'cached';
  /** Tokens of the encoder's output per sequence. */
  tokens: number;
}

/** Shape of one stage: of each sequence of the batch, or of the mean one. */
export interface StageShape {
  phase: 'prefill' | 'decode';
  batchSize: number;
  /** Tokens computed per sequence: the prompt (or a chunk of it) at prefill, 1 at decode; may be a fractional mean over prompts. */
  newTokens: number;
  /** Cached tokens per sequence; may be a fractional mean over sequences. */
  contextTokens: number;
  /** Encoder-decoder models only. The tokens above are the decoder's, and if only the encoder runs its own. */
  source?: SourceShape;
}

/** A request: an encoder-decoder model's prompt is its source. */
interface Generation {
  batchSize: number;
  inputLen: number;
  /** Tokens that the decode step reads after the prompt; an encoder-decoder model starts with one token. */
  generated: number;
}

/** Prefill of a prompt, or one decode step. An encoder-decoder model's prefill is its encoder and its decoder's first step. */
export function generationShape(
  { encoder }: { encoder?: unknown },
  phase: 'prefill' | 'decode',
  { batchSize, inputLen, generated }: Generation,
): StageShape {
  const isPrefill = phase === 'prefill';
  if (!encoder) {
    return isPrefill
      ? { phase, batchSize, newTokens: inputLen, contextTokens: 0 }
      : { phase, batchSize, newTokens: 1, contextTokens: inputLen + generated };
  }
  return {
    phase,
    batchSize,
    newTokens: 1,
    contextTokens: isPrefill ? 0 : 1 + generated,
    source: { step: isPrefill ? 'encode-and-decode' : 'cached', tokens: inputLen },
  };
}

/** A shape of several steps. */
export interface ShapeCount {
  shape: StageShape;
  steps: number;
}

/** Adds steps to the mean of those that are equal but for their context and the length of their source. */
export function addToMean(mean: ShapeCount, { shape, steps }: ShapeCount): void {
  mean.steps += steps;
  const share = steps / mean.steps;
  const { contextTokens, source } = mean.shape;
  const meanOf = (one: number, other: number): number => one + (other - one) * share;
  mean.shape = {
    ...mean.shape,
    contextTokens: meanOf(contextTokens, shape.contextTokens),
    ...(source &&
      shape.source && { source: { ...source, tokens: meanOf(source.tokens, shape.source.tokens) } }),
  };
}

/** @throws E_LENGTHS with the value */
export function checkShape({ batchSize, newTokens, contextTokens }: StageShape): void {
  const fail = (name: string, value: number, rule: string): never => {
    throw new InferscopeError('E_LENGTHS', {
      what: `impossible ${name}: ${value}`,
      why: `It must be ${rule}.`,
      fix: 'Give for example --batch-size 1 --input-len 128 --output-len 32.',
    });
  };
  if (!Number.isInteger(batchSize) || batchSize < 1) fail('batch size', batchSize, 'a whole number from 1');
  if (!Number.isFinite(newTokens) || newTokens < 1) fail('token count', newTokens, 'at least 1');
  if (!Number.isFinite(contextTokens) || contextTokens < 0)
    fail('context length', contextTokens, 'at least 0');
}

/**
 * Σ over the new tokens of the keys that each attends to, causally: token i of T sees min(cached + i + 1, window) keys.
 * Without a window that is T·C − T(T−1)/2 with C = cached + T. With chunks it sees the previous keys of its own chunk.
 */
export function attendedKeys(
  { newTokens: T, contextTokens: cached }: StageShape,
  window: number | null,
  chunked = false,
): number {
  if (chunked && window !== null) return keysInChunks(cached + T, window) - keysInChunks(cached, window);
  const full = T * (cached + T) - (T * (T - 1)) / 2;
  if (window === null || cached + T <= window) return full;
  // The first `growing` tokens see fewer keys than the window, the others exactly the window.
  const growing = Math.min(T, Math.max(0, Math.floor(window - cached)));
  return growing * cached + (growing * (growing + 1)) / 2 + (T - growing) * window;
}

/** Σ over the first n tokens of their position in their chunk, from 1. */
function keysInChunks(n: number, chunk: number): number {
  const remainder = n % chunk;
  return (Math.floor(n / chunk) * chunk * (chunk + 1)) / 2 + (remainder * (remainder + 1)) / 2;
}

/** Cached tokens per sequence that the stage reads: those that the first new token can still see. */
export function cachedKeysRead(
  { contextTokens }: StageShape,
  window: number | null,
  chunked = false,
): number {
  if (chunked && window !== null) return contextTokens % window;
  return window === null ? contextTokens : Math.min(contextTokens, window - 1);
}
