import { InferscopeError } from '../model/errors.js';

/** Larger values mean a damaged file: no published model is within a factor of 1000. */
const maxSize = 2 ** 31;

/** @returns the error for a missing or impossible field of config.json, with the field and its value */
export function configError(field: string, value: unknown, why: string): InferscopeError {
  const what =
    value === undefined || value === null
      ? `config.json has no "${field}"`
      : `config.json field "${field}" is impossible: ${JSON.stringify(value)}`;
  return new InferscopeError('E_MODEL_CONFIG', {
    what,
    why,
    fix: `Set "${field}" as in the config.json published with the model, or give the model's hub id: --model OWNER/NAME.`,
  });
}

interface IntegerRule {
  /** Smallest allowed value; default 1. */
  min?: number;
  max?: number;
  /** Used if the field is absent or null; without it the field is required. */
  fallback?: number | undefined;
}

/** Reads one config.json object; of several `names` the first one present counts. */
export interface ConfigFields {
  /** @throws E_MODEL_CONFIG with the field, if missing, not an integer, or out of range */
  integer(names: readonly string[], rule?: IntegerRule): number;
  /** A positive integer; null if the config says null or lacks the field. */
  integerOrNull(name: string, rule?: Omit<IntegerRule, 'fallback'>): number | null;
  boolean(name: string, fallback: boolean): boolean;
  /** A number in (0, 1]. */
  fraction(name: string, fallback: number): number;
  /** Like `integer`; if the field is a list, the element of this layer. */
  integerAt(names: readonly string[], index: number, rule?: IntegerRule): number;
  raw(name: string): unknown;
  /** Keys that were not read, are not `known`, and may change sizes. */
  unread(known: readonly string[]): string[];
}

/** Keys for a size, a number of layers, heads or experts, or the kind of each layer. */
const sizeKeys =
  /experts?(_|$)|moe_|(^|_)layer_types$|block_type|_layers$|_layers_|_interval$|_period$|linear_|mamba|ssm|conv_|state_size|mtp|nextn|lora_rank|rank$|index_|sliding_window|window_size|chunk_size|shared_|per_layer|altup|laurel|intermediate|ffn_|head_dim|_heads$|hidden_size|embd|_bias$|qk_norm|qk_layernorm|_pattern$|_dim$|expand$|vocab_size/;
/** Keys of that kind that change no size: training, and how a router weighs its experts. */
const harmlessKeys =
  /^(num_hidden_layers|router_|norm_topk_prob|output_router_logits|moe_(token_)?dropout|pretraining_tp|max_window_layers|use_sliding_window|tie_encoder|layer_norm_|.*_(dropout|theta|coef|scale|scaling|factor|multiplier|eps|epsilon|token_id|token_index|std|range|limit)$|.*(dropout|init)_?.*|n_group|topk_group|num_expert_group|transformers_version|time_step_.*|chunk_size_feed_forward|use_mamba_kernels|mamba_chunk_size|chunk_size|use_bidirectional_attention|rope_.*|activation_sparsity_pattern|ep_size|moe_router_.*|attn_temperature_tuning|problem_type|n_ctx|block_size|attn_qkv_bias|no_rope_layers|no_rope_layer_interval|.*_cache_dtype)$/;

function changesSizes(name: string, value: unknown): boolean {
  if (!sizeKeys.test(name) || harmlessKeys.test(name)) return false;
  if (Array.isArray(value)) return value.some((kind) => kind !== 'full_attention' && kind !== 'attention');
  return value !== undefined && value !== null && value !== false && value !== 0 && value !== '';
}

export function configFields(values: Record<string, unknown>): ConfigFields {
  const keysRead = new Set<string>();
  const config = new Proxy(values, {
    get(target, name) {
      if (typeof name === 'string') keysRead.add(name);
      return Reflect.get(target, name) as unknown;
    },
  });
  const check = (name: string, value: unknown, { min = 1, max = maxSize }: IntegerRule): number => {
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      throw configError(name, value, 'It must be an integer.');
    }
    if (value < min || value > max) {
      throw configError(name, value, `It must lie between ${min} and ${max}.`);
    }
    return value;
  };
  const integer: ConfigFields['integer'] = (names, rule = {}) => {
    const name = names.find((n) => config[n] !== undefined && config[n] !== null);
    if (name !== undefined) return check(name, config[name], rule);
    if (rule.fallback !== undefined) return rule.fallback;
    throw configError(names[0] ?? '?', undefined, 'The arithmetic of this model needs it.');
  };
  return {
    integer,
    integerAt(names, index, rule = {}) {
      const name = names.find((n) => Array.isArray(config[n]));
      if (name === undefined) return integer(names, rule);
      return check(name, (config[name] as unknown[])[index], rule);
    },
    integerOrNull(name, rule = {}) {
      const value = config[name];
      return value === undefined || value === null ? null : check(name, value, rule);
    },
    boolean(name, fallback) {
      const value = config[name];
      if (value === undefined || value === null) return fallback;
      if (typeof value !== 'boolean') throw configError(name, value, 'It must be true or false.');
      return value;
    },
    fraction(name, fallback) {
      const value = config[name];
      if (value === undefined || value === null) return fallback;
      if (typeof value !== 'number' || !(value > 0 && value <= 1)) {
        throw configError(name, value, 'It must be a number above 0 and at most 1.');
      }
      return value;
    },
    raw: (name) => config[name],
    unread: (known) =>
      Object.keys(values).filter(
        (name) => !keysRead.has(name) && !known.includes(name) && changesSizes(name, values[name]),
      ),
  };
}
