import { randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { z } from 'zod';
import { messageOf } from '../../../model/errors.js';
import type { TextTokenizer } from '../tokenizer.js';
import type { Generated, GenerationQueue, GenerationRequest } from './generation-queue.js';
import { prometheusText } from './prometheus.js';
import { requestGuard } from '../../../model/request-guard.js';
import {
  chatPrompt,
  chatSchema,
  completionSchema,
  unsupported,
  type ChatBody,
  type CompletionBody,
} from './request-schema.js';
import { formatCount, formatSetting, plural } from '../../../vocabulary/format.js';

interface ServedModel {
  name: string;
  /** The address that the server listens on, as typed. */
  host: string;
  contextLen: number;
  vocabSize: number;
  tokenizer: TextTokenizer;
  queue: GenerationQueue;
}

/** max_tokens of requests without it, as in OpenAI's completions. */
const defaultMaxTokens = 16;

/** Larger than a prompt of the longest context, as text or as token ids. */
const maxBodyBytes = 8 * 2 ** 20;

/** OpenAI's completions and chat completions for one model; /v1/models, /health, /metrics. */
export function servedApp(model: ServedModel, draining: () => boolean): Hono {
  const app = new Hono();
  const created = Math.floor(Date.now() / 1000);
  app.use(requestGuard(model.host, ({ status, message }) => refuse(status, message)));
  app.use(
    bodyLimit({
      maxSize: maxBodyBytes,
      onError: () => refuse(413, `The body is larger than ${formatSetting(maxBodyBytes / 2 ** 20, 'MiB')}.`),
    }),
  );
  app.get('/health', (context) => (draining() ? context.text('draining', 503) : context.text('ok')));
  app.get('/metrics', (context) =>
    context.text(prometheusText(model.queue.metrics, model.name, model.contextLen), 200, {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
    }),
  );
  app.get('/v1/models', (context) =>
    context.json({
      object: 'list',
      data: [
        { id: model.name, object: 'model', created, owned_by: 'inferscope', max_model_len: model.contextLen },
      ],
    }),
  );
  app.post('/v1/completions', (context) =>
    answer(context.req.raw, model, draining, completionSchema, 'text'),
  );
  app.post('/v1/chat/completions', (context) => answer(context.req.raw, model, draining, chatSchema, 'chat'));
  app.notFound(({ req: { method, path } }) =>
    paths.includes(path)
      ? refuse(405, `${path} does not accept ${method}; use ${postPaths.includes(path) ? 'POST' : 'GET'}.`)
      : refuse(404, `Unknown path ${path}; this server has ${paths.join(', ')}.`),
  );
  app.onError((error) => refuse(500, messageOf(error)));
  return app;
}

const postPaths = ['/v1/completions', '/v1/chat/completions'];
const paths = ['/v1/models', ...postPaths, '/metrics', '/health'];

function refuse(status: number, message: string): Response {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return Response.json({ error: { message, type, param: null, code: status } }, { status });
}

type Body = CompletionBody | ChatBody;

async function answer(
  raw: Request,
  model: ServedModel,
  draining: () => boolean,
  schema: z.ZodType<Body>,
  kind: 'text' | 'chat',
): Promise<Response> {
  if (draining()) return refuse(503, 'The server is shutting down.');
  const requestBody: unknown = await raw.json().catch(() => null);
  const parsed = schema.safeParse(requestBody);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return refuse(
      400,
      requestBody === null
        ? 'The body is not JSON.'
        : `${issue?.path.join('.') || 'body'}: ${issue?.message}`,
    );
  }
  const body = parsed.data;
  const unsupportedNames = unsupported(body);
  if (unsupportedNames.length > 0)
    return refuse(400, `Unsupported parameters: ${unsupportedNames.join(', ')}.`);
  if (body.model !== undefined && body.model !== model.name)
    return refuse(404, `Unknown model ${body.model}; this server has ${model.name}.`);
  const prompt = promptTokens(body, model.tokenizer);
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens;
  if (prompt.length === 0) return refuse(400, 'The prompt has no token.');
  if (prompt.some((token) => token >= model.vocabSize))
    return refuse(400, `Token ids must be below ${model.vocabSize}, the size of the vocabulary.`);
  if (prompt.length + maxTokens > model.contextLen)
    return refuse(
      400,
      `The prompt (${plural(prompt.length, 'token')}) and max_tokens (${formatCount(maxTokens)}) exceed the context of ${plural(model.contextLen, 'token')}.`,
    );
  const clientGone = new AbortController();
  raw.signal.addEventListener('abort', () => clientGone.abort(), { once: true });
  const request: GenerationRequest = {
    prompt,
    maxTokens,
    temperature: body.temperature ?? 1,
    seed: body.seed ?? Math.floor(Math.random() * 2 ** 32),
    stop: body.stop,
    ignoreEos: body.ignore_eos ?? false,
    signal: clientGone.signal,
  };
  const head = {
    id: `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: model.name,
  };
  if (body.stream) {
    const includeUsage = body.stream_options?.include_usage === true;
    return streamResponse(model.queue, request, head, kind, includeUsage, clientGone);
  }
  const generated = await model.queue.generate(request, () => {});
  const choice =
    kind === 'chat'
      ? { index: 0, message: { role: 'assistant', content: generated.text }, logprobs: null }
      : { index: 0, text: generated.text, logprobs: null };
  return Response.json({
    ...head,
    object: kind === 'chat' ? 'chat.completion' : 'text_completion',
    choices: [{ ...choice, finish_reason: generated.finishReason }],
    usage: usage(prompt.length, generated),
  });
}

function promptTokens(body: Body, tokenizer: TextTokenizer): number[] {
  if ('messages' in body) return tokenizer.encode(chatPrompt(body as ChatBody));
  const { prompt } = body as CompletionBody;
  if (typeof prompt === 'string') return tokenizer.encode(prompt);
  return typeof prompt[0] === 'string' ? tokenizer.encode(prompt[0]) : (prompt as number[]);
}

function usage(promptLen: number, { tokens }: Generated) {
  return { prompt_tokens: promptLen, completion_tokens: tokens, total_tokens: promptLen + tokens };
}

/** One event per piece of text, then the finish reason, usage if requested, and [DONE]. A failure is an event `error`. */
function streamResponse(
  queue: GenerationQueue,
  request: GenerationRequest,
  head: object,
  kind: 'text' | 'chat',
  includeUsage: boolean,
  clientGone: AbortController,
): Response {
  const object = kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (data: string) => {
        if (!clientGone.signal.aborted) controller.enqueue(encoder.encode(`data: ${data}\n\n`));
      };
      const chunk = (choices: object[], more: object = {}) =>
        send(JSON.stringify({ ...head, object, choices, ...more }));
      const piece = (text: string, reason: string | null, role?: string) =>
        kind === 'chat'
          ? {
              index: 0,
              delta: { ...(role ? { role } : {}), content: text },
              logprobs: null,
              finish_reason: reason,
            }
          : { index: 0, text, logprobs: null, finish_reason: reason };
      if (kind === 'chat') chunk([piece('', null, 'assistant')]);
      try {
        const generated = await queue.generate(request, (text) => chunk([piece(text, null)]));
        chunk([piece('', generated.finishReason)]);
        if (includeUsage) chunk([], { usage: usage(request.prompt.length, generated) });
      } catch (error) {
        send(JSON.stringify({ error: { message: messageOf(error), type: 'server_error', code: 500 } }));
      }
      send('[DONE]');
      if (!clientGone.signal.aborted) controller.close();
    },
    cancel() {
      clientGone.abort();
    },
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  });
}
