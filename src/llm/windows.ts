import { configError, type ConfigFields } from './config-fields.js';
import type { WindowRule } from './family.js';

/**
 * The sliding window of each layer: the keys that a query sees, including itself, or null for full attention.
 * `layer_types` decides if the config has it, else the family's rule.
 * @throws E_MODEL_CONFIG for unknown layer types, or a list of the wrong length
 */
export function layerWindows(fields: ConfigFields, rule: WindowRule, layerCount: number): (number | null)[] {
  if (rule === 'none') return Array.from({ length: layerCount }, () => null);
  const isChunked = rule === 'chunks';
  // transformers 5 writes 0 for a Qwen with its window disabled.
  const window = fields.integerOrNull(isChunked ? 'attention_chunk_size' : 'sliding_window', { min: 0 });
  const isSwitchedOff =
    (rule === 'upper' || rule === 'switched') && !fields.boolean('use_sliding_window', false);
  if (window === null || window === 0 || isSwitchedOff) return Array.from({ length: layerCount }, () => null);

  const types = fields.raw('layer_types');
  if (types !== undefined && types !== null) {
    if (!Array.isArray(types) || types.length !== layerCount) {
      const length = Array.isArray(types) ? types.length : types;
      throw configError('layer_types', length, `It must list one type for each of ${layerCount} layers.`);
    }
    return types.map((type: unknown) => {
      if (type === 'sliding_attention' || type === 'chunked_attention') return window;
      if (type === 'full_attention') return null;
      throw configError(
        'layer_types',
        type,
        'Known types: full_attention, sliding_attention, chunked_attention.',
      );
    });
  }

  const hasWindow: Record<Exclude<WindowRule, 'none'>, (index: number) => boolean> = {
    all: () => true,
    switched: () => true,
    alternate: (index) => index % 2 === 0,
    pattern: (index) => (index + 1) % fields.integer(['sliding_window_pattern'], { fallback: 6 }) !== 0,
    chunks: chunkedLayers(fields),
    upper: (index) => index >= fields.integer(['max_window_layers'], { min: 0, fallback: layerCount }),
  };
  return Array.from({ length: layerCount }, (_, index) => (hasWindow[rule](index) ? window : null));
}

/**
 * Llama 4: layers with rotary positions are chunked; no_rope_layers marks those with 1, else every
 * no_rope_layer_interval-th has none.
 */
function chunkedLayers(fields: ConfigFields): (index: number) => boolean {
  const listed = fields.raw('no_rope_layers');
  if (Array.isArray(listed) && listed.length > 0) return (index) => listed[index] === 1;
  const interval = fields.integer(['no_rope_layer_interval'], { fallback: 4 });
  return (index) => (index + 1) % interval !== 0;
}
