import { expect, test } from 'vitest';
import { mayQueryAutomatically, modelSettings, requireKey } from './model-settings.js';

const project = {
  section: { model: 'of-project', base_url: 'https://llm.example/v1/' },
  from: 'project' as const,
};
const user = {
  section: { model: 'of-user', provider: 'anthropic' as const, timeout_ms: 5000, input_usd_per_million: 3 },
  from: 'user' as const,
};

test('no model is used if none is configured, or with --model none', () => {
  expect(modelSettings(undefined, { OPENAI_API_KEY: 'k' }, [])).toBeNull();
  expect(modelSettings('none', { INFERSCOPE_AI_MODEL: 'm' }, [project])).toBeNull();
});

test('takes each setting from flag > environment > project > user', () => {
  const env = { INFERSCOPE_AI_MODEL: 'of-env', INFERSCOPE_AI_PROVIDER: 'openai-compatible' };
  expect(modelSettings('of-flag', env, [project, user])!.model).toBe('of-flag');
  expect(modelSettings(undefined, env, [project, user])).toMatchObject({
    model: 'of-env',
    provider: 'openai-compatible',
    baseUrl: 'https://llm.example/v1',
    timeoutMs: 5000,
    inputUsdPerMillion: 3,
    outputUsdPerMillion: null,
  });
  expect(modelSettings(undefined, {}, [user])).toMatchObject({
    model: 'of-user',
    baseUrl: 'https://api.anthropic.com/v1',
    apiKeyEnv: 'ANTHROPIC_API_KEY',
  });
});

test("a project's file cannot send the user's key to its own server, and that server is not queried automatically", () => {
  const env = { OPENAI_API_KEY: 'secret' };
  const settings = modelSettings(undefined, env, [project])!;
  expect([settings.apiKey, mayQueryAutomatically(settings)]).toEqual([null, false]);
  const named = { ...project, section: { ...project.section, api_key_env: 'TEAM_KEY' } };
  expect(modelSettings(undefined, { ...env, TEAM_KEY: 'team' }, [named])!.apiKey).toBe('team');
  const custom = modelSettings(undefined, { ...env, INFERSCOPE_AI_URL: 'https://llm.example/v1' }, [
    project,
  ])!;
  expect([custom.apiKey, mayQueryAutomatically(custom)]).toEqual(['secret', true]);
  const local = { ...project, section: { model: 'm', base_url: 'http://127.0.0.1:8000/v1' } };
  expect(mayQueryAutomatically(modelSettings(undefined, {}, [local])!)).toBe(true);
});

test('invalid settings are errors that state valid ones', () => {
  expect(() => modelSettings('m', { INFERSCOPE_AI_PROVIDER: 'gpt' }, [])).toThrow(
    'INFERSCOPE_AI_PROVIDER is "gpt"',
  );
  expect(() => modelSettings('m', { INFERSCOPE_AI_URL: 'localhost:8000' }, [])).toThrow('localhost:8000');
  expect(() => requireKey(modelSettings('m', {}, [])!)).toThrow('no key for api.openai.com');
  expect(() =>
    requireKey(modelSettings('m', { INFERSCOPE_AI_URL: 'http://10.0.0.1/v1' }, [])!),
  ).not.toThrow();
});
