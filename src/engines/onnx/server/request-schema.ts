import { z } from 'zod';

const stop = z
  .union([z.string(), z.array(z.string()).max(16)])
  .nullish()
  .transform((value) =>
    (value === null || value === undefined ? [] : [value].flat()).filter((text) => text !== ''),
  );

/** The supported parameters of OpenAI's API. `unsupported` rejects others that would change the answer. */
const common = {
  model: z.string().optional(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  temperature: z.number().min(0).nullish(),
  seed: z.number().int().nullish(),
  stop,
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  ignore_eos: z.boolean().nullish(),
};

export const completionSchema = z.looseObject({
  ...common,
  prompt: z.union([z.string(), z.array(z.number().int().min(0)).min(1), z.array(z.string()).length(1)], {
    error: 'It must be one text, or a list of token ids or of one text',
  }),
});

const content = z.union([z.string(), z.array(z.looseObject({ type: z.literal('text'), text: z.string() }))], {
  error: 'It must be text; images and audio are not supported',
});

export const chatSchema = z.looseObject({
  ...common,
  messages: z.array(z.looseObject({ role: z.string(), content })).min(1),
});

export type CompletionBody = z.infer<typeof completionSchema>;
export type ChatBody = z.infer<typeof chatSchema>;

/** Unsupported parameters that would change the answer, with the values that change nothing. */
const neutralValues: Record<string, readonly unknown[]> = {
  n: [1],
  best_of: [1],
  top_p: [1],
  top_k: [-1, 0],
  min_p: [0],
  presence_penalty: [0],
  frequency_penalty: [0],
  repetition_penalty: [1],
  logprobs: [false],
  top_logprobs: [0],
  echo: [false],
  suffix: [''],
  tools: [],
  response_format: [],
  logit_bias: [],
  min_tokens: [0],
};

/** Names of parameters set to unsupported values. */
export function unsupported(body: Record<string, unknown>): string[] {
  return Object.entries(neutralValues)
    .filter(([name, values]) => {
      const value = body[name];
      return value !== undefined && value !== null && !values.includes(value);
    })
    .map(([name]) => name);
}

/** Messages as one text, without a chat template: the embedded models are for measurements, not for chats. */
export function chatPrompt({ messages }: ChatBody): string {
  const text = (messageContent: ChatBody['messages'][number]['content']) =>
    typeof messageContent === 'string' ? messageContent : messageContent.map((part) => part.text).join('');
  return messages.map(({ role, content: messageContent }) => `${role}: ${text(messageContent)}`).join('\n');
}
