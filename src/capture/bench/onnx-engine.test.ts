import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import { testFolder } from '../../session/test-folder.js';
import { onnxEngine } from './onnx-engine.js';

const request = {
  model: 'llama-24m',
  weights: null,
  dtype: null,
  device: null,
  threads: 1,
  engineArgs: {},
  url: null,
  python: null,
};
// A layer has 4 h² + 3 h i = 17e9 parameters (h: hidden size, i: intermediate size): 400 layers take 27 TB in float32.
const huge = {
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_size: 32768,
  intermediate_size: 131072,
  num_hidden_layers: 400,
  num_attention_heads: 256,
  num_key_value_heads: 256,
  vocab_size: 1000,
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-5,
};
// The KV cache of 10^9 sequences takes terabytes: more than any machine has, though the weights fit.
const larger = benchPoint(['latency'], 1e9, 64, 64);

test('rejects shapes that cannot run before the model is written', async () => {
  const cacheDir = testFolder();
  const prepared = onnxEngine({ cacheDir, seed: 0 }).prepare({ ...request, points: [larger] });
  await expect(prepared).rejects.toMatchObject({ code: 'E_LENGTHS' });
  expect(readdirSync(cacheDir)).toEqual([]);
});

test('rejects weights larger than memory before anything is written', async () => {
  const cacheDir = testFolder();
  const model = join(testFolder(), 'config.json');
  writeFileSync(model, JSON.stringify(huge));
  const prepared = onnxEngine({ cacheDir, seed: 0 }).prepare({ ...request, model });
  await expect(prepared).rejects.toMatchObject({ code: 'E_OUT_OF_MEMORY' });
  expect(readdirSync(cacheDir)).toEqual([]);
});
