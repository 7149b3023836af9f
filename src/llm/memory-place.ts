import type { EstimatedComponent } from '../model/memory-components.js';
import type { Architecture } from './architecture.js';
import { kvCacheBytes, kvElementsPerToken, type KvCacheShape } from './kv-cache.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { plural } from '../vocabulary/format.js';

export type Confidence = 'high' | 'medium' | 'low';

/** Bytes of a component on one device, and how they were computed. */
export interface Part {
  bytes: number;
  formula: string;
  confidence: Confidence;
}

/** Memory of one device at its peak. */
export interface Place {
  parts: Partial<Record<EstimatedComponent, Part>>;
  peak: 'prefill' | 'decode' | 'startup';
  /** Cache of the batch at its full length; vLLM's pool is larger. */
  kvNeeded: number;
}

/** Sequences that a device computes; replicas of attention share the batch. */
export function sequencesOf({ batchSize, parallel }: ResolvedRequest): number {
  return Math.ceil(batchSize / Math.max(1, parallel.expert / parallel.tensor));
}

function windowsOf({
  engine,
  hybridCache,
  maxNumBatchedTokens,
  maxModelLen,
}: ResolvedRequest): NonNullable<KvCacheShape['windows']> {
  if (!hybridCache) return 'whole';
  return engine === 'vllm' ? { maxNumBatchedTokens, maxModelLen } : 'window';
}

/** Cache of `batchSize` sequences of `tokens` in the layers of one device. */
export function kvOf(
  a: Architecture,
  { layers }: Pick<Device, 'layers'>,
  request: ResolvedRequest,
  batchSize: number,
  tokens: number,
  sourceTokens = 0,
): number {
  return kvCacheBytes(
    { ...a, layers },
    {
      kvCache: request.storage.kvCache,
      batchSize,
      contextTokens: tokens,
      sourceTokens,
      tensorParallelSize: request.parallel.tensor,
      windows: windowsOf(request),
    },
  );
}

/** The cache's formula with the numbers of this model. */
export function kvFormula(
  a: Architecture,
  request: ResolvedRequest,
  batchSize: number,
  tokens: number,
): string {
  const caching = a.layers.filter(({ attention }) => kvElementsPerToken(attention) > 0);
  const first = caching[0]?.attention;
  const { tensor } = request.parallel;
  const b = request.storage.kvCache;
  const layers = request.parallel.pipeline > 1 ? 'layers of the GPU' : plural(caching.length, 'layer');
  const recurrent = a.layers.filter(({ attention }) => attention.kind === 'recurrent').length;
  const states =
    recurrent === 0 ? '' : `states of ${plural(recurrent, 'recurrent layer')} × batch ${batchSize}`;
  if (!first || first.kind === 'recurrent') return states;
  const token =
    first.kind === 'latent'
      ? `${layers} × (rank ${first.kvRank} + rope ${first.ropeDim}) × ${b}`
      : `2 × ${layers} × ${plural(Math.max(1, first.kvHeadCount / tensor), 'KV head')} × ${first.headDim} × ${b}`;
  const windowed = caching.filter(({ attention }) => attention.window !== null).length;
  const window =
    windowed === 0
      ? ''
      : request.hybridCache
        ? `; ${windowed} windowed layers keep their window`
        : `; ${windowed} sliding-window layers keep all tokens`;
  return `${token} × ${plural(tokens, 'token')} × batch ${batchSize}${window}${states === '' ? '' : `; + ${states}`}`;
}
