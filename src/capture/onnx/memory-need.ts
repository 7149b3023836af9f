import os from 'node:os';
import type { OnnxModel } from '../../engines/onnx/onnx-model.js';
import { detectCpu } from '../../hardware/cpu.js';
import { peakLiveActivations } from '../../llm/activations.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { kvCacheBytes } from '../../llm/kv-cache.js';
import { InferscopeError } from '../../model/errors.js';
import { formatBytes } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';

interface ShapeSizes {
  batchSize: number;
  inputLen: number;
  outputLen: number;
}

const memoryBytes = (): number => Math.min(os.totalmem(), detectCpu().memoryLimitBytes ?? Infinity);

/**
 * Why weights, KV cache and activations cannot fit this machine's memory (the kernel would kill the engine or another
 * process). Null when they may fit; models with unknown arithmetic are accepted.
 */
export function exceedsMemory(
  model: OnnxModel,
  { batchSize, inputLen, outputLen }: ShapeSizes,
): string | null {
  let needed: { kv: number; activations: number };
  try {
    const architecture = readArchitecture(model.config);
    needed = {
      kv: kvCacheBytes(architecture, { kvCache: 'float32', batchSize, contextTokens: inputLen + outputLen }),
      activations: peakLiveActivations(
        architecture,
        { phase: 'prefill', batchSize, newTokens: inputLen, contextTokens: 0 },
        { activations: 'float32' },
      ).bytes,
    };
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
  const availableBytes = memoryBytes();
  const total = model.weight_bytes + needed.kv + needed.activations;
  if (total <= availableBytes) return null;
  return (
    `It needs at least ${formatBytes(total)} (weights ${formatBytes(model.weight_bytes)}, ` +
    `KV cache ${formatBytes(needed.kv)}, activations ${formatBytes(needed.activations)}); ` +
    `this machine has ${formatBytes(availableBytes)}.`
  );
}

/**
 * Rejects a run if its weights, KV cache and activations cannot fit this machine's memory.
 * @param shorter the flags that reduce KV cache and activations
 * @throws E_OUT_OF_MEMORY
 */
export function requireMemory(
  model: OnnxModel,
  sizes: ShapeSizes,
  shorter = '--batch-size, --input-len or --output-len',
): void {
  const availableBytes = memoryBytes();
  if (model.weight_bytes > availableBytes) {
    throw new InferscopeError('E_OUT_OF_MEMORY', {
      what: `the weights of ${model.name} do not fit`,
      why: `In ${model.dtype} they need ${formatBytes(model.weight_bytes)}; this machine has ${formatBytes(availableBytes)}.`,
      fix: fewerWeights(model, availableBytes),
    });
  }
  const why = exceedsMemory(model, sizes);
  if (why === null) return;
  const { batchSize, inputLen, outputLen } = sizes;
  throw new InferscopeError('E_OUT_OF_MEMORY', {
    what: `${model.name} at batch ${batchSize} with ${lengthWords(inputLen, outputLen)} does not fit`,
    why,
    fix: `Use a smaller ${shorter}.`,
  });
}

/** An ONNX export has fixed weights; a generated model can use other ones. */
const fewerWeights = (
  { weights, dtype, num_parameters: parameters }: OnnxModel,
  availableBytes: number,
): string =>
  weights === 'random' && dtype === 'float32' && parameters !== null && parameters / 2 <= availableBytes
    ? 'Use --dtype int4 or a smaller --model.'
    : 'Use a smaller --model.';
