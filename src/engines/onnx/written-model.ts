import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { readArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { GraphOptions } from './graph-builder.js';
import { graphDType } from './graph-dtype.js';
import { readLlamaConfig } from './llama-config.js';
import { llamaGraph, parameterBytes, writerVersion } from './llama-graph.js';
import { cachedModel } from './model-cache.js';
import type { OnnxModel, ResolveOptions } from './onnx-model.js';

/** Writes a model of this config with random weights, or finds it in the cache. */
export async function writtenModel(
  name: string,
  config: Record<string, unknown>,
  options: ResolveOptions,
): Promise<OnnxModel> {
  const dtype = graphDType(options.dtype);
  const graphOptions: GraphOptions = {
    dtype,
    seed: options.seed ?? 0,
    logits: options.logits ?? 'last',
    computeInt4: options.computeInt4 ?? 'int8',
  };
  const llama = readLlamaConfig(config);
  const hash = createHash('sha256')
    .update(JSON.stringify([writerVersion, graphOptions, withSortedKeys(config)]))
    .digest('hex');
  const slug = name.toLowerCase().replaceAll(/[^a-z0-9.]+/g, '-');
  const key = `${slug}-${dtype}-${hash.slice(0, 16)}`;
  const model: OnnxModel = {
    name,
    modelPath: join(options.cacheDir, key, 'model.onnx'),
    config,
    dtype,
    quantization:
      dtype === 'int4' ? `MatMulNBits int4, block 32, computes in ${graphOptions.computeInt4}` : null,
    weights: 'random',
    weight_bytes: parameterBytes(llamaGraph(llama, graphOptions)),
    num_parameters: countParameters(readArchitecture(config)).total,
    tokenizerPath: null,
    logits: graphOptions.logits,
    kvCache: 'in-place',
    maxContext: llama.maxPositions,
  };
  options.accept?.(model);
  const folder = await cachedModel(
    options.cacheDir,
    key,
    () => llamaGraph(llama, graphOptions),
    options.onProgress,
  );
  return { ...model, modelPath: join(folder, 'model.onnx') };
}

/** Sorts keys, so that equal configs have equal hashes. */
function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, withSortedKeys(inner)]),
  );
}
