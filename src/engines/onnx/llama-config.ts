import { readArchitecture } from '../../llm/read-architecture.js';
import { unsupported } from './model-errors.js';
import { readRope, type Rope } from './rotary.js';

/**
 * Config fields that the graph writer needs for a Llama-like decoder; the other fields do not change the computation.
 */
export interface LlamaConfig {
  modelType: string;
  hiddenSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  intermediateSize: number;
  vocabSize: number;
  /** Rows of the rotary tables: the longest context. */
  maxPositions: number;
  rmsNormEps: number;
  tieEmbeddings: boolean;
  /** Biases of q, k, v. */
  qkvBias: boolean;
  /** Bias of the attention's output projection. */
  outputBias: boolean;
  /** Biases of gate, up, down. */
  mlpBias: boolean;
  /** RMSNorm over each head of q and k before the rotation (Qwen3). */
  qkNorm: boolean;
  rope: Rope;
  /** Per layer: number of latest keys that a query sees, including its own; null: all. */
  slidingWindow: (number | null)[];
}

/** model_type values with Llama's decoder, except for biases, q/k norms and windows. */
export const writableFamilies = ['llama', 'mistral', 'qwen2', 'qwen3'] as const;

/** Longest context of a model that inferscope writes: rotary tables of 32,768 positions take 8 MB at head_dim 64. */
const longestContext = 32_768;

/**
 * Reads a Hugging Face config.json for the graph writer.
 * @throws E_MODEL_CONFIG a field is missing or impossible; E_MODEL_ARCHITECTURE the writer cannot build it
 */
export function readLlamaConfig(config: Record<string, unknown>): LlamaConfig {
  const a = readArchitecture(config);
  const { attention, mlp } = a.layers[0]!;
  if (!writableFamilies.some((family) => family === a.modelType)) {
    throw unsupported(`model_type is "${a.modelType}"`, `it writes ${writableFamilies.join(', ')} models`);
  }
  // The families above all have this form; the checks let the compiler know.
  if (attention.kind !== 'grouped' || mlp.kind !== 'dense' || a.partOfLarger) {
    throw unsupported(
      'layers are not those of a plain text decoder',
      'it writes grouped attention and dense MLPs',
    );
  }
  if (attention.headDim % 8 !== 0) {
    throw unsupported(
      `head_dim is ${attention.headDim}`,
      "the runtime's attention operator takes multiples of 8",
    );
  }
  if (attention.rotaryDim !== attention.headDim) {
    throw unsupported(
      `rotary dimension is ${attention.rotaryDim} of ${attention.headDim}`,
      'it rotates whole heads',
    );
  }
  const act = config['hidden_act'] ?? 'silu';
  if (act !== 'silu')
    throw unsupported(`hidden_act is ${JSON.stringify(act)}`, 'it writes SwiGLU (silu) layers');
  const epsilon = config['rms_norm_eps'];
  return {
    modelType: a.modelType,
    hiddenSize: a.hiddenSize,
    numLayers: a.layers.length,
    numHeads: attention.headCount,
    numKvHeads: attention.kvHeadCount,
    headDim: attention.headDim,
    intermediateSize: mlp.intermediateSize,
    vocabSize: a.vocabSize,
    maxPositions: Math.min(a.maxPositions ?? 4096, longestContext),
    // 1e-6 is the default of all four configuration classes in transformers.
    rmsNormEps: typeof epsilon === 'number' && epsilon > 0 ? epsilon : 1e-6,
    tieEmbeddings: a.tiedEmbeddings,
    qkvBias: attention.qkvBias,
    outputBias: attention.outputBias,
    mlpBias: mlp.bias,
    qkNorm: attention.qkNorm === 'rmsnorm',
    rope: readRope(config),
    slidingWindow: a.layers.map((layer) => layer.attention.window),
  };
}
