import { closest } from 'fastest-levenshtein';
import { InferscopeError } from '../model/errors.js';
import { configError, configFields, type ConfigFields } from './config-fields.js';
import { families, type Family, type NormPlacement, type Rule } from './families.js';
import { layerWindows } from './windows.js';

/** Multi-head, grouped-query (kvHeadCount < headCount) or multi-query (kvHeadCount = 1) attention. */
export interface GroupedAttention {
  kind: 'grouped';
  headCount: number;
  kvHeadCount: number;
  headDim: number;
  /** Dimensions of a head that rotate; 0 with learned positions. */
  rotaryDim: number;
  qkvBias: boolean;
  outputBias: boolean;
  qkNorm: 'none' | 'rmsnorm' | 'layernorm';
  /** Keys a query sees, itself included; null is all before it. */
  window: number | null;
}

/** Multi-head latent attention (DeepSeek-V2 paper, arXiv 2405.04434, section 2.1). */
export interface LatentAttention {
  kind: 'latent';
  headCount: number;
  /** Rank of the compressed query; null when queries are projected directly. */
  queryRank: number | null;
  kvRank: number;
  nopeDim: number;
  ropeDim: number;
  valueDim: number;
  bias: boolean;
  window: null;
}

export interface DenseMlp {
  kind: 'dense';
  gated: boolean;
  intermediateSize: number;
  bias: boolean;
}

export interface MoeMlp {
  kind: 'moe';
  expertCount: number;
  expertsPerToken: number;
  intermediateSize: number;
  /** Intermediate size of all shared experts together; 0 without. */
  sharedIntermediateSize: number;
  sharedGate: boolean;
  routerBias: boolean;
}

export interface Layer {
  index: number;
  attention: GroupedAttention | LatentAttention;
  mlp: DenseMlp | MoeMlp;
}

/** A decoder-only transformer, as far as its arithmetic goes. */
export interface Architecture {
  modelType: string;
  family: string;
  hiddenSize: number;
  vocabSize: number;
  /** null when the config does not tell. */
  maxPositions: number | null;
  norm: 'rmsnorm' | 'layernorm';
  norms: NormPlacement;
  finalNorm: boolean;
  /** Width of the token embedding; differs from hiddenSize in OPT-350m, which projects in and out. */
  embeddingDim: number;
  /** Rows of a learned position table; 0 with rotary positions. */
  positionRows: number;
  tiedEmbeddings: boolean;
  lmHeadBias: boolean;
  layers: Layer[];
  /** True when the config describes more than this decoder (a vision tower …) that is not counted here. */
  partOfLarger: boolean;
}

const names = {
  hiddenSize: ['hidden_size', 'n_embd'],
  layers: ['num_hidden_layers', 'n_layer'],
  heads: ['num_attention_heads', 'n_head'],
  intermediate: ['intermediate_size', 'n_inner', 'ffn_dim'],
  positions: ['max_position_embeddings', 'n_positions'],
} as const;

/**
 * Normalises a Hugging Face config.json, descending into `text_config`.
 * @throws E_MODEL_ARCHITECTURE for a model_type whose arithmetic is not known
 * @throws E_MODEL_CONFIG naming the field that is missing or impossible, and its value
 */
export function readArchitecture(config: Record<string, unknown>): Architecture {
  const { text, partOfLarger } = textConfig(config);
  const modelType = text['model_type'];
  if (typeof modelType !== 'string') {
    throw configError('model_type', modelType, 'It names the family, and the family decides the arithmetic.');
  }
  const family = families[modelType];
  if (!family || !Object.hasOwn(families, modelType)) throw unknownArchitecture(modelType);

  const fields = configFields({ ...family.defaults, ...withoutNulls(text) });
  const hiddenSize = fields.integer(names.hiddenSize);
  const layerCount = fields.integer(names.layers, { max: 10_000 });
  const maxPositions =
    family.positions.kind === 'learned'
      ? fields.integer(names.positions)
      : fields.integerOrNull('max_position_embeddings');
  const attentionOf = readAttention(fields, family, hiddenSize, layerCount);
  const postNorm = family.name === 'OPT' && !fields.boolean('do_layer_norm_before', true);
  return {
    modelType,
    family: family.name,
    hiddenSize,
    vocabSize: fields.integer(['vocab_size']),
    maxPositions,
    norm: family.norm,
    norms: postNorm ? 'post' : family.norms,
    finalNorm: !postNorm && !fields.boolean('_remove_final_layer_norm', false),
    embeddingDim: fields.integer(['word_embed_proj_dim'], { fallback: hiddenSize }),
    positionRows: family.positions.kind === 'learned' ? (maxPositions ?? 0) + family.positions.offset : 0,
    tiedEmbeddings: fields.boolean('tie_word_embeddings', family.tied),
    lmHeadBias: family.lmHeadBias,
    layers: Array.from({ length: layerCount }, (_, index) => ({
      index,
      attention: attentionOf(index),
      mlp: readMlp(fields, family, hiddenSize, layerCount, index),
    })),
    partOfLarger,
  };
}

/** Multimodal configs hold the decoder's fields in `text_config`; only tying may be stated outside it. */
function textConfig(config: Record<string, unknown>): {
  text: Record<string, unknown>;
  partOfLarger: boolean;
} {
  const inner = config['text_config'];
  if (inner === undefined || inner === null) return { text: config, partOfLarger: false };
  if (typeof inner !== 'object' || Array.isArray(inner)) {
    throw configError('text_config', inner, 'It must be an object with the decoder’s fields.');
  }
  const { model_type, tie_word_embeddings } = config;
  const text = { ...withoutNulls({ model_type, tie_word_embeddings }), ...inner };
  return { text, partOfLarger: true };
}

