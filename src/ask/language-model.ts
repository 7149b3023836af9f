import type { LanguageModel } from 'ai';
import { systemErrorCode } from '../model/errors.js';
import type { ModelSettings } from './model-settings.js';

type Fetch = typeof globalThis.fetch;

/** Trying again does not help; the SDK tries again after any TypeError of fetch. */
function nobodyThere(error: unknown): boolean {
  const { cause } = error as { cause?: unknown };
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes(systemErrorCode(cause) ?? '');
}

/** The configured model as the `ai` SDK takes it; each reply has its time limit. Loads the provider's package. */
export async function languageModel(
  { provider, baseUrl: baseURL, apiKey, model, timeoutMs }: ModelSettings,
  send: Fetch = globalThis.fetch,
): Promise<LanguageModel> {
  // The SDK writes what it thinks of a request to stdout.
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
  const fetch: Fetch = async (input, init) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = init?.signal ? AbortSignal.any([init.signal, limit]) : limit;
    try {
      return await send(input, { ...init, signal });
    } catch (error) {
      throw nobodyThere(error) ? new Error('the connection failed', { cause: error }) : error;
    }
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
