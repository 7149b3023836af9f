import { bytesPerElement } from '../model/dtype.js';
import type { Architecture, Layer } from './architecture.js';
import { kvElementsPerToken } from './kv-cache.js';
import { forwardTensors, hasRotaryTables } from './memory-forward.js';
import type { CacheTensors, Forward } from './memory-forward-parts.js';
import { sequencesOf } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import { tensorSum, type Place } from './memory-tensors.js';

export interface TransientBytes {
  bytes: number;
  /** Position of the peak in a layer. */
  place: Place;
  formula: string;
}

/** The constant facts of a request's forward passes, without memory and position in the sequence. */
export function forwardOf(
  a: Architecture,
  request: ResolvedRequest,
): Omit<Forward<never>, 'memory' | 'enter' | 'cache' | 'newTokens' | 'cachedTokens'> {
  const { storage, parallel, attention } = request;
  return {
    a,
    b: bytesPerElement[storage.activations],
    isBfloat16: storage.activations === 'bfloat16',
    sequences: sequencesOf(request),
    tensor: parallel.tensor,
    attention,
  };
}

/** A cache without any tokens. */
export function emptyCache<B>(request: ResolvedRequest): CacheTensors<B> {
  const { inputLen, outputLen, cache, hybridCache, storage, parallel } = request;
  const b = bytesPerElement[storage.kvCache];
  const sequences = sequencesOf(request);
  return {
    kind: cache,
    length: inputLen + outputLen,
    windowed: hybridCache,
    layers: [],
    halves: ({ attention }, tokens) => {
      if (attention.kind === 'recurrent') {
        const each = (sequences * Math.max(2, b)) / parallel.tensor;
        return [each * attention.convStateElements, each * attention.stateElements];
      }
      const elements = kvElementsPerToken(attention, parallel.tensor);
      const { window } = attention;
      // A window is a view of the whole prompt; it gets its own storage at the first decode step.
      const isCut = cache === 'growing' && hybridCache && window !== null && tokens > inputLen;
      const storedBytes = sequences * (isCut ? Math.min(tokens, window) : tokens) * b;
      const keys = attention.kind === 'latent' ? attention.ropeDim : elements / 2;
      return [storedBytes * keys, storedBytes * (elements - keys)];
    },
  };
}

/**
 * Peak of one step of transformers without weights and cache: its tensors, in the order in which the modeling classes
 * make and drop them (memory-forward.ts).
 * @param kv bytes of the cache after the step, which are counted elsewhere
 */
export function transformersStep(
  a: Architecture,
  layers: readonly Layer[],
  request: ResolvedRequest,
  { cachedTokens, newTokens, kv }: { cachedTokens: number; newTokens: number; kv: number },
): TransientBytes {
  const memory = tensorSum();
  const cache = emptyCache<number>(request);
  const forward = { ...forwardOf(a, request), memory, enter: memory.enter, cache, newTokens, cachedTokens };
  const tokens = cache.kind === 'static' ? cache.length : cachedTokens;
  if (tokens > 0) {
    cache.layers = layers.map((layer) => {
      const [keys, values] = cache.halves(layer, tokens);
      return { keys: memory.malloc(keys), values: memory.malloc(values) };
    });
  }
  // The previous step's logits are referenced until the new ones exist.
  if (cachedTokens > 0) memory.malloc(forward.sequences * a.vocabSize * forward.b);
  forwardTensors(forward, layers);
  const { bytes, place } = memory.peak();
  return {
    bytes: bytes - kv,
    place,
    formula:
      formulaOf(a, request, place) +
      (hasRotaryTables(a, layers) && place !== 'logits' ? ' + rotary tables' : ''),
  };
}

const symbols: Readonly<Record<string, string>> = {
  N: 'new tokens of all sequences',
  B: 'sequences',
  T: 'new tokens per sequence',
  C: 'tokens in the KV cache',
  b: 'bytes per element',
  D: 'hidden size',
  I: 'MLP size',
  MI: 'MLP size of an expert',
  k: 'experts per token',
  H: 'heads',
  KV: 'KV heads',
  hd: 'head dimension',
  nope: 'head dimensions without position',
  rope: 'head dimensions with position',
  v: 'head dimensions of values',
  P: 'outputs of the input projection',
  CC: 'channels of the convolution',
  V: 'vocabulary size',
};

/** What the symbols of a formula mean: "N: new tokens of all sequences, b: bytes per element". */
export const symbolsOf = (formula: string): string =>
  Object.entries(symbols)
    .filter(([symbol]) => new RegExp(String.raw`\b${symbol}\b`).test(formula))
    .map(([symbol, meaning]) => `${symbol}: ${meaning}`)
    .join(', ');

/** The main terms of the peak. */
function formulaOf(a: Architecture, { attention }: ResolvedRequest, peakPlace: Place): string {
  const [first] = a.layers;
  const isLatent = first!.attention.kind === 'latent';
  const live = a.positionRows > 0 ? 5 : 4;
  if (peakPlace === 'recurrence') return 'N·b·(3·D + P + 2·CC)';
  if (peakPlace === 'norm') return 'N·(3·D·b + 8·D): RMSNorm in float32';
  if (peakPlace === 'logits') return 'B·V·b + N·D·b';
  if (peakPlace === 'mlp') {
    const isGated = a.layers.some(({ mlp }) => mlp.kind === 'dense' && mlp.gated);
    const copies = a.family === 'OPT' ? 2 : isGated && a.family !== 'Phi-3' ? 3 : 4;
    return `N·b·(${a.family === 'GPT-2' ? live : 4}·D + ${copies}·I)`;
  }
  if (peakPlace === 'experts')
    return 'N·b·4·D + N·k·max(D + 4·MI, 2·D·b + 2·D·(b, or 4 if the router outputs float32))';
  if (attention === 'eager') {
    const scores = 'B·H·T·C·(2·b + 4), b + 8 in bfloat16';
    return isLatent
      ? `N·b·(3·D + 2·H·(nope + rope)) + keys and values + ${scores}`
      : `N·b·(3·D + H·hd) + 2·B·C·H·hd·b + ${scores}`;
  }
  return isLatent
    ? 'N·b·(3·D + 2·H·(nope + rope)) + B·C·b·H·(2·nope + rope + v)'
    : 'N·b·(3·D + 4·H·hd + 2·KV·hd)';
}
