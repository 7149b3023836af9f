import type { Architecture } from '../../llm/architecture.js';
import { readArchitecture } from '../../llm/read-architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { knownEngine } from '../../llm/memory-request.js';
import { findPreset } from '../../llm/presets.js';
import { InferscopeError } from '../../model/errors.js';
import { requestOfRun } from '../memory-profile/run-request.js';
import { measuredOf, type ProfileFields } from './profile-fields.js';

interface ProfileEstimate {
  architecture: Architecture;
  estimate: MemoryEstimate;
}

/**
 * The calculator's estimate for a profile's run, or why there is none. The model is the profile's config, else a preset
 * of its name.
 */
export function estimateProfile(profile: ProfileFields): ProfileEstimate | string {
  if (profile.metadata?.where === 'url') {
    return 'It is from a server that was already running: its startup options and memory use at startup are not fully known.';
  }
  const engine = knownEngine(profile.engine_metadata?.engine_type);
  const { model_info: model } = profile;
  const requestedConfig = profile.metadata?.config ?? {};
  const engineName = profile.engine_metadata?.engine_type;
  if (engine === null && engineName) return `The memory of ${engineName} apart from weights is not known.`;
  const config =
    model.config ?? findPreset(model.name)?.config ?? findPreset(requestedConfig.model ?? '')?.config;
  const { batch_size: batchSize, input_len: inputLen, output_len: outputLen } = requestedConfig;
  if (
    engine === null ||
    !config ||
    typeof batchSize !== 'number' ||
    typeof inputLen !== 'number' ||
    typeof outputLen !== 'number'
  ) {
    const flags = Object.entries({
      '--engine': engine,
      '--model': config,
      '--batch-size': batchSize,
      '--input-len': inputLen,
      '--output-len': outputLen,
    }).flatMap(([flag, value]) => (value === null || value === undefined ? [flag] : []));
    const missingModel = config ? '' : ` (it holds no config.json, and ${model.name} is not a preset)`;
    return `It does not record its run options${missingModel}: give ${flags.join(', ')}.`;
  }
  const onCpu = profile.metadata?.gpus?.length === 0;
  if (engine === 'vllm' && onCpu) return 'The main memory use of vLLM is not known.';
  const args = profile.engine_metadata?.engine_args ?? {};
  try {
    const architecture = readArchitecture(config);
    const measured = measuredOf(profile);
    const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
    const request = requestOfRun({
      engine,
      architecture,
      config,
      // "auto" does not name a dtype.
      dtypes: [model.dtype, requestedConfig.dtype],
      quantization: model.quantization ?? requestedConfig.quantization ?? null,
      kvCacheDtype: requestedConfig.kv_cache_dtype ?? null,
      weightBytes: null,
      batchSize,
      inputLen,
      outputLen,
      tensorParallelSize: tensorParallelOf(profile),
      gpu:
        measured.gpuName === null && measured.gpuBytes === null
          ? null
          : { name: measured.gpuName, totalBytes: measured.gpuBytes },
      onCpu,
      randomWeights: model['weights'] === 'random',
      usage: 'library',
      engineVersion: profile.engine_metadata?.engine_version ?? null,
      gpuMemoryUtilization: number(requestedConfig.gpu_memory_utilization),
      maxModelLen: number(requestedConfig.max_model_len),
      engineArgs: args,
    });
    return { architecture, estimate: estimateMemory(architecture, request) };
  } catch (error) {
    if (error instanceof InferscopeError) return `${error.parts.what}: ${error.parts.why}`;
    throw error;
  }
}

export function tensorParallelOf({ metadata, model_info }: ProfileFields): number {
  return model_info.tensor_parallel_size ?? metadata?.config?.tensor_parallel_size ?? 1;
}
