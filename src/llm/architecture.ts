import { InferscopeError } from '../model/errors.js';
import { configError, configFields } from './config-fields.js';
import { families, familyOfClass } from './families.js';
import type { Family, NormPlacement } from './family.js';
import { names } from './read-names.js';
import { readMixers } from './read-mixers.js';
import { readMlp } from './read-mlp.js';

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
  /** One norm over all heads together (OLMo 2, MiniMax-M2), not one that the heads share. */
  qkNormWide: boolean;
  /** The query projection makes a gate of the output's width as well (Qwen3-Next). */
  outputGate: boolean;
  /** A learned logit for each head in the softmax (gpt-oss). */
  sinks: boolean;
  /** Keys a query sees, itself included; null is all before it. */
  window: number | null;
  /** The window is a chunk: a query sees the keys of its own chunk only (Llama 4). */
  chunked: boolean;
  /** Keys and values are those of an earlier layer (the last layers of Gemma 3n). */
  sharedKv: boolean;
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

/**
 * A mixer with a state of fixed size in place of a cache of keys and values: gated DeltaNet (arXiv 2412.06464), Mamba (arXiv
 * 2312.00752), Mamba-2 (arXiv 2405.21060). Sizes are of one layer.
 */
export interface RecurrentMixer {
  kind: 'recurrent';
  form: 'gated DeltaNet' | 'Mamba' | 'Mamba-2';
  /** What a tensor-parallel group divides: value heads, or channels where there are no heads (Mamba). */
  headCount: number;
  /** Rows of the input projection, from the model's width. */
  inRows: number;
  /** Columns of the output projection, back to the model's width. */
  innerSize: number;
  projectionBias: boolean;
  convChannels: number;
  convKernel: number;
  convBias: boolean;
  /** Mamba's projections between convolution and scan: inner size -> rank + 2 states, rank -> inner size. */
  inner: { rank: number; stateSize: number } | null;
  /** Decays, step biases, skips and norms: elements. */
  vectorElements: number;
  /** Elements of a sequence's state: that of the scan, and the last inputs of the convolution. */
  stateElements: number;
  convStateElements: number;
  /** FLOPs of one token's state update and readout. */
  scanFlops: number;
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
  /** Biases of the router and of every expert (gpt-oss). */
  bias: boolean;
}

/** A layer that is a mixer only (Mamba). */
export interface NoMlp {
  kind: 'none';
}

/** A weight that only one family has (Gemma 3n's AltUp, LAuReL and per-layer embeddings). */
export interface ExtraTensor {
  name: string;
  kind: 'linear' | 'vector' | 'embedding';
  rows: number;
  columns: number;
}

export interface Layer {
  index: number;
  attention: GroupedAttention | LatentAttention | RecurrentMixer;
  mlp: DenseMlp | MoeMlp | NoMlp;
  extra: readonly ExtraTensor[];
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
  /** Outside the layers. */
  extra: readonly ExtraTensor[];
  /** Keys of the config that may change sizes and that this family does not read. */
  unreadKeys: readonly string[];
  /** True when the config describes more than this decoder (a vision tower …) that is not counted here. */
  partOfLarger: boolean;
}

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
  if (!family || !Object.hasOwn(families, modelType)) throw unknownArchitecture(modelType, config);

  const fields = configFields({ ...family.defaults, ...withoutNulls(text) });
  const hiddenSize = fields.integer(names.hiddenSize);
  const layerCount = fields.integer(names.layers, { max: 10_000 });
  const maxPositions =
    family.positions.kind === 'learned'
      ? fields.integer(names.positions)
      : fields.integerOrNull('max_position_embeddings');
  const mixerOf = readMixers(fields, family, hiddenSize, layerCount);
  const norms = typeof family.norms === 'function' ? family.norms(fields) : family.norms;
  const extra = family.extra?.(fields, hiddenSize, layerCount);
  const architecture = {
    modelType,
    family: family.name,
    hiddenSize,
    vocabSize: fields.integer(['vocab_size']),
    maxPositions,
    norm: family.norm,
    norms,
    // OPT-350m, whose norms come after, has none at the end; OLMo 2 has.
    finalNorm:
      !(family.name === 'OPT' && norms === 'post') && !fields.boolean('_remove_final_layer_norm', false),
    embeddingDim: fields.integer(['word_embed_proj_dim'], { fallback: hiddenSize }),
    positionRows: family.positions.kind === 'learned' ? (maxPositions ?? 0) + family.positions.offset : 0,
    tiedEmbeddings: fields.boolean('tie_word_embeddings', family.tied),
    lmHeadBias: family.lmHeadBias,
    layers: Array.from({ length: layerCount }, (_, index) => ({
      index,
      attention: mixerOf(index),
      mlp: readMlp(fields, family, hiddenSize, layerCount, index),
      extra: extra?.layer ?? [],
    })),
    extra: extra?.model ?? [],
    partOfLarger,
  };
  return { ...architecture, unreadKeys: fields.unread(familyKeys(family)) };
}

/** Keys that a family knows, though some of its models leave them without effect: widths of layers they do not have. */
function familyKeys(family: Family): string[] {
  return [
    ...names.intermediate,
    ...Object.keys(family.defaults),
    ...(family.denseSize ? [family.denseSize] : []),
    // MLA has no heads of keys and values.
    ...(family.attention === 'latent' ? ['num_key_value_heads'] : []),
  ];
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

/** A class of transformers names its arithmetic; a model_type that is spelt alike does not. */
function unknownArchitecture(modelType: string, config: Record<string, unknown>): InferscopeError {
  const { architectures } = config;
  const classes = Array.isArray(architectures)
    ? architectures.filter((name) => typeof name === 'string')
    : [];
  const same = classes.map(familyOfClass).find((found) => found !== null);
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `unknown model architecture "${modelType}"${classes.length > 0 ? ` (${classes.join(', ')})` : ''}`,
    why: `Its parameters and FLOPs cannot be derived. Known model types: ${Object.keys(families).join(', ')}.`,
    fix: same
      ? `Its class ${classes.join(', ')} is that of "${same}": set "model_type": "${same}" in a copy of its config.json.`
      : 'Nothing that its config.json says makes it one of these. If its documentation does, set "model_type" to that one in a copy of its config.json.',
  });
}
