import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { configuredModel } from './analyze-settings.js';

const folder = testFolder();
mkdirSync(join(folder, 'inferscope'));
afterEach(() => vi.unstubAllEnvs());

function userFile(text: string): void {
  writeFileSync(join(folder, 'inferscope', 'config.yaml'), text);
  vi.stubEnv('XDG_CONFIG_HOME', folder);
  for (const name of ['INFERSCOPE_AI_MODEL', 'INFERSCOPE_AI_URL', 'INFERSCOPE_AI_PROVIDER'])
    vi.stubEnv(name, '');
}

test('reads the section ai of the config file', async () => {
  userFile(`ai:
  model: local-model
  base_url: http://127.0.0.1:8000/v1
  api_key_env: MY_KEY
  timeout: 90s
  max_steps: 5
  output_usd_per_million: 0.5
`);
  vi.stubEnv('MY_KEY', 'abc');
  expect(await configuredModel()).toMatchObject({
    provider: 'openai-compatible',
    model: 'local-model',
    baseUrlFrom: 'user',
    apiKey: 'abc',
    timeoutMs: 90_000,
    maxSteps: 5,
    outputUsdPerMillion: 0.5,
  });
});

test.each([
  ['ai: {modell: x}', 'model'],
  ['ai: {model: x, timeout: soon}', '120s'],
  ['ai: {model: x, provider: other}', 'anthropic'],
])('%s is rejected', async (text, expected) => {
  userFile(text);
  const error: unknown = await configuredModel().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'E_CONFIG_FILE' });
  expect(JSON.stringify((error as { parts: unknown }).parts)).toContain(expected);
});
