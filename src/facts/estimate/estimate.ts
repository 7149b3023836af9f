import { architectureIssues } from '../../llm/architecture-issues.js';
import type { Architecture } from '../../llm/architecture.js';
import { readAnyArchitecture } from '../../llm/read-architecture.js';
import { crossKvBytesPerToken, kvBytesPerToken } from '../../llm/kv-cache.js';
import { layerTable } from '../../llm/layers.js';
import { storageOf } from '../../llm/memory-storage.js';
import { countParameters } from '../../llm/parameters.js';
import { declaredWeights } from '../../llm/quantization.js';
import { generationShape, type StageShape } from '../../llm/shape.js';
import { weightBytes, type Storage } from '../../llm/storage.js';
import { document, type Document, type Issue } from '../../model/document.js';
import { plural } from '../../vocabulary/format.js';
import {
  estimateModuleSchema,
  type EstimateLayers,
  type EstimateResult,
} from '../../model/documents/estimate.js';
import { memoryOf, type EstimateOptions } from './memory.js';
import type { SizedModel } from '../../llm/model-files.js';
import type { KnownGpu } from './known-gpu.js';
import { singleValue } from './single-value.js';

/**
 * Computes a model's size and work without running it. Only the headers of weight files are read.
 * @throws E_MODEL_CONFIG, E_MODEL_ARCHITECTURE, E_DTYPE, E_LENGTHS, E_USAGE
 */
export function estimate(
  model: SizedModel,
  gpu: KnownGpu | null,
  options: EstimateOptions,
): Document<EstimateResult> {
  const architecture = readAnyArchitecture(model.config);
  const storage = storageOf(model.config, { ...options, onCpu: options.engine === 'onnx' });
  const { total, active, embedding, lm_head } = countParameters(architecture);
  const { weights } = model;
  const result: EstimateResult = {
    model: {
      name: model.name,
      model_type: architecture.modelType,
      family: architecture.family,
      layers: architecture.layers.length,
      hidden_size: architecture.hiddenSize,
      vocab_size: architecture.vocabSize,
    },
    weight_format: storage.weights.name,
    activation_dtype: storage.activations,
    kv_cache_dtype: storage.kvCache,
    parameters: { total, active, embedding, lm_head },
    weight_bytes: weightBytes(architecture, storage).total,
    files: weights && {
      format: weights.format,
      source: weights.source,
      bytes: weights.bytes,
      parameters: weights.parameters,
      tensors: weights.tensors,
      bytes_by_dtype: weights.byDtype,
      excluded: weights.leftOut,
    },
    kv_cache_bytes_per_token: kvBytesPerToken(architecture, storage.kvCache),
    ...(architecture.encoder && {
      kv_cache_bytes_per_source_token: crossKvBytesPerToken(architecture, storage.kvCache),
    }),
    layers: options.layers ? layersOf(architecture, shapeOf(architecture, options), storage) : null,
    memory: options.layers ? null : memoryOf(architecture, storage, model, gpu, options),
  };
  return document('estimate', '1.2', result, issuesOf(model, architecture, total, options));
}

function layersOf(architecture: Architecture, shape: StageShape, storage: Storage): EstimateLayers {
  const { groups, outside, total } = layerTable(architecture, shape, storage);
  return {
    phase: shape.phase,
    batch_size: shape.batchSize,
    new_tokens: shape.newTokens,
    context_tokens: shape.contextTokens,
    // A decode step has no work in the layers of an encoder.
    groups: groups.filter(({ modules }) => modules.length > 0),
    // Rows of the table have more fields than the document.
    outside: outside.map((row) => estimateModuleSchema.parse(row)),
    total,
  };
}

function shapeOf(
  architecture: Architecture,
  { phase, batchSize, inputLen, contextLen }: EstimateOptions,
): StageShape {
  const shape = generationShape(architecture, phase, {
    batchSize: singleValue('--layers', '--batch-size', batchSize),
    inputLen: singleValue('--layers', '--input-len', inputLen),
    generated: 0,
  });
  if (contextLen === undefined) return shape;
  return { ...shape, contextTokens: singleValue('--layers', '--context-len', contextLen) };
}

function issuesOf(
  { config, weights, withoutWeights }: SizedModel,
  architecture: Architecture,
  parameters: number,
  { dtype, quantization, layers, inputLen, outputLen, contextLen }: EstimateOptions,
): Issue[] {
  const issues: Issue[] = architectureIssues(architecture);
  const { maxPositions, encoder } = architecture;
  const longest = contextLen ? Math.max(...contextLen) : Math.max(...inputLen) + Math.max(...outputLen);
  // The prompt of an encoder-decoder has positions of its own.
  if (!layers && !encoder && maxPositions !== null && longest > maxPositions) {
    issues.push({
      code: 'beyond_positions',
      severity: 'warning',
      text: `${plural(longest, 'token')} per sequence exceed the context of the model (${plural(maxPositions, 'token')}, max_position_embeddings).`,
    });
  }
  const isRequested = dtype !== undefined || quantization !== undefined;
  if (config['quantization_config'] && !isRequested && declaredWeights(config) === null && weights === null) {
    issues.push({
      code: 'quantization_unknown',
      severity: 'warning',
      text: "The config's quantization_config is not known: sizes are those of unquantized weights.",
    });
  }
  if (withoutWeights !== null) {
    issues.push({
      code: 'headers_not_read',
      severity: 'warning',
      text: `The files' headers were not read; sizes come from the config: ${withoutWeights}`,
    });
  }
  const headerParameters = weights?.parameters ?? null;
  if (headerParameters !== null && headerParameters !== parameters) {
    issues.push({
      code: 'files_differ',
      severity: 'warning',
      text: `The files have ${headerParameters} parameters and the config implies ${parameters}: the files are used for the weights.`,
    });
  }
  return issues;
}
