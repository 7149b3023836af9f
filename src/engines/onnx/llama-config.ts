import { InferscopeError } from '../../model/errors.js';

/** What the graph writer must know of a Llama-like decoder; everything else of config.json does not change the computation. */
export interface LlamaConfig {
  modelType: string;
  hiddenSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  intermediateSize: number;
  vocabSize: number;
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
  /** Per layer: how many of the latest keys, its own included, a query sees; null is all of them. */
  slidingWindow: (number | null)[];
}

export interface Rope {
  theta: number;
  scaling:
    | { type: 'default' }
    | { type: 'linear'; factor: number }
    | {
        type: 'llama3';
        factor: number;
        lowFreqFactor: number;
        highFreqFactor: number;
        originalMaxPositions: number;
      };
}

/** model_type of config.json: which biases and norms the family has. */
const families: Record<string, { qkvBias: boolean | 'attention_bias'; qkNorm: boolean }> = {
  llama: { qkvBias: 'attention_bias', qkNorm: false },
  mistral: { qkvBias: false, qkNorm: false },
  qwen2: { qkvBias: true, qkNorm: false },
  qwen3: { qkvBias: 'attention_bias', qkNorm: true },
};

export const supportedFamilies = Object.keys(families);

/** Longest context of a model that inferscope writes: the rotary tables of 32,768 positions take 16 MB at head_dim 64. */
const longestContext = 32_768;

/**
 * Reads a Hugging Face config.json for the graph writer.
 * @param origin names the file or preset in errors
 * @throws E_MODEL_CONFIG a field is missing or no sensible number; E_MODEL_ARCHITECTURE it asks for what the writer cannot build
 */
export function readLlamaConfig(config: Record<string, unknown>, origin: string): LlamaConfig {
  const modelType = config['model_type'];
  if (typeof modelType !== 'string') throw badField(origin, 'model_type', modelType, 'the name of a family');
  const family = families[modelType];
  if (!family) {
    throw unsupported(
      origin,
      `model_type is "${modelType}"`,
      `it writes ${supportedFamilies.join(', ')} models`,
    );
  }
  const size = (key: string, fallback?: number): number => {
    const value = config[key] ?? fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
    throw badField(origin, key, value, 'a positive integer');
  };
  const hiddenSize = size('hidden_size');
  const numHeads = size('num_attention_heads');
  const numKvHeads = size('num_key_value_heads', numHeads);
  const headDim = size('head_dim', hiddenSize / numHeads);
  const numLayers = size('num_hidden_layers');
  if (numHeads % numKvHeads !== 0) {
    throw badField(
      origin,
      'num_key_value_heads',
      numKvHeads,
      `a divisor of num_attention_heads (${numHeads})`,
    );
  }
  if (headDim % 8 !== 0) {
    throw unsupported(
      origin,
      `head_dim is ${headDim}`,
      "the runtime's attention operator takes multiples of 8",
    );
  }
  const act = config['hidden_act'] ?? 'silu';
  if (act !== 'silu')
    throw unsupported(origin, `hidden_act is ${JSON.stringify(act)}`, 'it writes SwiGLU (silu) layers');
  const partial = config['partial_rotary_factor'] ?? 1;
  if (partial !== 1) {
    throw unsupported(
      origin,
      `partial_rotary_factor is ${JSON.stringify(partial)}`,
      'it rotates whole heads',
    );
  }
  const attentionBias = config['attention_bias'] === true;
  return {
    modelType,
    hiddenSize,
    numLayers,
    numHeads,
    numKvHeads,
    headDim,
    intermediateSize: size('intermediate_size'),
    vocabSize: size('vocab_size'),
    maxPositions: Math.min(size('max_position_embeddings', 4096), longestContext),
    rmsNormEps: typeof config['rms_norm_eps'] === 'number' ? config['rms_norm_eps'] : 1e-6,
    // transformers' own default is true, but every family here has set false in its configuration class.
    tieEmbeddings: config['tie_word_embeddings'] === true,
    qkvBias: family.qkvBias === 'attention_bias' ? attentionBias : family.qkvBias,
    outputBias: family.qkvBias === 'attention_bias' && attentionBias,
    mlpBias: modelType === 'llama' && config['mlp_bias'] === true,
    qkNorm: family.qkNorm,
    rope: readRope(config, origin),
    slidingWindow: Array.from({ length: numLayers }, (_, layer) => windowOf(config, modelType, layer)),
  };
}

function readRope(config: Record<string, unknown>, origin: string): Rope {
  // transformers 5 writes rope_parameters; before it were rope_theta and rope_scaling.
  const parameters = record(config['rope_parameters']) ?? record(config['rope_scaling']) ?? {};
  const theta = parameters['rope_theta'] ?? config['rope_theta'] ?? 10_000;
  const number = (key: string): number => {
    const value = parameters[key];
    if (typeof value === 'number' && value > 0) return value;
    throw badField(origin, `rope_scaling.${key}`, value, 'a positive number');
  };
  if (typeof theta !== 'number' || !(theta > 0))
    throw badField(origin, 'rope_theta', theta, 'a positive number');
  const type = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  if (type === 'default') return { theta, scaling: { type } };
  if (type === 'linear') return { theta, scaling: { type, factor: number('factor') } };
  if (type === 'llama3') {
    return {
      theta,
      scaling: {
        type,
        factor: number('factor'),
        lowFreqFactor: number('low_freq_factor'),
        highFreqFactor: number('high_freq_factor'),
        originalMaxPositions: number('original_max_position_embeddings'),
      },
    };
  }
  throw unsupported(
    origin,
    `rope type is ${JSON.stringify(type)}`,
    'it writes default, linear and llama3 rotary tables',
  );
}

function windowOf(config: Record<string, unknown>, modelType: string, layer: number): number | null {
  const window = config['sliding_window'];
  if (typeof window !== 'number') return null;
  if (modelType === 'mistral') return window;
  if (config['use_sliding_window'] !== true) return null;
  const layerTypes = config['layer_types'];
  if (Array.isArray(layerTypes)) return layerTypes[layer] === 'sliding_attention' ? window : null;
  // Qwen: the first max_window_layers layers see everything.
  const full = config['max_window_layers'];
  return typeof full === 'number' && layer < full ? null : window;
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function badField(origin: string, key: string, value: unknown, wanted: string): InferscopeError {
  return new InferscopeError('E_MODEL_CONFIG', {
    what: `${origin}: "${key}" is not usable`,
    why: `It is ${value === undefined ? 'missing' : JSON.stringify(value)} and must be ${wanted}.`,
    fix: `Correct "${key}" in the file, or take the config.json that the model's authors published.`,
  });
}

function unsupported(origin: string, is: string, can: string): InferscopeError {
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `${origin}: the embedded engine cannot build this architecture`,
    why: `Its ${is}; ${can}.`,
    fix: 'Export the model to ONNX (optimum-cli export onnx --model <id> <folder>) and pass that folder, or use --model llama-24m.',
  });
}
