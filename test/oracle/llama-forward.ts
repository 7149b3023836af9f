import type { Weights } from './onnx-weights.js';

/** Fields of a model's config.json, and the variants of other Llama-like models. */
export interface ForwardConfig {
  hidden_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  rms_norm_eps: number;
  tie_word_embeddings: boolean;
  rope_theta: number;
  rope_scaling?: {
    rope_type: string;
    factor: number;
    low_freq_factor?: number;
    high_freq_factor?: number;
    original_max_position_embeddings?: number;
  };
  qkv_bias?: boolean;
  output_bias?: boolean;
  mlp_bias?: boolean;
  qk_norm?: boolean;
  window?: (layer: number) => number | null;
}

type Vector = Float64Array;

/**
 * A Llama-like decoder in float64, written from the architecture's definition (Llama 2, arXiv 2307.09288; rotary
 * embedding as in transformers' rotate_half; Qwen2's biases; Qwen3's q/k norms; Mistral's window) to check the ONNX
 * graph against. No cache: every position is computed from all tokens before it.
 * @returns logits [tokens][vocab]
 */
export function llamaForward(config: ForwardConfig, weights: Weights, tokens: readonly number[]): Vector[] {
  const linear = (name: string, bias: boolean): ((x: Vector) => Vector) => {
    const matrix = weights.matrix(`${name}.weight`);
    const offset = bias ? weights.vector(`${name}.bias`) : null;
    return (x) => Float64Array.from(matrix, (row, i) => dot(row, x) + (offset ? offset[i]! : 0));
  };
  const embedding = weights.matrix('model.embed_tokens.weight');
  let states: Vector[] = tokens.map((token) => embedding[token]!.slice());

  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const prefix = `model.layers.${layer}`;
    const inputNorm = weights.vector(`${prefix}.input_layernorm.weight`);
    const normed = states.map((x) => rmsNorm(x, inputNorm, config.rms_norm_eps));
    const attended = attention(config, weights, layer, normed, linear);
    const o = linear(`${prefix}.self_attn.o_proj`, config.output_bias === true);
    states = states.map((x, t) => add(x, o(attended[t]!)));

    const postNorm = weights.vector(`${prefix}.post_attention_layernorm.weight`);
    const bias = config.mlp_bias === true;
    const gate = linear(`${prefix}.mlp.gate_proj`, bias);
    const up = linear(`${prefix}.mlp.up_proj`, bias);
    const down = linear(`${prefix}.mlp.down_proj`, bias);
    states = states.map((x) => {
      const h = rmsNorm(x, postNorm, config.rms_norm_eps);
      const u = up(h);
      return add(x, down(gate(h).map((g, i) => (g / (1 + Math.exp(-g))) * u[i]!)));
    });
  }
  const finalNorm = weights.vector('model.norm.weight');
  // A tied int4 model quantizes the embedding only for this GEMM, and stores it under the name of the lm_head.
  const tied = config.tie_word_embeddings && !weights.isInt4('lm_head.weight');
  const head = linear(tied ? 'model.embed_tokens' : 'lm_head', false);
  return states.map((x) => head(rmsNorm(x, finalNorm, config.rms_norm_eps)));
}

function attention(
  config: ForwardConfig,
  weights: Weights,
  layer: number,
  inputs: Vector[],
  linear: (name: string, bias: boolean) => (x: Vector) => Vector,
): Vector[] {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: dim } = config;
  const prefix = `model.layers.${layer}.self_attn`;
  const bias = config.qkv_bias === true;
  const headsOf = (role: string, count: number, norm: string | null): Vector[][] => {
    const project = linear(`${prefix}.${role}`, bias);
    const scale = norm && config.qk_norm ? weights.vector(`${prefix}.${norm}.weight`) : null;
    return inputs.map((x, position) => {
      const y = project(x);
      return Array.from({ length: count }, (_, head) => {
        const part = y.slice(head * dim, (head + 1) * dim);
        const normed = scale ? rmsNorm(part, scale, config.rms_norm_eps) : part;
        return norm === null ? normed : rotate(normed, position, config);
      });
    });
  };
  const q = headsOf('q_proj', heads, 'q_norm');
  const k = headsOf('k_proj', kvHeads, 'k_norm');
  const v = headsOf('v_proj', kvHeads, null);
  const window = config.window?.(layer) ?? null;
  return inputs.map((_, t) => {
    const out = new Float64Array(heads * dim);
    for (let head = 0; head < heads; head++) {
      const shared = Math.floor(head / (heads / kvHeads));
      const first = window === null ? 0 : Math.max(0, t - window + 1);
      const scores = Array.from(
        { length: t - first + 1 },
        (__, i) => dot(q[t]![head]!, k[first + i]![shared]!) / Math.sqrt(dim),
      );
      const largest = Math.max(...scores);
      const exps = scores.map((score) => Math.exp(score - largest));
      const sum = exps.reduce((a, b) => a + b, 0);
      exps.forEach((e, i) =>
        v[first + i]![shared]!.forEach((value, d) => (out[head * dim + d]! += (e / sum) * value)),
      );
    }
    return out;
  });
}

function rotate(x: Vector, position: number, config: ForwardConfig): Vector {
  const half = x.length / 2;
  const y = new Float64Array(x.length);
  for (let i = 0; i < half; i++) {
    const angle = position * frequency(i / half, config);
    y[i] = x[i]! * Math.cos(angle) - x[i + half]! * Math.sin(angle);
    y[i + half] = x[i + half]! * Math.cos(angle) + x[i]! * Math.sin(angle);
  }
  return y;
}

/** Rotations per position of a dimension pair; `share` is 2i/d. Scaling for llama3 as in `apply_scaling` of meta-llama/llama-models. */
function frequency(share: number, config: ForwardConfig): number {
  const plain = 1 / config.rope_theta ** share;
  const scaling = config.rope_scaling;
  if (!scaling) return plain;
  if (scaling.rope_type === 'linear') return plain / scaling.factor;
  const low = scaling.low_freq_factor!;
  const high = scaling.high_freq_factor!;
  const original = scaling.original_max_position_embeddings!;
  const wavelength = (2 * Math.PI) / plain;
  if (wavelength < original / high) return plain;
  if (wavelength > original / low) return plain / scaling.factor;
  const smooth = (original / wavelength - low) / (high - low);
  return ((1 - smooth) * plain) / scaling.factor + smooth * plain;
}

function rmsNorm(x: Vector, scale: Vector, epsilon: number): Vector {
  const inverse = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
  return x.map((value, i) => value * inverse * scale[i]!);
}

/** The vectors may differ in length, because rows of an int4 matrix are padded with zeros to whole blocks. */
function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) sum += a[i]! * b[i]!;
  return sum;
}

function add(a: Vector, b: Vector): Vector {
  return a.map((value, i) => value + b[i]!);
}

/** max|Δ| / max|reference| over two lists of vectors of one shape. */
export function relativeError(actual: ArrayLike<number>, reference: readonly Vector[]): number {
  let difference = 0;
  let largest = 0;
  let offset = 0;
  for (const row of reference) {
    for (const value of row) {
      difference = Math.max(difference, Math.abs(actual[offset++]! - value));
      largest = Math.max(largest, Math.abs(value));
    }
  }
  if (offset !== actual.length) throw new Error(`${actual.length} values against ${offset} of the reference`);
  return difference / largest;
}
