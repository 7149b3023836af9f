import type { LanguageModel } from 'ai';
import type { ModelSettings } from './model-settings.js';

type Fetch = typeof globalThis.fetch;

/** The configured model as the `ai` SDK takes it; each reply has its time limit. Loads the provider's package. */
export async function languageModel(
  { provider, baseUrl: baseURL, apiKey, model, timeoutMs }: ModelSettings,
  send: Fetch = globalThis.fetch,
): Promise<LanguageModel> {
  const fetch: Fetch = (input, init) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = init?.signal ? AbortSignal.any([init.signal, limit]) : limit;
    return send(input, { ...init, signal });
  };
  if (provider === 'anthropic') {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ baseURL, apiKey: apiKey ?? '', fetch })(model);
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const named = createOpenAICompatible({
    name: 'server',
    baseURL,
    fetch,
    ...(apiKey === null ? {} : { apiKey }),
  });
  return named.chatModel(model);
}
