import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseModel } from './choose-model.js';

let folder: string;
const config = { model_type: 'llama', hidden_size: 64, vocab_size: 512 };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inferscope-choose-'));
  mkdirSync(join(folder, 'bare'));
  mkdirSync(join(folder, 'whole'));
  for (const name of ['bare', 'whole'])
    writeFileSync(join(folder, name, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'whole', 'model.safetensors'), '');
  // The folders of huggingface_hub's cache.
  const model = join(folder, 'hub', 'models--someone--small');
  mkdirSync(join(model, 'refs'), { recursive: true });
  mkdirSync(join(model, 'snapshots', 'abc'), { recursive: true });
  writeFileSync(join(model, 'refs', 'main'), 'abc');
  writeFileSync(join(model, 'snapshots', 'abc', 'config.json'), JSON.stringify(config));
});
afterAll(() => rmSync(folder, { recursive: true }));

const choose = (spec: string, weights: 'random' | 'trained' | null = null) =>
  chooseModel(spec, weights, { HF_HOME: folder });
const refused = (code: string, fix: string) =>
  expect.objectContaining({
    code,
    parts: expect.objectContaining({ fix: expect.stringContaining(fix) as string }) as unknown,
  }) as Error;

test('a preset has random weights and the dimensions of its config.json', async () => {
  const model = await choose('TinyLlama/TinyLlama-1.1B-Chat-v1.0');
  expect(model).toMatchObject({ weights: 'random', source: 'TinyLlama/TinyLlama-1.1B-Chat-v1.0' });
  expect(model.config).toMatchObject({ hidden_size: 2048, num_hidden_layers: 22, vocab_size: 32000 });
  expect(await choose('tinyllama-1.1b', 'trained')).toMatchObject({
    weights: 'trained',
    source: 'TinyLlama/TinyLlama-1.1B-Chat-v1.0',
  });
});

test("accepts the embedded engine's presets, so that engines can be compared", async () => {
  expect(await choose('llama-24m')).toMatchObject({ weights: 'random', config: { hidden_size: 512 } });
  await expect(choose('llama-24m', 'trained')).rejects.toThrow(refused('E_MODEL_NOT_FOUND', '--weights'));
});

test('loads a folder with weights, and builds one without from its dimensions', async () => {
  expect(await choose(join(folder, 'whole'))).toMatchObject({ name: 'whole', weights: 'trained', config });
  expect(await choose(join(folder, 'whole'), 'random')).toMatchObject({ weights: 'random' });
  expect(await choose(join(folder, 'bare', 'config.json'))).toMatchObject({
    name: 'bare',
    weights: 'random',
  });
  await expect(choose(join(folder, 'bare'), 'trained')).rejects.toThrow(
    refused('E_MODEL_NOT_FOUND', 'Leave --weights out'),
  );
});

test('a model of the hub: dimensions from its cache; without them random weights are rejected', async () => {
  expect(await choose('someone/small', 'random')).toMatchObject({ config, source: 'someone/small' });
  expect(await choose('someone/other')).toEqual({
    name: 'someone/other',
    source: 'someone/other',
    config: null,
    weights: 'trained',
  });
  await expect(choose('someone/other', 'random')).rejects.toThrow(
    refused('E_MODEL_NOT_FOUND', '--weights trained'),
  );
});

test('rejects random weights for a quantized model', async () => {
  await expect(choose('deepseek-v3')).rejects.toThrow(refused('E_USAGE', '--weights trained'));
  expect(await choose('deepseek-v3', 'trained')).toMatchObject({ source: 'deepseek-ai/DeepSeek-V3' });
});

test('rejects a misspelled name and a missing file', async () => {
  await expect(choose('tinylama-1.1b')).rejects.toThrow(
    refused('E_MODEL_NOT_FOUND', '--model tinyllama-1.1b'),
  );
  await expect(choose('./no-such/config.json')).rejects.toThrow(refused('E_MODEL_NOT_FOUND', 'config.json'));
});
