import { expect, test } from 'vitest';
import { architectureIssues } from './architecture-issues.js';
import { devices } from './memory-shards.js';
import oracle from './oracle/vision.json' with { type: 'json' };
import { countParameters } from './parameters.js';
import { readArchitecture } from './read-architecture.js';
import { floatStorage, weightBytes } from './storage.js';

const read = (name: keyof typeof oracle.models, more = {}) =>
  readArchitecture({ ...oracle.models[name].config, ...more });

// The totals are also those of the published files: 7,063,427,072 for llava-hf/llava-1.5-7b-hf, 4,300,079,472 for google/gemma-3-4b-pt,
// 8,291,375,616 for Qwen/Qwen2-VL-7B-Instruct and 8,292,166,656 for Qwen/Qwen2.5-VL-7B-Instruct.
test.each(Object.keys(oracle.models) as (keyof typeof oracle.models)[])(
  '%s has the parameters that transformers counts',
  (name) => {
    const { parameters, vision } = oracle.models[name];
    const architecture = read(name);
    const count = countParameters(architecture);
    expect([count.total, count.by_component.vision]).toEqual([parameters, vision]);
    expect(weightBytes(architecture, floatStorage('bfloat16')).total).toBe(2 * parameters);
    // FLOPs per token are those of the decoder.
    const { vision: _, ...decoder } = architecture;
    expect(count.active_matmul).toBe(countParameters(decoder).active_matmul);
    expect(architecture.unreadKeys).toEqual([]);
  },
);

test('an image of LLaVA is 24 × 24 patches, one of Gemma 3 256 tokens', () => {
  expect(read('llava-1.5-7b').vision).toMatchObject({ tokensPerImage: 576 });
  expect(read('llava-1.5-7b', { vision_feature_select_strategy: 'full' }).vision).toMatchObject({
    tokensPerImage: 577,
  });
  expect(read('gemma-3-4b').vision).toMatchObject({ tokensPerImage: 256 });
  expect(architectureIssues(read('llava-1.5-7b')).map(({ code }) => code)).toEqual(['vision_weights_only']);
});

test('the first rank of a pipeline has the vision tower', () => {
  const parallel = { tensor: 1, pipeline: 2, expert: 1 };
  const onRanks = devices(read('llava-1.5-7b'), parallel, 'vllm').map(
    ({ tensors }) => tensors.filter(({ component }) => component === 'vision').length,
  );
  expect(onRanks[0]).toBeGreaterThan(0);
  expect(onRanks[1]).toBe(0);
});

test.each([
  ['another tower', { vision_config: { model_type: 'pixtral', hidden_size: 1024 } }],
  ['an incomplete one', { vision_config: { hidden_size: 1024 } }],
  ['audio, too', { audio_config: { hidden_size: 1024 } }],
  ['features of several layers', { vision_feature_layer: [-2, -5] }],
])('%s stays unknown, with a warning', (_, more) => {
  const architecture = read('llava-1.5-7b', more);
  expect(architecture.vision).toBeUndefined();
  expect(architectureIssues(architecture).map(({ code }) => code)).toEqual(['decoder_only']);
});
