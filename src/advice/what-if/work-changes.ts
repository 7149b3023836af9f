import { gpuHostLink, gpuSheet } from '../../hardware/gpu-peaks.js';
import { storedAs } from '../../llm/memory-storage.js';
import { averageBytesPerWeight, type Storage, weightBytes } from '../../llm/storage.js';
import type { StageShape } from '../../llm/shape.js';
import { kvCacheBytes, type KvCacheShape } from '../../llm/kv-cache.js';
import { bytesPerElement, type DType } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';
import type { MissingFigure } from '../../model/figure.js';
import { gpuRoofs } from '../../facts/roofs.js';
import { reachedShare, rebase, type Scaling, scaleKernels } from './class-times.js';
import { type Effect, type StageNeeds, type StageState, unchanged } from './stage-state.js';
import { streamFactor } from './weight-streams.js';
import { formatGb, formatNumber, formatSetting, plural, formatCount } from '../../vocabulary/format.js';
import { weightFormatLabel } from '../../vocabulary/weight-formats.js';

/**
 * Time of 16-bit fused attention relative to float32, which does not use tensor cores: a fifth, measured on an H200, independent of
 * the peaks.
 */
const halfAttention = 0.2;

/** GEMMs from the measured weight streams of a CPU, if both sides have one. */
function streamFactors(
  state: StageState,
  before: StageNeeds,
  after: StageNeeds,
): { measuredFactors: Scaling['measuredFactors']; how: string[] } {
  const factor = streamFactor(state, before, after);
  if (factor === null) return { measuredFactors: undefined, how: [] };
  return {
    measuredFactors: new Map([['gemm', factor]]),
    how: [`GEMMs ${times(factor)}, from weight-stream rates measured on this machine`],
  };
}

const times = (factor: number) => `× ${formatNumber(factor)}`;
/** Change of a class's roofline; the time of its kernels, without their latency, changes by the same factor. */
const limitTimes = (factor: number) => `its roofline ${times(factor)}`;

/** N sequences instead of B: weights are read once per step for all; KV cache, activations and FLOPs scale per sequence. */
export function withBatch(state: StageState, batchSize: number): Effect | MissingFigure {
  const { needs } = state;
  if ('reason' in needs) return needs;
  const factor = batchSize / needs.shape.batchSize;
  if (factor === 1) return unchanged(state, `its batch is ${batchSize} already`);
  const after = { ...needs, shape: { ...needs.shape, batchSize } };
  const streams = streamFactors(state, needs, after);
  return scaleKernels(state, {
    after,
    otherFactor: () => factor,
    measuredFactors: streams.measuredFactors,
    copies: factor,
    explain: (_, by) =>
      `${limitTimes(by)}: weights once per step, everything else for ${batchSize === 1 ? 'one sequence' : `each of ${plural(batchSize, 'sequence')}`}`,
    assumptions: [
      ...streams.how,
      `${plural(batchSize, 'sequence')} of the same length instead of ${needs.shape.batchSize}; launches and host stay, sampling included`,
      'memory is sufficient (not checked: see inferscope estimate)',
    ],
  });
}

/** Another context length: the prompt of a prefill, the cache of a decode step. */
export function withContext(state: StageState, contextLen: number): Effect | MissingFigure {
  const { needs } = state;
  if ('reason' in needs) return needs;
  const { shape } = needs;
  const prefill = shape.phase === 'prefill';
  const after = prefill ? ofPrompt(shape, contextLen) : { ...shape, contextTokens: contextLen };
  const factor = prefill ? contextLen / promptOf(shape) : contextLen / Math.max(1, shape.contextTokens);
  if (factor === 1)
    return unchanged(
      state,
      `its ${prefill ? 'prompt' : 'context'} is ${plural(contextLen, 'token')} already`,
    );
  return scaleKernels(state, {
    after: { ...needs, shape: after },
    // In a decode step only work on the cache grows, such as copies of it; other work is for one token.
    otherFactor: (name, ms) =>
      prefill ? factor : name === 'copy' ? 1 + (factor - 1) * Math.min(1, cacheCopiesMs(needs) / ms) : 1,
    ...(prefill ? { copies: factor } : {}),
    explain: (_, by) => `${limitTimes(by)} at ${plural(contextLen, 'token')}`,
    assumptions: [
      prefill
        ? `a prompt of ${plural(contextLen, 'token')} instead of ${formatCount(promptOf(shape))}, computed in one piece`
        : `${plural(contextLen, 'token')} in the cache instead of ${formatCount(shape.contextTokens)}; layout copies are assumed to copy the cache, for as long as three copies of it take`,
    ],
  });
}

