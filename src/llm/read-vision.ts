import { InferscopeError } from '../model/errors.js';
import type { Vision, VisionTensor } from './architecture.js';
import { configFields, type ConfigFields } from './config-fields.js';

type Values = Record<string, unknown>;

const linear = (name: string, rows: number, columns: number, bias = true, count = 1): VisionTensor => ({
  name: `vision_${name}`,
  kind: 'linear',
  rows,
  columns,
  bias: bias ? rows : 0,
  count,
});

const vector = (name: string, rows: number, bias: boolean, count = 1): VisionTensor => ({
  name: `vision_${name}`,
  kind: 'vector',
  rows,
  columns: 1,
  bias: bias ? rows : 0,
  count,
});

interface TowerSizes {
  hidden: number;
  layers: number;
  inner: number;
  /** LayerNorms have a bias, RMSNorms none. */
  layerNorm: boolean;
  gated: boolean;
}

/** Layers with biases: attention, a MLP, two norms. */
function layerTensors({ hidden: D, layers, inner, layerNorm, gated }: TowerSizes): VisionTensor[] {
  return [
    ...['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) => linear(name, D, D, true, layers)),
    ...(gated ? [linear('gate_proj', inner, D, true, layers)] : []),
    linear('up_proj', inner, D, true, layers),
    linear('down_proj', D, inner, true, layers),
    vector('layer_norms', D, layerNorm, 2 * layers),
  ];
}

/** CLIP (a class token, a norm before the layers, patches without bias) or SigLIP: modeling_clip.py, modeling_siglip.py. */
function squareTower(fields: ConfigFields, isClip: boolean): { tensors: VisionTensor[]; patches: number } {
  const D = fields.integer(['hidden_size']);
  const patch = fields.integer(['patch_size']);
  const patches = Math.floor(fields.integer(['image_size']) / patch) ** 2;
  const sizes = {
    layers: fields.integer(['num_hidden_layers']),
    inner: fields.integer(['intermediate_size']),
  };
  return {
    patches,
    tensors: [
      linear('patches', D, fields.integer(['num_channels'], { fallback: 3 }) * patch ** 2, !isClip),
      { ...linear('positions', patches + Number(isClip), D, false), kind: 'embedding' },
      ...(isClip ? [vector('class', D, false), vector('first_norm', D, true)] : []),
      ...layerTensors({ hidden: D, ...sizes, layerNorm: true, gated: false }),
      vector('final_norm', D, true),
    ],
  };
}

/** LLaVA: CLIP's or SigLIP's patches, projected by two matrices (modeling_llava.py). */
function llava(fields: ConfigFields, config: Values, textHidden: number): Vision | null {
  const type = fields.raw('model_type') ?? 'clip_vision_model';
  const isClip = type === 'clip_vision_model';
  if (!isClip && type !== 'siglip_vision_model') return null;
  // SigLIP's head pools the image; LLaVA's checkpoints have it.
  if (!isClip && fields.raw('vision_use_head') !== false) return null;
  const { tensors, patches } = squareTower(fields, isClip);
  // Features of several layers next to each other.
  if (Array.isArray(config['vision_feature_layer'])) return null;
  const bias = config['multimodal_projector_bias'] !== false;
  const keepsClass = isClip && config['vision_feature_select_strategy'] === 'full';
  return {
    tensors: [
      ...tensors,
      linear('projector_1', textHidden, fields.integer(['hidden_size']), bias),
      linear('projector_2', textHidden, textHidden, bias),
    ],
    tokensPerImage: patches + Number(keepsClass),
  };
}

/** Gemma 3: SigLIP's patches are averaged, normed and projected by one matrix (modeling_gemma3.py). */
function gemma3(fields: ConfigFields, config: Values, textHidden: number): Vision {
  const { tensors } = squareTower(fields, false);
  const D = fields.integer(['hidden_size']);
  const tokens = config['mm_tokens_per_image'];
  return {
    tensors: [...tensors, vector('projector_norm', D, false), linear('projector', textHidden, D, false)],
    tokensPerImage: typeof tokens === 'number' ? tokens : 256,
  };
}

/** Qwen2-VL and Qwen2.5-VL: patches of two frames, positions rotated, merged by a MLP (modeling_qwen2_vl.py, modeling_qwen2_5_vl.py). */
function qwen(fields: ConfigFields, isSecond: boolean, textHidden: number): Vision {
  const D = fields.integer([isSecond ? 'embed_dim' : 'hidden_size']);
  const ratio = fields.raw('mlp_ratio') ?? 4;
  const inner = isSecond ? D * Number(ratio) : fields.integer(['intermediate_size']);
  const merged = D * fields.integer(['spatial_merge_size'], { fallback: 2 }) ** 2;
  const patch =
    fields.integer(['in_channels', 'in_chans'], { fallback: 3 }) *
    fields.integer(['temporal_patch_size'], { fallback: 2 }) *
    fields.integer(['patch_size']) ** 2;
  return {
    tensors: [
      linear('patches', D, patch, false),
      ...layerTensors({
        hidden: D,
        layers: fields.integer(['depth']),
        inner,
        layerNorm: isSecond,
        gated: !isSecond,
      }),
      vector('projector_norm', D, isSecond),
      linear('projector_1', merged, merged),
      linear('projector_2', textHidden, merged),
    ],
    // By the size of the image.
    tokensPerImage: null,
  };
}

/**
 * The vision tower and projector of a config.json; null: unknown ones, parts for other inputs, or a tower that the config does not
 * describe in full.
 */
export function readVision(config: Values, textHidden: number): Vision | null {
  const { vision_config: vision, model_type: type } = config;
  if (typeof vision !== 'object' || vision === null || Array.isArray(vision)) return null;
  if (config['audio_config']) return null;
  const fields = configFields(vision as Values);
  try {
    if (type === 'llava') return llava(fields, config, textHidden);
    if (type === 'gemma3') return gemma3(fields, config, textHidden);
    if (type === 'qwen2_vl' || type === 'qwen2_5_vl') return qwen(fields, type === 'qwen2_vl', textHidden);
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
  }
  return null;
}
