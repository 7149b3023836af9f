import { InferscopeError } from '../model/errors.js';

export const aiProviders = ['openai-compatible', 'anthropic'] as const;
type AiProvider = (typeof aiProviders)[number];

/** Section `ai` of inferscope.yaml. */
interface AiSection {
  provider?: AiProvider | undefined;
  base_url?: string | undefined;
  model?: string | undefined;
  /** Name of the environment variable with the key; keys are never in a file. */
  api_key_env?: string | undefined;
  timeout_ms?: number | undefined;
  max_steps?: number | undefined;
  input_usd_per_million?: number | undefined;
  output_usd_per_million?: number | undefined;
}

/** Source of the server's URL; a project's file is not trusted, since others may have written it. */
type UrlSource = 'environment' | 'project' | 'user' | 'default';

export interface ModelSettings {
  provider: AiProvider;
  baseUrl: string;
  baseUrlFrom: UrlSource;
  model: string;
  apiKey: string | null;
  /** Name of the environment variable of the key. */
  apiKeyEnv: string;
  /** Per reply of the model. */
  timeoutMs: number;
  /** Maximum replies per question; null uses the command's default. */
  maxSteps: number | null;
  inputUsdPerMillion: number | null;
  outputUsdPerMillion: number | null;
}

export const defaultTimeoutMs = 120_000;

const defaults: Record<AiProvider, { baseUrl: string; apiKeyEnv: string }> = {
  'openai-compatible': { baseUrl: 'https://api.openai.com/v1', apiKeyEnv: 'OPENAI_API_KEY' },
  anthropic: { baseUrl: 'https://api.anthropic.com/v1', apiKeyEnv: 'ANTHROPIC_API_KEY' },
};

/**
 * The model to use: the model from flag > environment > project's file > user's file, provider and URL without a flag, other settings
 * from the files. Null if none names a model, or with --model none.
 * @param sections nearest first
 * @throws E_USAGE for an unknown provider or an invalid URL
 */
export function modelSettings(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  sections: readonly { section: AiSection; from: 'project' | 'user' }[],
): ModelSettings | null {
  const first = (key: keyof AiSection) => sections.find(({ section }) => section[key] !== undefined);
  const model = flag || env['INFERSCOPE_AI_MODEL'] || first('model')?.section.model;
  if (!model || flag === 'none') return null;
  const provider = providerOf(
    env['INFERSCOPE_AI_PROVIDER'] || first('provider')?.section.provider || 'openai-compatible',
  );
  const environmentUrl = env['INFERSCOPE_AI_URL'];
  const fileUrl = first('base_url');
  const baseUrl = checkedUrl(environmentUrl || fileUrl?.section.base_url || defaults[provider].baseUrl);
  const baseUrlFrom = environmentUrl ? 'environment' : (fileUrl?.from ?? 'default');
  const configuredKeyEnv = first('api_key_env')?.section.api_key_env;
  const apiKeyEnv = configuredKeyEnv ?? defaults[provider].apiKeyEnv;
  // A checked-out project must not redirect the user's key for a provider to another server.
  const isRedirected = baseUrlFrom === 'project' && configuredKeyEnv === undefined && !isLoopback(baseUrl);
  return {
    provider,
    baseUrl,
    baseUrlFrom,
    model,
    apiKey: isRedirected ? null : env[apiKeyEnv] || null,
    apiKeyEnv,
    timeoutMs: first('timeout_ms')?.section.timeout_ms ?? defaultTimeoutMs,
    maxSteps: first('max_steps')?.section.max_steps ?? null,
    inputUsdPerMillion: first('input_usd_per_million')?.section.input_usd_per_million ?? null,
    outputUsdPerMillion: first('output_usd_per_million')?.section.output_usd_per_million ?? null,
  };
}

/** Whether commands may query the model automatically: not if only the project's file names the server. */
export function mayQueryAutomatically({ baseUrl, baseUrlFrom }: ModelSettings): boolean {
  return baseUrlFrom !== 'project' || isLoopback(baseUrl);
}

/** @throws E_MODEL_ACCESS for a request to the provider's own service without a key */
export function requireKey({ apiKey, apiKeyEnv, baseUrl, provider }: ModelSettings): void {
  if (apiKey !== null || (provider === 'openai-compatible' && baseUrl !== defaults[provider].baseUrl)) return;
  throw new InferscopeError('E_MODEL_ACCESS', {
    what: `no key for ${new URL(baseUrl).host}`,
    why: `The environment variable ${apiKeyEnv} is not set. Nothing was sent.`,
    fix: `export ${apiKeyEnv}=…, or name another variable with api_key_env in inferscope.yaml; --model none answers without a model.`,
  });
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function providerOf(text: string): AiProvider {
  const provider = aiProviders.find((aiProvider) => aiProvider === text);
  if (provider) return provider;
  throw new InferscopeError('E_USAGE', {
    what: `INFERSCOPE_AI_PROVIDER is "${text}"`,
    why: `It must be one of: ${aiProviders.join(', ')}.`,
    fix: 'export INFERSCOPE_AI_PROVIDER=anthropic, or unset it for an OpenAI-compatible server.',
  });
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && /^https?:$/.test(url.protocol)) return text.replace(/\/+$/, '');
  throw new InferscopeError('E_USAGE', {
    what: `the URL of the model's server is "${text}"`,
    why: 'It must start with http:// or https://.',
    fix: 'export INFERSCOPE_AI_URL=http://127.0.0.1:8000/v1',
  });
}