/** Nulls that say something: no window; as many KV heads as heads. Every other null means "as the class has it". */
const meaningfulNulls = new Set(['sliding_window', 'num_key_value_heads']);

function withoutNulls(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(config).filter(([k, v]) => v !== undefined && (v !== null || meaningfulNulls.has(k))),
  );
}

function unknownArchitecture(modelType: string): InferscopeError {
  const known = Object.keys(families);
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `unknown model architecture "${modelType}"`,
    why: `Its parameters and FLOPs cannot be derived. Known model types: ${known.join(', ')}.`,
    fix: `If the model is built like one of these, set "model_type" in a copy of its config.json (nearest name: "${closest(modelType, known)}").`,
  });
}

function holds(fields: ConfigFields, rule: Rule): boolean {
  return typeof rule === 'boolean' ? rule : fields.boolean(rule.field, rule.fallback);
}

function readAttention(
  fields: ConfigFields,
  family: Family,
  hiddenSize: number,
  layerCount: number,
): (index: number) => Layer['attention'] {
  const headCount = fields.integer(names.heads);
  if (family.attention === 'latent') {
    const latent: LatentAttention = {
      kind: 'latent',
      headCount,
      queryRank: fields.integerOrNull('q_lora_rank'),
      kvRank: fields.integer(['kv_lora_rank']),
      nopeDim: fields.integer(['qk_nope_head_dim']),
      ropeDim: fields.integer(['qk_rope_head_dim']),
      valueDim: fields.integer(['v_head_dim']),
      bias: holds(fields, family.qkvBias),
      window: null,
    };
    return () => latent;
  }

  const kvHeadCount = fields.integer(['num_key_value_heads'], { fallback: headCount });
  if (headCount % kvHeadCount !== 0) {
    throw configError(
      'num_key_value_heads',
      kvHeadCount,
      `Query heads share key/value heads evenly, and ${headCount} heads do not divide by it.`,
    );
  }
  const explicitHeadDim = fields.integerOrNull('head_dim');
  if (explicitHeadDim === null && hiddenSize % headCount !== 0) {
    throw configError(
      'num_attention_heads',
      headCount,
      `Without head_dim a head is hidden_size / heads wide, and ${hiddenSize} does not divide by it.`,
    );
  }
  const headDim = explicitHeadDim ?? hiddenSize / headCount;
  const windows = layerWindows(fields, family.window, layerCount);
  const base: Omit<GroupedAttention, 'window'> = {
    kind: 'grouped',
    headCount,
    kvHeadCount,
    headDim,
    rotaryDim: readRotaryDim(fields, family, headDim),
    qkvBias: holds(fields, family.qkvBias),
    outputBias: holds(fields, family.outputBias),
    qkNorm:
      typeof family.qkNorm === 'string'
        ? family.qkNorm
        : fields.boolean(family.qkNorm.field, false)
          ? family.qkNorm.kind
          : 'none',
  };
  return (index) => ({ ...base, window: windows[index] ?? null });
}

function readRotaryDim(fields: ConfigFields, family: Family, headDim: number): number {
  if (family.positions.kind === 'learned') return 0;
  const nested = fields.raw('rope_parameters');
  const inner: unknown =
    typeof nested === 'object' && nested !== null && 'partial_rotary_factor' in nested
      ? nested.partial_rotary_factor
      : undefined;
  const fallback = typeof inner === 'number' ? inner : family.positions.fraction;
  return Math.floor(headDim * fields.fraction('partial_rotary_factor', fallback));
}

function readMlp(
  fields: ConfigFields,
  family: Family,
  hiddenSize: number,
  layerCount: number,
  index: number,
): DenseMlp | MoeMlp {
  const { moe } = family;
  if (!moe || !isSparse(fields, moe.layers, layerCount, index)) {
    const fallback = family.name === 'GPT-2' ? 4 * hiddenSize : undefined;
    return {
      kind: 'dense',
      gated: family.gated,
      intermediateSize: fields.integer(names.intermediate, { fallback }),
      bias: holds(fields, family.mlpBias),
    };
  }
  const expertCount = fields.integer(moe.experts);
  const intermediateSize = fields.integer([moe.expertSize]);
  const { shared } = moe;
  const sharedIntermediateSize =
    shared === null
      ? 0
      : 'sizeField' in shared
        ? fields.integer([shared.sizeField])
        : fields.integer([shared.countField], { min: 0, fallback: 0 }) * intermediateSize;
  return {
    kind: 'moe',
    expertCount,
    expertsPerToken: fields.integer(['num_experts_per_tok'], { max: expertCount }),
    intermediateSize,
    sharedIntermediateSize,
    sharedGate: shared !== null && 'gate' in shared && shared.gate,
    routerBias: moe.routerBias,
  };
}

/** Whether a layer has experts, as transformers' modelling classes decide it. */
function isSparse(
  fields: ConfigFields,
  rule: 'every' | 'step' | 'first-dense',
  layerCount: number,
  index: number,
): boolean {
  if (rule === 'every') return true;
  if (rule === 'first-dense') {
    if (fields.integerOrNull('n_routed_experts') === null) return false;
    const firstDense = fields.integer(['first_k_dense_replace'], { min: 0, max: layerCount, fallback: 0 });
    return index >= firstDense && index % fields.integer(['moe_layer_freq'], { fallback: 1 }) === 0;
  }
  const dense = fields.raw('mlp_only_layers') ?? [];
  if (!Array.isArray(dense))
    throw configError('mlp_only_layers', dense, 'It must be a list of layer indices.');
  const step = fields.integer(['decoder_sparse_step'], { fallback: 1 });
  return !dense.includes(index) && (index + 1) % step === 0;
}
