import { InferscopeError } from '../model/errors.js';
import { configError, configFields } from './config-fields.js';
import { families, familyOfClass } from './families.js';
import type { Family } from './family.js';
import { names } from './read-names.js';
import { readMixers } from './read-mixers.js';
import { readMlp } from './read-mlp.js';
import { addEncoder, decoderValues } from './read-encoder.js';
import { readVision } from './read-vision.js';
import type { Architecture } from './architecture.js';

/**
 * The architecture of a decoder, from a Hugging Face config.json.
 * @throws E_MODEL_ARCHITECTURE for an unknown model_type, and for an encoder-decoder model
 * @throws E_MODEL_CONFIG with the missing or impossible field and its value
 */
export function readArchitecture(config: Record<string, unknown>): Architecture {
  checkDecoderOnly(config);
  return readAnyArchitecture(config);
}

/** @throws E_MODEL_ARCHITECTURE for an encoder-decoder model */
export function checkDecoderOnly(config: Record<string, unknown>): void {
  if (!isEncoderDecoder(config)) return;
  throw new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `"${String(config['model_type'])}" is an encoder-decoder model`,
    why: 'This command takes models with a decoder alone.',
    fix: 'inferscope estimate and predict compute its memory and times; inferscope run -- <command> measures them.',
  });
}

/**
 * Normalizes a Hugging Face config.json, descending into `text_config`. An encoder-decoder model has the layers of both.
 * @throws E_MODEL_ARCHITECTURE for an unknown model_type
 * @throws E_MODEL_CONFIG with the missing or impossible field and its value
 */
export function readAnyArchitecture(config: Record<string, unknown>): Architecture {
  const { text, partOfLarger } = textConfig(config);
  const modelType = text['model_type'];
  if (typeof modelType !== 'string') {
    throw configError('model_type', modelType, 'It names the family, and the family decides the arithmetic.');
  }
  const family = families[modelType];
  if (!family || !Object.hasOwn(families, modelType)) throw unknownArchitecture(modelType, config);

  const values = { ...family.defaults, ...withoutNulls(text) };
  const fields = configFields(decoderValues(values, family));
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
    // OPT-350m (norms after each part) has no final norm; OLMo 2 has one.
    finalNorm:
      (family.finalNorm ?? !(family.name === 'OPT' && norms === 'post')) &&
      !fields.boolean('_remove_final_layer_norm', false),
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
  const vision = partOfLarger ? readVision(config, hiddenSize) : null;
  const withEncoder = family.encoder
    ? addEncoder(architecture, values, family, family.encoder)
    : architecture;
  return { ...withEncoder, ...(vision && { vision }), unreadKeys: fields.unread(familyKeys(family)) };
}

/** Whether this model_type is known. */
export function isKnownFamily(config: Record<string, unknown>): boolean {
  const { model_type } = textConfig(config).text;
  return typeof model_type === 'string' && Object.hasOwn(families, model_type);
}

/** Whether the decoder of this model_type attends to the output of an encoder. */
export function isEncoderDecoder(config: Record<string, unknown>): boolean {
  const { model_type } = textConfig(config).text;
  return (
    typeof model_type === 'string' && isKnownFamily(config) && families[model_type]!.encoder !== undefined
  );
}

/** Keys that a family knows, even if they have no effect in some of its models: widths of layers they do not have. */
function familyKeys(family: Family): string[] {
  return [
    ...names.intermediate,
    ...Object.keys(family.defaults),
    ...(family.denseSize ? [family.denseSize] : []),
    ...Object.values({ ...family.encoder?.decoderNames }).flat(),
    ...Object.values({ ...family.encoder?.encoderNames }).flat(),
    // MLA has no heads of keys and values.
    ...(family.attention === 'latent' ? ['num_key_value_heads'] : []),
  ];
}

/** Multimodal configs have the decoder's fields in `text_config`; only tying may be stated outside it. */
function textConfig(config: Record<string, unknown>): {
  text: Record<string, unknown>;
  partOfLarger: boolean;
} {
  const inner = config['text_config'];
  // Qwen2-VL has the decoder's fields next to vision_config.
  if (inner === undefined || inner === null) {
    const { vision_config, ...text } = config;
    return { text, partOfLarger: Boolean(vision_config) };
  }
  if (typeof inner !== 'object' || Array.isArray(inner)) {
    throw configError('text_config', inner, "It must be an object with the decoder's fields.");
  }
  const { model_type, tie_word_embeddings } = config;
  const text = { ...withoutNulls({ model_type, tie_word_embeddings }), ...inner };
  return { text, partOfLarger: true };
}

/** Nulls with a meaning: no window; as many KV heads as heads. Every other null means the class's default. */
const meaningfulNulls = new Set(['sliding_window', 'num_key_value_heads']);

function withoutNulls(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(config).filter(([k, v]) => v !== undefined && (v !== null || meaningfulNulls.has(k))),
  );
}

/** A class name of transformers identifies the family; a similar model_type does not. */
function unknownArchitecture(modelType: string, config: Record<string, unknown>): InferscopeError {
  const { architectures } = config;
  const classes = Array.isArray(architectures)
    ? architectures.filter((name) => typeof name === 'string')
    : [];
  if (modelType === 'led')
    throw new InferscopeError('E_MODEL_ARCHITECTURE', {
      what: 'the attention of "led" is not computed',
      why: 'Its encoder attends to a window and to chosen tokens, so its work depends on the input.',
      fix: 'inferscope run -- <command> shows its times without a roofline.',
    });
  const familyWithClass = classes.map(familyOfClass).find((found) => found !== null);
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: `unknown model architecture "${modelType}"${classes.length > 0 ? ` (${classes.join(', ')})` : ''}`,
    why: `Its parameters and FLOPs cannot be derived. Known model types: ${Object.keys(families).join(', ')}.`,
    fix: familyWithClass
      ? `Its class ${classes.join(', ')} is that of "${familyWithClass}": set "model_type": "${familyWithClass}" in a copy of its config.json.`
      : 'Its config.json does not identify it as one of these. If its documentation does, set "model_type" to that one in a copy of its config.json.',
  });
}
