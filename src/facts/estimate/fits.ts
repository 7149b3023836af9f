import { readArchitecture } from '../../llm/read-architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { largestContext } from '../../llm/memory-fit.js';
import type { MemoryRequest } from '../../llm/memory-request.js';
import { countParameters } from '../../llm/parameters.js';
import { presets, type Preset } from '../../llm/presets.js';
import { declaredDType, declaredWeights, quantizedWeights } from '../../llm/quantization.js';
import { floatStorage, weightBytes, type Storage } from '../../llm/storage.js';
import { document, type Document } from '../../model/document.js';
import type { EstimateFits } from '../../model/documents/estimate-memory.js';
import type { EstimatedComponent } from '../../model/memory-components.js';
import type { KnownGpu } from './known-gpu.js';
import type { EstimateOptions } from './memory.js';
import { singleValue } from './single-value.js';

/** Formats compared: float32, bfloat16 and the two most common quantized widths. */
const formats: { format: string; storage: Storage }[] = [
  { format: 'float32', storage: floatStorage('float32') },
  { format: 'bfloat16', storage: floatStorage('bfloat16') },
  ...(['fp8-row', 'awq-int4-g128'] as const).map((scheme) => ({
    format: scheme,
    storage: {
      weights: quantizedWeights(scheme, 'bfloat16'),
      activations: 'bfloat16',
      kvCache: 'bfloat16',
    } as const,
  })),
];

/** Which bundled models fit a GPU. Uses only bundled dimensions, and downloads nothing. @throws E_USAGE for a list of sizes */
export function estimateFits(
  gpu: KnownGpu,
  {
    batchSize,
    inputLen,
    outputLen,
    contextLen,
    engine,
  }: Pick<EstimateOptions, 'batchSize' | 'inputLen' | 'outputLen' | 'contextLen' | 'engine'>,
): Document<EstimateFits> {
  const one = (flag: string, values: readonly number[]) => singleValue('--fits', flag, values);
  const shape = {
    batchSize: one('--batch-size', batchSize),
    ...(contextLen
      ? { inputLen: one('--context-len', contextLen), outputLen: 0 }
      : { inputLen: one('--input-len', inputLen), outputLen: one('--output-len', outputLen) }),
  };
  const models = presets.map((preset) => modelRow(preset, gpu, { ...shape, engine }));
  models.sort((a, b) => a.parameters - b.parameters);
  return document('estimate-fits', '1.0', {
    gpu: { name: gpu.name, total_bytes: gpu.totalBytes, source: gpu.source },
    engine,
    batch_size: shape.batchSize,
    input_len: shape.inputLen,
    output_len: shape.outputLen,
    models,
  });
}

function modelRow(
  preset: Preset,
  gpu: KnownGpu,
  shape: Pick<MemoryRequest, 'batchSize' | 'inputLen' | 'outputLen' | 'engine'>,
): EstimateFits['models'][number] {
  const architecture = readArchitecture(preset.config);
  const published = declaredWeights(preset.config) ?? floatStorage('float32').weights;
  return {
    model: preset.id,
    hub_id: preset.hub_id,
    family: architecture.family,
    parameters: countParameters(architecture).total,
    download_bytes: preset.download_bytes ?? weightBytes(architecture, { weights: published }).total,
    published_dtype: declaredWeights(preset.config)?.name ?? declaredDType(preset.config) ?? 'float32',
    gated: preset.gated,
    formats: formats.map(({ format, storage }) => {
      // A fixed reserve instead of the simulation, so that two hundred models and formats take a second.
      const request: MemoryRequest = { ...shape, storage, gpu, reserve: 'share' };
      const estimate = estimateMemory(architecture, request);
      const bytesOf = (component: EstimatedComponent): number => firstGpuBytes(estimate, component);
      const weights = bytesOf('model_weights');
      const kv = estimate.kvNeededBytes;
      const activations = bytesOf('activations');
      return {
        format,
        weight_bytes: weights,
        kv_cache_bytes: kv,
        activation_bytes: activations,
        overhead_bytes: estimate.neededGpuBytes - weights - kv - activations,
        needed_bytes: estimate.neededGpuBytes,
        fits: estimate.holdsBatch === true,
        largest_context_tokens: estimate.holdsBatch === true ? largestContext(architecture, request) : 0,
      };
    }),
  };
}

function firstGpuBytes({ lines }: MemoryEstimate, component: EstimatedComponent): number {
  return lines.find((line) => line.component === component)?.gpuBytes[0] ?? 0;
}
