import type { Workload } from '../../model/manifest.js';
import { tinyWorkload } from '../test-session.js';

/** The model of test/fixtures/tiny.py, as LlamaConfig writes it. */
export const fixtureConfig = {
  model_type: 'llama',
  vocab_size: 4096,
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  max_position_embeddings: 1024,
  tie_word_embeddings: false,
};

/** Weights of q, k, v, o and of gate, up, down of the four layers. */
export const tinyLinear = 4 * (512 * 512 + 2 * 128 * 512 + 512 * 512 + 3 * 512 * 1408);
export const tinyHead = 512 * 4096;
/** FLOPs of attention per token and key: 2 GEMMs × 2 × head dimension, 8 heads, 4 layers. */
export const tinyAttention = 4 * 64 * 8 * 4;

/** A run of it on a GPU, with unknown lengths. */
export const fixtureWorkload = (fields: Partial<Workload> = {}): Workload => {
  const workload = tinyWorkload();
  return {
    ...workload,
    model: {
      ...workload.model!,
      config: fixtureConfig,
      dtype: 'float16',
      num_parameters: null,
      weight_bytes: null,
    },
    engine: { name: 'transformers', version: '5.17', options: {} },
    device: 'cuda:0',
    threads: null,
    batch_size: null,
    input_len: null,
    output_len: null,
    ...fields,
  };
};
