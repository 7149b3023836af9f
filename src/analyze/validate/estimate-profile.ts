import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { readArchitecture, type Architecture } from '../../llm/architecture.js';
import { estimateMemory, type MemoryEstimate } from '../../llm/memory-estimate.js';
import { requestOfArguments } from '../../llm/memory-engine-args.js';
import { memoryEngines, type MemoryEngine, type MemoryRequest } from '../../llm/memory-request.js';
import { kvDTypeNamed, schemeNamed, storageOf } from '../../llm/memory-storage.js';
import { findPreset } from '../../llm/presets.js';
import { dtypes } from '../../model/dtype.js';
import { InferscopeError } from '../../model/errors.js';
import { measuredOf, type ProfileFields } from './profile-fields.js';

export interface ProfileEstimate {
  architecture: Architecture;
  estimate: MemoryEstimate;
}

export function engineOf({ engine_metadata }: ProfileFields): MemoryEngine | null {
  const type = engine_metadata?.engine_type?.toLowerCase() ?? '';
  return memoryEngines.find((engine) => type.includes(engine)) ?? null;
}

/**
 * What the calculator of today says about a profile's run, or why it cannot say anything.
 * The model is the profile's own config, else a preset of its name.
 */
export function estimateProfile(profile: ProfileFields): ProfileEstimate | string {
  if (profile.metadata?.where === 'url') {
    return 'It is of a server that ran already: how it was started, and what of its memory it took then, is not known in full.';
  }
  const engine = engineOf(profile);
  const { model_info: model } = profile;
  const asked = profile.metadata?.config ?? {};
  if (engine === null) {
    return `What ${profile.engine_metadata?.engine_type ?? 'its engine'} keeps beside the weights is not known.`;
  }
  const config = model.config ?? findPreset(model.name)?.config ?? findPreset(asked.model ?? '')?.config;
  if (!config) return `The profile holds no config.json and ${model.name} is no preset.`;
  const { batch_size: batchSize, input_len: inputLen, output_len: outputLen } = asked;
  if (typeof batchSize !== 'number' || typeof inputLen !== 'number' || typeof outputLen !== 'number') {
    return 'It does not say which batch and lengths were run.';
  }
  const onCpu = profile.metadata?.gpus?.length === 0;
  if (engine === 'vllm' && onCpu) return 'What vLLM takes of main memory is not known.';
  const args = profile.engine_metadata?.engine_args ?? {};
  try {
    const architecture = readArchitecture(config);
    const request: MemoryRequest = {
      engine,
      batchSize,
      inputLen,
      outputLen,
      storage: storageFor(profile, config),
      parallel: { tensor: tensorParallelOf(profile) },
      gpu: gpuOf(profile) ?? null,
      device: onCpu ? 'cpu' : 'gpu',
      loading: model['weights'] === 'random' ? 'random' : 'checkpoint',
      usage: 'library',
      engineVersion: profile.engine_metadata?.engine_version ?? null,
      ...numberIn(asked.gpu_memory_utilization, 'gpuMemoryUtilization'),
      ...numberIn(asked.max_model_len, 'maxModelLen'),
      ...requestOfArguments(engine, args),
    };
    return { architecture, estimate: estimateMemory(architecture, request) };
  } catch (error) {
    if (error instanceof InferscopeError) return `${error.parts.what}: ${error.parts.why}`;
    throw error;
  }
}

export function tensorParallelOf({ metadata, model_info }: ProfileFields): number {
  return model_info.tensor_parallel_size ?? metadata?.config?.tensor_parallel_size ?? 1;
}

/** The dtype that ran goes before the one that was asked for: "auto" says nothing. */
function storageFor({ metadata, model_info }: ProfileFields, config: Record<string, unknown>) {
  const asked = metadata?.config ?? {};
  const dtype = [model_info.dtype, asked.dtype]
    .map((name) => name?.replace(/^torch\./, ''))
    .map((name) => dtypes.find((one) => one === name))
    .find((one) => one !== undefined);
  const quantization = model_info.quantization ?? asked.quantization ?? null;
  return storageOf(config, {
    dtype,
    quantization: quantization === null ? null : schemeNamed(quantization),
    kvCacheDtype: asked.kv_cache_dtype ? kvDTypeNamed(asked.kv_cache_dtype) : null,
  });
}

function gpuOf(profile: ProfileFields): MemoryRequest['gpu'] {
  const { gpuName: name, gpuBytes: totalBytes } = measuredOf(profile);
  if (name === null && totalBytes === null) return null;
  const sheet = name === null ? null : gpuSheet(name);
  return { name, totalBytes, architecture: sheet?.architecture ?? null };
}

type Count = 'gpuMemoryUtilization' | 'maxModelLen';

function numberIn(value: unknown, key: Count): { [key in Count]?: number } {
  return typeof value === 'number' ? { [key]: value } : {};
}
