import { InferscopeError } from '../model/errors.js';

/** A tensor of a GGUF header; `dtype` is ggml's type number. */
export interface GgufTensor {
  name: string;
  shape: readonly bigint[];
  dtype: number;
}

/** ggml's block types: [name, weights per block, bytes per block] (ggml.h, ggml-common.h). */
const blockTypes: Readonly<Record<number, readonly [string, number, number]>> = {
  0: ['F32', 1, 4],
  1: ['F16', 1, 2],
  2: ['Q4_0', 32, 18],
  3: ['Q4_1', 32, 20],
  6: ['Q5_0', 32, 22],
  7: ['Q5_1', 32, 24],
  8: ['Q8_0', 32, 34],
  9: ['Q8_1', 32, 36],
  10: ['Q2_K', 256, 84],
  11: ['Q3_K', 256, 110],
  12: ['Q4_K', 256, 144],
  13: ['Q5_K', 256, 176],
  14: ['Q6_K', 256, 210],
  15: ['Q8_K', 256, 292],
  16: ['IQ2_XXS', 256, 66],
  17: ['IQ2_XS', 256, 74],
  18: ['IQ3_XXS', 256, 98],
  19: ['IQ1_S', 256, 50],
  20: ['IQ4_NL', 32, 18],
  21: ['IQ3_S', 256, 110],
  22: ['IQ2_S', 256, 82],
  23: ['IQ4_XS', 256, 136],
  24: ['I8', 1, 1],
  25: ['I16', 1, 2],
  26: ['I32', 1, 4],
  27: ['I64', 1, 8],
  28: ['F64', 1, 8],
  29: ['IQ1_M', 256, 56],
  30: ['BF16', 1, 2],
  34: ['TQ1_0', 256, 54],
  35: ['TQ2_0', 256, 66],
  39: ['MXFP4', 32, 17],
};

interface GgufWeights {
  bytes: number;
  parameters: number;
  /** Bytes by block type. */
  byDtype: Record<string, number>;
}

/**
 * Exact sizes from a GGUF header.
 * @throws E_MODEL_FILE for a block type missing from this table
 */
export function ggufWeights(tensors: readonly GgufTensor[], file: string): GgufWeights {
  const sum: GgufWeights = { bytes: 0, parameters: 0, byDtype: {} };
  for (const { name, shape, dtype } of tensors) {
    const elements = Number(shape.reduce((n, size) => n * size, 1n));
    const type = blockTypes[dtype];
    if (!type) {
      throw new InferscopeError('E_MODEL_FILE', {
        what: `${file} contains a tensor of an unknown ggml type: ${dtype}`,
        why: `${name} could not be sized, and a guess would look like a measurement.`,
        fix: "Give the model's config.json and --quantization instead.",
      });
    }
    const [label, weights, blockBytes] = type;
    const bytes = (elements / weights) * blockBytes;
    sum.bytes += bytes;
    sum.byDtype[label] = (sum.byDtype[label] ?? 0) + bytes;
    // Rotary factors of Llama 3 and Phi-3 are stored as a tensor, but are not weights.
    if (!/rope_(freqs|factors_long|factors_short)\.weight$/.test(name)) sum.parameters += elements;
  }
  return sum;
}

/** `general.architecture` of llama.cpp → model_type of config.json. */
const modelTypes: Readonly<Record<string, string>> = {
  llama: 'llama',
  qwen2: 'qwen2',
  qwen3: 'qwen3',
  qwen2moe: 'qwen2_moe',
  qwen3moe: 'qwen3_moe',
  gemma: 'gemma',
  gemma2: 'gemma2',
  gemma3: 'gemma3_text',
  phi2: 'phi',
  phi3: 'phi3',
  gpt2: 'gpt2',
  deepseek2: 'deepseek_v2',
};

/**
 * A config.json from a GGUF header: keys of llama.cpp (docs: ggml/docs/gguf.md, "Standardized key-value pairs"),
 * vocabulary and tied weights from the tensors.
 * @throws E_MODEL_ARCHITECTURE for an unknown architecture, E_MODEL_FILE if a key is missing
 */