/** Concatenation, repetition of shared heads and a change of layout each write keys and values once per step. */
const mostCacheCopies = 3;

/** Time of the most copies of the cache that a decode step makes; Infinity without a bandwidth. ms */
function cacheCopiesMs({ model, shape, peaks }: StageNeeds): number {
  const { architecture } = model;
  const attention = architecture.layers[0]?.attention;
  const repeats = attention?.kind === 'grouped' ? attention.headCount / attention.kvHeadCount : 1;
  const bytes = kvCacheBytes(architecture, cacheShape({ model, shape }, shape.contextTokens));
  const bandwidth = peaks.bandwidth.value;
  // Each copy reads and writes.
  return bandwidth === null
    ? Infinity
    : (1e3 * mostCacheCopies * 2 * repeats * bytes) / (reachedShare * bandwidth);
}

/** Tokens of the prompt of a prefill, per sequence; an encoder-decoder model's prompt is its source. */
const promptOf = ({ newTokens, source }: StageShape): number => source?.tokens ?? newTokens;

function ofPrompt(shape: StageShape, tokens: number): StageShape {
  if (!shape.source) return { ...shape, newTokens: tokens };
  const { step } = shape.source;
  return { ...shape, ...(step === 'encode' && { newTokens: tokens }), source: { step, tokens } };
}

/**
 * Weights and GEMMs in another dtype.
 * @throws E_DTYPE if the device has no peak in the compute dtype
 */
export function withDtype(state: StageState, dtype: DType): Effect | MissingFigure {
  const { needs, onCpu, gpuName } = state;
  if ('reason' in needs) return needs;
  const before = needs.model.storage;
  const stored = storedAs(dtype, before.activations, onCpu);
  // A KV cache in the dtype of the activations follows them; another one stays.
  const kvCache = before.kvCache === before.activations ? stored.activations : before.kvCache;
  const storage: Storage = { ...stored, kvCache };
  const label = weightFormatLabel(storage.weights.name);
  if (storage.weights.name === before.weights.name && storage.activations === before.activations)
    return unchanged(state, `its weights are ${label} already`);
  const computed = storage.weights.compute ?? storage.activations;
  const peak = needs.peaks.flops(computed);
  if (peak.value === null) {
    throw new InferscopeError('E_DTYPE', {
      what: `${gpuName ?? 'this device'} has no known peak in ${computed}`,
      why: `${peak.reason.text}.`,
      fix: 'Use a dtype that it supports, for example --what-if dtype=bfloat16, or another GPU with gpu=….',
    });
  }
  const weights = averageBytesPerWeight(storage.weights.linear);
  const elements = bytesPerElement[storage.activations] / bytesPerElement[before.activations];
  const after = { ...needs, model: { ...needs.model, storage } };
  const streams = streamFactors(state, needs, after);
  const isHalved = before.activations === 'float32' && elements < 1 && !onCpu;
  return scaleKernels(state, {
    after,
    otherFactor: () => elements,
    copies: elements,
    measuredFactors: isHalved ? new Map([['attention', halfAttention]]) : streams.measuredFactors,
    explain: (_, by) => `${limitTimes(by)}: bytes and peak of ${label}`,
    assumptions: [
      ...streams.how,
      `${label}: ${formatSetting(weights, 'bytes')} per weight instead of ${formatSetting(averageBytesPerWeight(before.weights.linear))}, multiplied in ${computed}, activations in ${storage.activations}`,
      ...(storage.weights.compute === null && storage.weights.linear.scale !== null
        ? ['weights are unpacked inside the GEMMs, at no extra time']
        : []),
      ...(storage.weights.compute !== null && storage.weights.compute !== storage.activations
        ? ['activations are quantized inside the kernels before the GEMMs, at no extra time']
        : []),
      'output quality is not considered',
    ],
  });
}

