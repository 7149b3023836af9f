import { InferscopeError } from '../model/errors.js';
import { bytesPerElement } from '../model/dtype.js';
import { plural } from '../vocabulary/format.js';
import type { Architecture } from './architecture.js';
import { transformersStep, type TransientBytes } from './memory-activations.js';
import { kvFormula, kvOf } from './memory-place.js';
import { deviceCount, type Device } from './memory-shards.js';
import type { ResolvedRequest } from './memory-request.js';

/** A moment of a device's run, with its cache and its other tensors. */
export interface Moment {
  stage: 'prefill' | 'decode';
  kv: number;
  kvFormula: string;
  transient: TransientBytes;
}

/** @throws E_USAGE where the memory of an encoder-decoder model is not computed: other engines, several devices */
export function checkEncoderDecoder(a: Architecture, { engine, parallel }: ResolvedRequest): void {
  if (!a.encoder || (engine === 'transformers' && deviceCount(parallel) === 1)) return;
  throw new InferscopeError('E_USAGE', {
    what: `the memory of ${a.family} is computed for transformers on one device`,
    why: 'How other engines, or several devices, place an encoder and its caches is not known.',
    fix: 'Give --engine transformers, without parallel sizes.',
  });
}

/**
 * The encoder, which keeps no cache, and the decoder's last step. The prompt is the source: cross-attention caches it once; self-attention
 * caches the start token and the generated tokens except the last. `generate()` keeps the encoder's output until the end.
 */
export function encoderDecoderMoments(
  a: Architecture,
  device: Device,
  request: ResolvedRequest,
  sequences: number,
): { prefill: Moment; decode: Moment } {
  const { inputLen, outputLen, storage } = request;
  const encoder = device.layers.filter(({ isEncoder }) => isEncoder);
  const decoder = device.layers.filter(({ isEncoder }) => !isEncoder);
  const tokens = Math.max(1, outputLen);
  const kv = kvOf(a, device, request, sequences, tokens, inputLen);
  const cross = {
    ...a,
    layers: decoder.flatMap(({ cross: attention, ...layer }) => (attention ? [{ ...layer, attention }] : [])),
  };
  const encode = transformersStep(a, encoder, request, { cachedTokens: 0, newTokens: inputLen, kv: 0 });
  const step = transformersStep(a, decoder, request, {
    cachedTokens: tokens - 1,
    newTokens: 1,
    kv: kvOf({ ...a, layers: decoder }, { layers: decoder }, request, sequences, tokens),
  });
  const encoded = sequences * inputLen * a.hiddenSize * bytesPerElement[storage.activations];
  return {
    prefill: { stage: 'prefill', kv: 0, kvFormula: 'the encoder has no cache', transient: encode },
    decode: {
      stage: 'decode',
      kv,
      kvFormula: `self-attention: ${kvFormula({ ...a, layers: decoder }, request, sequences, tokens)}; cross-attention: ${kvFormula(cross, request, sequences, inputLen)}`,
      transient: {
        ...step,
        bytes: step.bytes + encoded,
        formula: `${step.formula} + output of the encoder for ${plural(inputLen, 'token')}`,
      },
    },
  };
}
