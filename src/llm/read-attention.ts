import type { GroupedAttention, LatentAttention } from './architecture.js';
import { configError, type ConfigFields } from './config-fields.js';
import type { Family, Rule } from './family.js';
import { names } from './read-names.js';
import { layerWindows } from './windows.js';

export function readFlag(fields: ConfigFields, rule: Rule): boolean {
  return typeof rule === 'boolean' ? rule : fields.boolean(rule.field, rule.fallback);
}

/**
 * Returns the attention of a layer by its index; meaningless for layers without attention.
 * @throws E_MODEL_CONFIG if the numbers of heads or the head size are impossible
 */
export function readAttention(
  fields: ConfigFields,
  family: Family,
  hiddenSize: number,
  layerCount: number,
): (index: number) => GroupedAttention | LatentAttention {
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
      bias: readFlag(fields, family.qkvBias),
      window: null,
    };
    return () => latent;
  }

  const kvHeadCount =
    family.kvHeads?.(fields, headCount) ?? fields.integer(['num_key_value_heads'], { fallback: headCount });
  if (headCount % kvHeadCount !== 0) {
    throw configError(
      family.kvHeads ? 'num_kv_heads' : 'num_key_value_heads',
      kvHeadCount,
      `The number of query heads must be a multiple of it, and there are ${headCount}.`,
    );
  }
  const explicitHeadDim = fields.integerOrNull('head_dim');
  if (explicitHeadDim === null && hiddenSize % headCount !== 0) {
    throw configError(
      names.heads.find((name) => fields.raw(name) !== undefined) ?? names.heads[0]!,
      headCount,
      `Without head_dim, hidden_size must be a multiple of it, and hidden_size is ${hiddenSize}.`,
    );
  }
  const headDim = explicitHeadDim ?? hiddenSize / headCount;
  const windows = layerWindows(fields, family.window, layerCount);
  const rotaryDim = readRotaryDim(fields, family, headDim);
  const chunked = family.window === 'chunks';
  const sharedKvLayers = fields.integer(['num_kv_shared_layers'], { min: 0, fallback: 0 });
  const base: Omit<GroupedAttention, 'window' | 'rotaryDim' | 'sharedKv'> = {
    kind: 'grouped',
    headCount,
    kvHeadCount,
    headDim,
    qkvBias: readFlag(fields, family.qkvBias),
    outputBias: readFlag(fields, family.outputBias),
    qkNorm:
      typeof family.qkNorm === 'string'
        ? family.qkNorm
        : fields.boolean(family.qkNorm.field, family.qkNorm.fallback ?? false)
          ? family.qkNorm.kind
          : 'none',
    qkNormWide: family.qkNormWide ?? false,
    outputGate: family.outputGate ?? false,
    sinks: family.sinks ?? false,
    chunked,
  };
  return (index) => {
    const window = windows[index] ?? null;
    // Llama 4's layers without chunks have no positions either.
    const layerRotaryDim = chunked && window === null ? 0 : rotaryDim;
    return { ...base, rotaryDim: layerRotaryDim, window, sharedKv: index >= layerCount - sharedKvLayers };
  };
}

function readRotaryDim(fields: ConfigFields, family: Family, headDim: number): number {
  const { positions } = family;
  const hasNone = fields.raw('position_embedding_type') === 'nope' || fields.boolean('alibi', false);
  if (positions.kind === 'learned' || positions.fraction === 0 || hasNone) return 0;
  const width = fields.integerOrNull('rotary_dim');
  if (width !== null) return Math.min(width, headDim);
  const nested = fields.raw('rope_parameters');
  const inner: unknown =
    typeof nested === 'object' && nested !== null && 'partial_rotary_factor' in nested
      ? nested.partial_rotary_factor
      : undefined;
  const fallback = typeof inner === 'number' ? inner : fields.fraction('rotary_pct', positions.fraction);
  return Math.floor(headDim * fields.fraction('partial_rotary_factor', fallback));
}
