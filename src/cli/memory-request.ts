import type { EngineName, EngineRequest } from '../model/engine.js';
import { parseDType } from '../model/dtype.js';
import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import type { MemoryPlan } from '../model/memory-plan.js';
import { expandVariants } from './bench-variants.js';
import { memoryDefaults, type MemoryOptions } from './memory-options.js';

export interface MemoryRequest {
  model: string;
  config: MemoryPlan['config'];
  given: MemoryPlan['given'];
}

/** @throws E_USAGE for missing or conflicting options */
export function memoryRequest(options: MemoryOptions): MemoryRequest {
  for (const [flag, value] of [
    ['--model', options.model],
    ['--input-len', options.inputLen],
    ['--output-len', options.outputLen],
  ] as const) {
    if (value !== undefined) continue;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} is missing`,
      why: 'A memory profile needs one model and one shape.',
      fix: 'Type for example: inferscope memory --model llama-24m --input-len 512 --output-len 512 --batch-size 8',
    });
  }
  if (options.container !== undefined && options.url !== undefined) {
    throw new InferscopeError('E_USAGE', {
      what: '--container and --url are mutually exclusive',
      why: 'The engine runs in one place.',
      fix: 'Use one of them.',
    });
  }
  const { inputLen, outputLen, maxModelLen } = options;
  if (maxModelLen !== undefined && inputLen! + outputLen! > maxModelLen) {
    throw new InferscopeError('E_LENGTHS', {
      what: `--input-len ${inputLen!} and --output-len ${outputLen!} exceed --max-model-len ${maxModelLen}`,
      why: 'A sequence contains prompt and output.',
      fix: `Use --max-model-len ${inputLen! + outputLen!}, or shorter lengths.`,
    });
  }
  return {
    model: options.model!,
    config: {
      model: options.model!,
      input_len: inputLen!,
      output_len: outputLen!,
      batch_size: options.batchSize,
      dtype: options.dtype === undefined ? memoryDefaults.dtype : parseDType(options.dtype),
      quantization: options.quantization ?? null,
      kv_cache_dtype: options.kvCacheDtype ?? null,
      tensor_parallel_size: options.tensorParallelSize,
      gpu_memory_utilization: options.gpuMemoryUtilization ?? memoryDefaults.gpuMemoryUtilization,
      max_model_len: maxModelLen ?? null,
    },
    given: {
      num_parameters: options.modelParams ?? null,
      num_layers: options.numLayers ?? null,
      num_heads: options.numHeads ?? null,
      num_kv_heads: options.numKvHeads ?? null,
      head_dim: options.headDim ?? null,
      hidden_size: options.hiddenSize ?? null,
    },
  };
}

/**
 * Converts the request for the engine: vLLM has a name for every flag; other engines reject flags they do not support.
 * `config` is the resolved request: an engine argument overrides the flag of the same name; without --dtype the
 * embedded engine uses its default and the dtype of a server is unknown.
 * @throws E_USAGE
 */
export function engineRequest(
  options: MemoryOptions,
  { model, config }: MemoryRequest,
  engine: EngineName | null,
): { request: EngineRequest; config: MemoryPlan['config']; issues: Issue[] } {
  const issues: Issue[] = [];
  const [variant, ...more] = expandVariants(options.engineArg ?? []);
  if (more.length > 0) {
    throw new InferscopeError('E_USAGE', {
      what: `these engine arguments give ${more.length + 1} variants`,
      why: 'A memory profile needs one configuration.',
      fix: 'Give each argument one value; inferscope sweep runs several.',
    });
  }
  const engineArgs = { ...variant!.engine_args };
  const set = (key: string, value: string | number | null | undefined) => {
    if (value !== null && value !== undefined) engineArgs[key] ??= String(value);
  };
  const ranks = config.tensor_parallel_size;
  let dtype: string | null = config.dtype;
  if (engine === 'vllm' || engine === null) {
    set('tensor_parallel_size', ranks > 1 ? ranks : null);
    set('gpu_memory_utilization', config.gpu_memory_utilization);
    set('max_model_len', config.max_model_len);
    set('quantization', config.quantization);
    set('kv_cache_dtype', config.kv_cache_dtype);
  } else if (engine === 'transformers') {
    set('tensor_parallel_size', ranks > 1 ? ranks : null);
    set('quantization', config.quantization);
    refuse(
      '--kv-cache-dtype',
      config.kv_cache_dtype,
      'transformers stores the KV cache in the dtype of the model',
    );
    ignored('--gpu-memory-utilization', options.gpuMemoryUtilization);
  } else if (engine === 'onnx') {
    refuse(
      '--tensor-parallel-size',
      ranks > 1 ? ranks : null,
      'the embedded engine runs in one process on the CPU',
    );
    refuse('--quantization', config.quantization, 'the embedded engine quantizes with --dtype int4');
    refuse('--kv-cache-dtype', config.kv_cache_dtype, 'the embedded engine stores the KV cache in float32');
    ignored('--gpu-memory-utilization', options.gpuMemoryUtilization);
    if (options.dtype === undefined) {
      dtype = null;
      issues.push({
        code: 'dtype_of_engine',
        severity: 'info',
        text: 'The embedded engine computes in float32; the default float16 is for GPUs.',
      });
    }
  }
  const untyped = options.url !== undefined ? null : engine === 'onnx' ? 'float32' : config.dtype;
  return {
    config: {
      ...config,
      dtype: engineArgs['dtype'] ?? (options.dtype === undefined ? untyped : config.dtype),
      quantization: engineArgs['quantization'] ?? config.quantization,
      kv_cache_dtype: engineArgs['kv_cache_dtype'] ?? config.kv_cache_dtype,
      tensor_parallel_size: numberIn('tensor_parallel_size') ?? ranks,
      gpu_memory_utilization: numberIn('gpu_memory_utilization') ?? config.gpu_memory_utilization,
      max_model_len: numberIn('max_model_len') ?? config.max_model_len,
    },
    request: {
      model,
      weights: options.weights ?? null,
      dtype,
      device: options.device ?? null,
      threads: options.threads ?? null,
      engineArgs,
      url: options.url ?? null,
      python: options.python ?? null,
    },
    issues,
  };

  function numberIn(key: string): number | null {
    const value = Number(engineArgs[key] ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  }

  function refuse(flag: string, value: string | number | null, why: string): void {
    if (value === null) return;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${value} does not work with --engine ${engine}`,
      why: `${why[0]!.toUpperCase()}${why.slice(1)}.`,
      fix: `Remove ${flag}, or use --engine vllm.`,
    });
  }

  function ignored(flag: string, value: unknown): void {
    if (value === undefined) return;
    const text = `${flag} has no effect: ${engine} allocates on demand.`;
    issues.push({ code: 'flag_without_effect', severity: 'warning', text });
  }
}
