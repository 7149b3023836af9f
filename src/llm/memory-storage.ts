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
  int4: 'matmulnbits-int4',
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

/** Formats of the quantized dtypes; `matmulnbits-int4` is what `profile --dtype int4` runs. */
const schemeOf: Partial<Record<DType, SchemeName>> = {
  int4: 'matmulnbits-int4',
  int8: 'int8-row',
  float8: 'fp8-row',
  nvfp4: 'nvfp4',
  mxfp4: 'mxfp4',
};

interface RequestedStorage {
  dtype?: DType | undefined;
  quantization?: SchemeName | null | undefined;
  kvCacheDtype?: DType | null | undefined;
}

/**
 * Weights as requested, else as the config declares them, else float16. Activations and KV cache use a float dtype
 * unless a cache dtype is requested.
 */
export function storageOf(config: Record<string, unknown>, requested: RequestedStorage): Storage {
  const requestedDType = requested.dtype;
  const scheme =
    requested.quantization ?? (requestedDType === undefined ? undefined : schemeOf[requestedDType]);
  const isFloat =
    requestedDType === 'float32' || requestedDType === 'float16' || requestedDType === 'bfloat16';
  const float = isFloat ? requestedDType : (declaredDType(config) ?? 'float16');
  const kvCache = requested.kvCacheDtype ?? float;
  if (scheme !== undefined) {
    const weights = quantizedWeights(scheme, float);
    // A quantized checkpoint declares that itself.
    const loads = requested.quantization && !('quantization_config' in config) ? { loadedIn: float } : {};
    return { weights, activations: float, kvCache, ...loads };
  }
  const declared = requestedDType === undefined ? declaredWeights(config) : null;
  return { weights: declared ?? floatStorage(float).weights, activations: float, kvCache };
}
