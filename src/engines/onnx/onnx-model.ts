import type { DType } from '../../model/dtype.js';
import type { WriteProgress } from './model-cache.js';
import type { Workload } from '../../model/manifest.js';

/** A model that the embedded engine can open. */
export interface OnnxModel {
  name: string;
  /** Absolute path of the .onnx file. */
  modelPath: string;
  /** The unchanged config.json. */
  config: Record<string, unknown>;
  /** Type of the linear layers' weights; activations, norms and KV cache are float32. */
  dtype: DType;
  /** Quantization of the weights and compute dtype of the GEMMs; null for float weights. */
  quantization: string | null;
  weights: 'random' | 'trained';
  /** Bytes of parameters with quantization scales, in written models without rotary tables and shape constants. */
  weight_bytes: number;
  /** Null for an export of an architecture with unknown parameters. */
  num_parameters: number | null;
  tokenizerPath: string | null;
  /** Positions that the lm_head computes. */
  logits: 'last' | 'all';
  /** in-place: the graph appends to a preallocated cache. grows: every call returns longer tensors. */
  kvCache: 'in-place' | 'grows';
  /** Longest context of the model file; null if it has no limit. */
  maxContext: number | null;
}

/** The model as a workload records it. */
export const modelOfWorkload = (model: OnnxModel): NonNullable<Workload['model']> => ({
  name: model.name,
  config: model.config,
  dtype: model.dtype,
  quantization: model.quantization,
  weights: model.weights,
  num_parameters: model.num_parameters,
  weight_bytes: model.weight_bytes,
});

export interface ResolveOptions {
  /** Folder where written models are kept. */
  cacheDir: string;
  /** Default: float32 for written models, the file's own for exports. */
  dtype?: DType;
  /** Seed of the random weights. */
  seed?: number;
  logits?: 'last' | 'all';
  /** Compute dtype of int4 GEMMs; see linear.ts. Default int8. */
  computeInt4?: 'int8' | 'float32';
  onProgress?: (progress: WriteProgress) => void;
  /** Called with the model's facts before anything is written; throws to reject it. */
  accept?: (model: OnnxModel) => void;
}