/** The same work on another GPU: data-sheet peaks on both sides, because the other GPU was not measured. */
export function withGpu(
  state: StageState,
  { name, chosen }: { name: string; chosen: string | null },
): Effect | MissingFigure {
  const { needs, gpuName, onCpu } = state;
  if (onCpu || gpuName === null)
    return unchanged(state, 'the session did not run on a known GPU, so there is nothing to compare with');
  if ('reason' in needs) return needs;
  const current = sheetPeaks(gpuName, needs.peaks);
  const target = sheetPeaks(name, needs.peaks);
  if ('reason' in current) return current;
  if ('reason' in target) return target;
  const bandwidth = current.bandwidth.value! / target.bandwidth.value!;
  const link = gpuHostLink(gpuName).value;
  const otherLink = gpuHostLink(name).value;
  const bySheet = rebase(state, { ...needs, peaks: current });
  if ('reason' in bySheet) return bySheet;
  const byNeed = scaleKernels(bySheet, {
    after: { ...needs, peaks: target },
    otherFactor: () => bandwidth,
    ...(link && otherLink ? { copies: link / otherLink } : {}),
    peaks: `data-sheet peaks of ${name}, which was not measured`,
    explain: (_, by) => `${limitTimes(by)}: peaks of ${name} over those of ${gpuName}, by their data sheets`,
    assumptions: [
      ...(chosen === null ? [] : [chosen]),
      `${name} reaches the same share of its data sheet as ${gpuName}: bandwidth ${times(1 / bandwidth)}`,
      'launches, host and idle time stay as on this machine',
      'not modeled: other kernels and tile sizes, clocks and power limits, links between GPUs',
      ...memoryWarning(needs, name),
    ],
  });
  if ('reason' in byNeed) return byNeed;
  return { ...byNeed, state: { ...byNeed.state, gpuName: name, needs: { ...needs, peaks: target } } };
}

/** @param ranAs the dtype that matrix multiplications ran as: TF32 stays TF32 on another GPU */
function sheetPeaks(
  name: string,
  { ranAs = (dtype) => dtype }: StageNeeds['peaks'],
): StageNeeds['peaks'] | MissingFigure {
  const roofs = gpuRoofs(name, null);
  if (roofs.roofBandwidth.value === null) return roofs.roofBandwidth;
  return { flops: (dtype) => roofs.roofFlops(ranAs(dtype)), bandwidth: roofs.roofBandwidth, ranAs };
}

/** The cache of a step in which each sequence has `contextTokens`. */
const cacheShape = (
  { model, shape }: Pick<StageNeeds, 'model' | 'shape'>,
  contextTokens: number,
): KvCacheShape => ({
  kvCache: model.storage.kvCache,
  batchSize: shape.batchSize,
  contextTokens,
  sourceTokens: shape.source?.tokens ?? 0,
});

function memoryWarning({ model, shape }: StageNeeds, name: string): string[] {
  const sheet = gpuSheet(name);
  const { contextTokens, newTokens, source } = shape;
  const cached = contextTokens + (source?.step === 'encode' ? 0 : newTokens);
  const bytes =
    weightBytes(model.architecture, model.storage).total +
    kvCacheBytes(model.architecture, cacheShape({ model, shape }, cached));
  if (sheet === null || bytes < sheet.memoryGb * 1e9) return [];
  return [
    `weights and KV cache take ${formatGb(bytes)} and do not fit into the ${formatSetting(sheet.memoryGb, 'GB')} of ${name}`,
  ];
}
