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
 * Converts the request for the engine: vLLM has a name for every flag. Other engines reject --kv-cache-dtype,
 * --quantization and --tensor-parallel-size if they do not support them; --gpu-memory-utilization and --max-model-len without effect are
 * issues.
 * `config` is the resolved request: an engine argument overrides the flag of the same name; without --dtype the
 * embedded engine uses its default and the dtype of a server is unknown.
 * @throws E_USAGE
 */
export function engineRequest(
  options: MemoryOptions,
  { model, config }: MemoryRequest,
  engine: EngineName | null,
): { request: EngineRequest; config: MemoryPlan['config']; issues: Issue[] } {
  const [variant, ...more] = expandVariants(options.engineArg ?? []);
  if (more.length > 0) {
    throw new InferscopeError('E_USAGE', {
      what: `these engine arguments give ${more.length + 1} variants`,
      why: 'A memory profile needs one configuration.',
      fix: 'Give each argument one value; inferscope sweep runs several.',
    });
  }
  const engineArgs = { ...engineArguments(config, engine), ...variant!.engine_args };
  refuseUnsupported(config, engine);
  // The embedded engine has a default dtype of its own.
  const isEngineDtype = engine === 'onnx' && options.dtype === undefined;
  return {
    config: { ...config, ...overriddenConfig(config, engineArgs), dtype: engineArgs['dtype'] ?? usedDtype() },
    request: {
      model,
      weights: options.weights ?? null,
      dtype: isEngineDtype ? null : config.dtype,
      device: options.device ?? null,
      threads: options.threads ?? null,
      engineArgs,
      url: options.url ?? null,
      python: options.python ?? null,
    },
    issues: flagIssues(options, engine),
  };

  function usedDtype(): string | null {
    if (options.dtype !== undefined) return config.dtype;
    if (options.url !== undefined) return null;
    return engine === 'onnx' ? 'float32' : config.dtype;
  }
}

/** Flags under the names of the engine's arguments; null: vLLM in a container or a server. */
function engineArguments(config: MemoryPlan['config'], engine: EngineName | null): Record<string, string> {
  const ranks = config.tensor_parallel_size;
  const shared = {
    tensor_parallel_size: ranks > 1 ? ranks : null,
    quantization: config.quantization,
  };
  const vllmOnly = {
    gpu_memory_utilization: config.gpu_memory_utilization,
    max_model_len: config.max_model_len,
    kv_cache_dtype: config.kv_cache_dtype,
  };
  const values =
    engine === 'vllm' || engine === null
      ? { ...shared, ...vllmOnly }
      : engine === 'transformers'
        ? shared
        : {};
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (value === null ? [] : [[key, String(value)]])),
  );
}

/** @throws E_USAGE for flags that the engine does not support */
function refuseUnsupported(config: MemoryPlan['config'], engine: EngineName | null): void {
  const refuse = (flag: string, value: string | number | null, why: string): void => {
    if (value === null) return;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} ${value} does not work with --engine ${engine}`,
      why,
      fix: `Remove ${flag}, or use --engine vllm.`,
    });
  };
  if (engine === 'transformers')
    refuse(
      '--kv-cache-dtype',
      config.kv_cache_dtype,
      'Transformers stores the KV cache in the dtype of the model.',
    );
  if (engine !== 'onnx') return;
  const ranks = config.tensor_parallel_size;
  refuse(
    '--tensor-parallel-size',
    ranks > 1 ? ranks : null,
    'The embedded engine runs in one process on the CPU.',
  );
  refuse('--quantization', config.quantization, 'The embedded engine quantizes with --dtype int4.');
  refuse('--kv-cache-dtype', config.kv_cache_dtype, 'The embedded engine stores the KV cache in float32.');
}

function flagIssues(options: MemoryOptions, engine: EngineName | null): Issue[] {
  const issues: Issue[] = [];
  for (const [flag, value] of [
    ['--gpu-memory-utilization', options.gpuMemoryUtilization],
    ['--max-model-len', options.maxModelLen],
  ] as const)
    if ((engine === 'transformers' || engine === 'onnx') && value !== undefined)
      issues.push({
        code: 'flag_without_effect',
        severity: 'warning',
        text: `${flag} has no effect: ${engine} allocates on demand.`,
      });
  if (engine === 'onnx' && options.dtype === undefined)
    issues.push({
      code: 'dtype_of_engine',
      severity: 'info',
      text: 'The embedded engine computes in float32; the default float16 is for GPUs.',
    });
  return issues;
}

/** Fields that engine arguments of the same name override. */
function overriddenConfig(config: MemoryPlan['config'], engineArgs: Readonly<Record<string, string>>) {
  const numberIn = (key: string): number | null => {
    const value = Number(engineArgs[key] ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  };
  return {
    quantization: engineArgs['quantization'] ?? config.quantization,
    kv_cache_dtype: engineArgs['kv_cache_dtype'] ?? config.kv_cache_dtype,
    tensor_parallel_size: numberIn('tensor_parallel_size') ?? config.tensor_parallel_size,
    gpu_memory_utilization: numberIn('gpu_memory_utilization') ?? config.gpu_memory_utilization,
    max_model_len: numberIn('max_model_len') ?? config.max_model_len,
  };
}
