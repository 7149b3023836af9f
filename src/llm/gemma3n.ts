import type { ConfigFields } from './config-fields.js';
import type { ExtraTensors } from './family.js';

/**
 * Gemma 3n's additions to a decoder: a separate embedding per layer, AltUp (arXiv 2301.13310), which predicts and
 * corrects several copies of the residual stream, and LAuReL (arXiv 2411.07501), a low-rank path around attention.
 */
export function gemma3nExtra(fields: ConfigFields, D: number, layerCount: number): ExtraTensors {
  const perLayer = fields.integer(['hidden_size_per_layer_input']);
  const inputs = fields.integer(['altup_num_inputs']);
  const rank = fields.integer(['laurel_rank']);
  const linear = (name: string, rows: number, columns: number) =>
    ({ name, kind: 'linear', rows, columns }) as const;
  const vector = (name: string, rows: number) => ({ name, kind: 'vector', rows, columns: 1 }) as const;
  const copies = Array.from({ length: inputs - 1 }, (_, index) => index + 1);
  return {
    model: [
      {
        name: 'embed_tokens_per_layer',
        kind: 'embedding',
        rows: fields.integer(['vocab_size_per_layer_input']),
        columns: layerCount * perLayer,
      },
      linear('per_layer_model_projection', layerCount * perLayer, D),
      vector('per_layer_projection_norm', perLayer),
      ...copies.map((copy) => linear(`altup_projection_${copy}`, D, D)),
      ...copies.map((copy) => linear(`altup_unembed_projection_${copy}`, D, D)),
    ],
    layer: [
      linear('altup_modality_router', inputs, D),
      linear('altup_prediction_coefs', inputs ** 2, inputs),
      linear('altup_correction_coefs', inputs, inputs),
      vector('altup_correct_output_scale', D),
      vector('altup_router_norm', D),
      linear('laurel_left', rank, D),
      linear('laurel_right', D, rank),
      vector('post_laurel_norm', D),
      linear('per_layer_input_gate', perLayer, D),
      linear('per_layer_projection', D, perLayer),
      vector('post_per_layer_input_norm', D),
    ],
  };
}
