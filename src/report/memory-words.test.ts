import { expect, test } from 'vitest';
import { testMemory } from './test-memory.js';
import { engineWords } from './memory-words.js';

test.each([
  ['host', 'transformers', '5.17.0', 'transformers 5.17.0'],
  ['url', 'vllm', '0.32.0', 'vllm 0.32.0 behind an OpenAI-compatible URL'],
  ['url', 'openai', null, 'a server behind an OpenAI-compatible URL'],
] as const)('%s, %s: which engine, and how it was asked', (where, engine_type, engine_version, words) => {
  const { metadata } = testMemory().data.profile;
  expect(
    engineWords({ metadata: { ...metadata, where }, engine_metadata: { engine_type, engine_version } }),
  ).toBe(words);
});
