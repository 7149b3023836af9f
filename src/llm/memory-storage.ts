import { parseDType, type DType } from '../model/dtype.js';
import {
  declaredDType,
  declaredWeights,
  parseScheme,
  quantizedWeights,
  type SchemeName,
} from './quantization.js';
import { floatStorage, type Storage } from './storage.js';

/** Engines' names for quantizations → the scheme that each name means by default. */
const engineNames: Readonly<Record<string, SchemeName>> = {
  awq: 'awq-int4-g128',
  awq_marlin: 'awq-int4-g128',
  gptq: 'gptq-int4-g128',
  gptq_marlin: 'gptq-int4-g128',
  fp8: 'fp8-row',
  fbgemm_fp8: 'fp8-row',
  int8: 'int8-row',
  int4: 'gptq-int4-g128',
  bitsandbytes: 'bnb-nf4',
  nf4: 'bnb-nf4',
  fp4: 'nvfp4',
  modelopt_fp4: 'nvfp4',
};

/**
 * A scheme by its own name or an engine's.
 * @throws E_DTYPE with the known schemes
 */
export function schemeNamed(text: string): SchemeName {
  const key = text.trim().toLowerCase();
  return Object.hasOwn(engineNames, key) ? engineNames[key]! : parseScheme(text);
}

/**
 * A KV cache's dtype by an engine's name, including fp8_e4m3 and fp8_e5m2; null for auto.
 * @throws E_DTYPE
 */
export function kvDTypeNamed(text: string): DType | null {
  const key = text.trim().toLowerCase();
  if (key === 'auto') return null;
  return parseDType(key.startsWith('fp8') ? 'fp8' : key);
}

/**
 * Weights and activations that a dtype of weights means; every command and what-if take it from here. On a GPU quantized
 * weights have 16-bit activations, and int4 is GPTQ. On a CPU, as in the embedded engine, activations stay, and int4 is
 * MatMulNBits, multiplied in int8.
 */
export function storedAs(
  dtype: DType,
  activations: DType,
  onCpu: boolean,
): Pick<Storage, 'weights' | 'activations'> {
  if (dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16') return floatStorage(dtype);
  const float = activations === 'float32' && !onCpu ? 'bfloat16' : activations;
  const scheme = {
    float8: 'fp8-row',
    int8: 'int8-row',
    int4: onCpu ? 'matmulnbits-int4' : 'gptq-int4-g128',
    nvfp4: 'nvfp4',
    mxfp4: 'mxfp4',
  } as const;
  const weights = quantizedWeights(scheme[dtype], float);
  return {
    weights: onCpu && dtype === 'int4' ? { ...weights, compute: 'int8' } : weights,
    activations: float,
  };
}

interface RequestedStorage {
  dtype?: DType | undefined;
  quantization?: SchemeName | null | undefined;
  kvCacheDtype?: DType | null | undefined;
  /** The embedded engine: it computes in float32, in whatever dtype the config is. */
  onCpu?: boolean;
}

/**
 * Weights as requested, else as the config declares them, else float16. Activations and KV cache use a float dtype
 * unless a cache dtype is requested.
 */
export function storageOf(config: Record<string, unknown>, requested: RequestedStorage): Storage {
  const { dtype, quantization, kvCacheDtype, onCpu = false } = requested;
  const declaredFloat = onCpu ? 'float32' : (declaredDType(config) ?? 'float16');
  const declared = onCpu ? null : declaredWeights(config);
  const { weights, activations } =
    dtype === undefined
      ? { weights: declared ?? floatStorage(declaredFloat).weights, activations: declaredFloat }
      : storedAs(dtype, declaredFloat, onCpu);
  const kvCache = kvCacheDtype ?? activations;
  if (!quantization) return { weights, activations, kvCache };
  // A quantized checkpoint declares that itself.
  const loads = 'quantization_config' in config ? {} : { loadedIn: activations };
  return { weights: quantizedWeights(quantization, activations), activations, kvCache, ...loads };
}
