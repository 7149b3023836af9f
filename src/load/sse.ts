import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';

/** What one event of the stream brings, after JSON is parsed. */
export interface StreamEvent {
  /** Generated text, reasoning and arguments of tool calls included; empty for role and usage chunks. */
  text: string;
  usage: StreamUsage | null;
  finishReason: string | null;
  done: boolean;
  /** A streamed error, or an event that is not JSON. */
  error: { kind: 'stream_error' | 'malformed'; text: string } | null;
}

export interface StreamUsage {
  input_tokens: number | null;
  output_tokens: number | null;
  cached_tokens: number | null;
}

interface OpenAiChunk {
  choices?: {
    text?: string | null;
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: { function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
  error?: unknown;
  object?: string;
  message?: string;
}

/** Feeds the bytes of an event stream, split anywhere, and calls back once an event. */
export function eventReader(onEvent: (event: StreamEvent) => void): {
  feed(bytes: Buffer, from: number, to: number): void;
} {
  const decoder = new StringDecoder('utf8');
  /** The piece before ended in the middle of a character. */
  let split = false;
  const parser = createParser({
    onEvent: ({ data, event }) => onEvent(readEvent(data, event)),
    onError: (error) => {
      // An unknown field is allowed by the standard, except that plain text in place of events is one long such field.
      if (error.type === 'unknown-field' && !error.line?.startsWith('{')) return;
      onEvent(failed('malformed', error.line ?? error.message));
    },
  });
  return {
    feed(bytes, from, to) {
      const before = split;
      split = to > from && bytes[to - 1]! >= 0x80;
      parser.feed(
        before || split ? decoder.write(bytes.subarray(from, to)) : bytes.toString('utf8', from, to),
      );
    },
  };
}

const nothing: StreamEvent = { text: '', usage: null, finishReason: null, done: false, error: null };

function failed(kind: 'stream_error' | 'malformed', text: string): StreamEvent {
  return { ...nothing, error: { kind, text: text.slice(0, 500) } };
}

/** One event of /v1/completions or /v1/chat/completions, as vLLM, SGLang, TGI, llama.cpp, Ollama and OpenAI send them. */
export function readEvent(data: string, event?: string): StreamEvent {
  if (data === '[DONE]') return { ...nothing, done: true };
  let chunk: OpenAiChunk;
  try {
    chunk = JSON.parse(data) as OpenAiChunk;
  } catch {
    return failed('malformed', data);
  }
  if (event === 'error' || (chunk.error !== undefined && chunk.error !== null) || chunk.object === 'error') {
    return failed('stream_error', errorText(chunk));
  }
  const choice = chunk.choices?.[0];
  const { usage } = chunk;
  return {
    text: choice ? choiceText(choice) : '',
    usage: usage
      ? {
          input_tokens: usage.prompt_tokens ?? null,
          output_tokens: usage.completion_tokens ?? null,
          cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? null,
        }
      : null,
    finishReason: choice?.finish_reason ?? null,
    done: false,
    error: null,
  };
}

function choiceText({ text, delta }: NonNullable<OpenAiChunk['choices']>[number]): string {
  if (typeof text === 'string') return text;
  if (!delta) return '';
  // vLLM and SGLang: reasoning_content; newer vLLM and Ollama: reasoning.
  const said = (delta.reasoning_content ?? delta.reasoning ?? '') + (delta.content ?? '');
  const calls = delta.tool_calls?.map(
    (call) => (call.function?.name ?? '') + (call.function?.arguments ?? ''),
  );
  return calls ? said + calls.join('') : said;
}

/** The message of an OpenAI error object, whatever its nesting. */
export function errorText(body: unknown): string {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  if (typeof error === 'string') return error;
  if (typeof error === 'object' && error !== null) return errorText(error) || JSON.stringify(error);
  return typeof message === 'string' ? message : JSON.stringify(body);
}
