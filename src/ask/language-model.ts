import type { LanguageModel, LanguageModelMiddleware } from 'ai';
import { boundedFetch, type Fetch } from './bounded-fetch.js';
import type { AskBudget } from './budget.js';
import type { ModelSettings } from './model-settings.js';

/**
 * The configured model for the `ai` SDK, within the limits of the budget. Loads the provider's package.
 * @param onDropped called with the number of tool calls above callsPerReply in a reply; they are neither run nor sent back
 */
export async function languageModel(
  settings: ModelSettings,
  budget: AskBudget,
  { send = globalThis.fetch, onDropped }: { send?: Fetch; onDropped?: (calls: number) => void } = {},
): Promise<LanguageModel> {
  // Without this the SDK writes warnings about a request to stdout.
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
  const fetch = boundedFetch(send, settings.timeoutMs, budget);
  const [model, { wrapLanguageModel }] = await Promise.all([providerModel(settings, fetch), import('ai')]);
  return wrapLanguageModel({ model, middleware: fewerCalls(budget.limits.callsPerReply, onDropped) });
}

async function providerModel({ provider, baseUrl: baseURL, apiKey, model }: ModelSettings, fetch: Fetch) {
  if (provider === 'anthropic') {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ baseURL, apiKey: apiKey ?? '', fetch })(model);
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const namedProvider = createOpenAICompatible({
    name: 'server',
    baseURL,
    fetch: async (input, init) => withoutWrongCounts(await fetch(input, init)),
    ...(apiKey === null ? {} : { apiKey }),
  });
  return namedProvider.chatModel(model);
}

/** The SDK rejects a reply with token counts that are not numbers: removes them, so that the answer can be used. */
async function withoutWrongCounts(reply: Response): Promise<Response> {
  if (!reply.ok) return reply;
  const { status, headers } = reply;
  const text = await reply.text();
  let body: { usage?: unknown } | null;
  try {
    body = JSON.parse(text) as { usage?: unknown } | null;
  } catch {
    return new Response(text, { status, headers });
  }
  if (body?.usage === undefined || body.usage === null) return new Response(text, { status, headers });
  const { prompt_tokens: input, completion_tokens: output } = body.usage as Record<string, unknown>;
  const counts = [input, output].every((count) => Number.isSafeInteger(count) && (count as number) >= 0);
  const usage = counts ? { prompt_tokens: input, completion_tokens: output } : null;
  return new Response(JSON.stringify({ ...body, usage }), { status, headers });
}

function fewerCalls(
  callsPerReply: number,
  onDropped: ((calls: number) => void) | undefined,
): LanguageModelMiddleware {
  return {
    specificationVersion: 'v3',
    async wrapGenerate({ doGenerate, params }) {
      const reply = await doGenerate();
      // Some servers let the model call tools anyway.
      const most = params.toolChoice?.type === 'none' ? 0 : callsPerReply;
      let calls = 0;
      const content = reply.content.filter(({ type }) => type !== 'tool-call' || ++calls <= most);
      if (most > 0 && calls > most) onDropped?.(calls - most);
      return { ...reply, content };
    },
  };
}