export function ggufConfig(
  metadata: Readonly<Record<string, unknown>>,
  tensors: readonly GgufTensor[],
  file: string,
): Record<string, unknown> {
  const architecture = String(metadata['general.architecture']);
  const modelType = Object.hasOwn(modelTypes, architecture) ? modelTypes[architecture]! : null;
  if (modelType === null) {
    throw new InferscopeError('E_MODEL_ARCHITECTURE', {
      what: `${file} has the architecture "${architecture}"`,
      why: `Its arithmetic is not known. Known in GGUF files: ${Object.keys(modelTypes).join(', ')}.`,
      fix: "Give the model's config.json if it is built like one of the known families.",
    });
  }
  const key = (name: string): unknown => metadata[`${architecture}.${name}`];
  const number = (name: string): number | undefined => {
    const value = key(name);
    // A list if layers differ; the first layer is used for all.
    const scalar: unknown = Array.isArray(value) ? value[0] : value;
    return typeof scalar === 'number' || typeof scalar === 'bigint' ? Number(scalar) : undefined;
  };
  const shapeOf = (name: string): number[] | undefined =>
    tensors.find((tensor) => tensor.name === name)?.shape.map(Number);
  const experts = number('expert_count') ?? 0;
  const hidden = number('embedding_length');
  const layers = number('block_count');
  if (hidden === undefined || layers === undefined) {
    throw new InferscopeError('E_MODEL_FILE', {
      what: `${file} does not say how large the model is`,
      why: `${architecture}.embedding_length or ${architecture}.block_count is missing: it holds a vocabulary, or a part of a model.`,
      fix: 'Give the first file of the model, or its config.json.',
    });
  }
  const has = (name: string): boolean => tensors.some((tensor) => tensor.name === name);
  const latent = number('attention.kv_lora_rank');
  const rope = number('rope.dimension_count');
  const valueLength = number('attention.value_length');
  const keyLength = number('attention.key_length');
  const isV3 = modelType === 'deepseek_v2' && tensors.some(({ name }) => name.includes('exp_probs_b'));
  return withoutUndefined({
    model_type: isV3 ? 'deepseek_v3' : experts > 0 && modelType === 'llama' ? 'mixtral' : modelType,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: number('attention.head_count'),
    num_key_value_heads: number('attention.head_count_kv') ?? number('attention.head_count'),
    intermediate_size: number('feed_forward_length') ?? number('expert_feed_forward_length'),
    vocab_size: shapeOf('token_embd.weight')?.[1] ?? number('vocab_size'),
    max_position_embeddings: number('context_length'),
    n_positions: modelType === 'gpt2' ? number('context_length') : undefined,
    tie_word_embeddings: !has('output.weight'),
    sliding_window: number('attention.sliding_window') ?? null,
    ...(latent === undefined
      ? { head_dim: keyLength }
      : {
          // Since 2025 deepseek2 has the absorbed sizes in key_length and the real ones in *_mla.
          kv_lora_rank: latent,
          q_lora_rank: number('attention.q_lora_rank'),
          qk_rope_head_dim: rope,
          qk_nope_head_dim: (number('attention.key_length_mla') ?? keyLength ?? 0) - (rope ?? 0),
          v_head_dim: number('attention.value_length_mla') ?? valueLength,
          first_k_dense_replace: number('leading_dense_block_count'),
          n_shared_experts: number('expert_shared_count'),
        }),
    ...(experts > 0
      ? {
          num_local_experts: experts,
          num_experts: experts,
          n_routed_experts: latent === undefined ? undefined : experts,
          num_experts_per_tok: number('expert_used_count'),
          moe_intermediate_size: number('expert_feed_forward_length'),
          shared_expert_intermediate_size: number('expert_shared_feed_forward_length'),
        }
      : {}),
  });
}

function withoutUndefined(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}
