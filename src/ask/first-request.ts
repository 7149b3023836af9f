import type { ModelMessage } from 'ai';
import { AskBudget } from './budget.js';
import { languageModel } from './language-model.js';
import type { ModelSettings } from './model-settings.js';
import { type AskMode, firstMessage, systemPrompt } from './prompt.js';
import { recorder, toolSet } from './recorder.js';
import type { AskOptions } from './agent.js';

interface FirstRequest {
  url: string;
  model: string;
  body: Record<string, unknown>;
}

/** Aborts the request before it is sent. */
class RequestCaught extends Error {}

/** The first request exactly as `ask` would send it, without sending it. The key is in a header, which is not shown. */
export async function firstRequest(
  options: Pick<AskOptions, 'mode' | 'question' | 'opening' | 'tools' | 'context' | 'redact' | 'before'> & {
    settings: ModelSettings;
    mode: AskMode;
  },
): Promise<FirstRequest> {
  const { generateText } = await import('ai');
  const { settings, mode, redact, before } = options;
  const question = redact.text(options.question);
  let caught: FirstRequest | null = null;
  const catchRequest: typeof globalThis.fetch = (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const body = JSON.parse(String(init?.body)) as Record<string, unknown>;
    caught = { url, model: settings.model, body };
    return Promise.reject(new RequestCaught());
  };
  const user: ModelMessage = {
    role: 'user',
    content: before ? question : firstMessage(question, redact.json(options.opening)),
  };
  // Some providers refuse to build a request without a key.
  const settingsWithKey = { ...settings, apiKey: settings.apiKey ?? 'none' };
  const budget = new AskBudget();
  await generateText({
    model: await languageModel(settingsWithKey, budget, { send: catchRequest }),
    system: systemPrompt(mode),
    messages: [...(before?.messages ?? []), user],
    tools: await toolSet(options.tools, recorder(options.context, redact, budget.limits.callsAtOnce, 0)),
    maxRetries: 0,
  }).catch((error: unknown) => {
    if (caught === null) throw error;
  });
  return caught!;
}
