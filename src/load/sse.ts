import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { formatSetting } from '../vocabulary/format.js';

/** Content of one event of the stream, after parsing JSON. */
export interface StreamEvent {
  /** Generated text, including reasoning and tool-call arguments; empty for role and usage chunks. */
  text: string;
  usage: StreamUsage | null;
  finishReason: string | null;
  done: boolean;
  /** A streamed error, or an event that is not JSON, not a chunk or never ends. Nothing follows it. */
  error: { kind: 'stream_error' | 'malformed' | 'too_large'; text: string } | null;
}

export interface StreamUsage {
  input_tokens: number | null;
  output_tokens: number | null;
  cached_tokens: number | null;
}

/** A longer event is not a token. Without a limit, an event that never ends would fill the memory. */
const maxEventChars = 4 * 2 ** 20;
/** Longest known context and answer of a model, rounded up; larger usage values are invalid. */
const maxTokens = { prompt: 2 ** 24, completion: 2 ** 20 };

/** Reads the bytes of an event stream, split anywhere, and calls back once per event. */
export function eventReader(onEvent: (event: StreamEvent) => void): {
  feed(bytes: Buffer, from: number, to: number): void;
} {
  const decoder = new StringDecoder('utf8');
  /** Whether the previous piece ended in the middle of a character. */
  let split = false;
  let ended = false;
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onEvent: ({ data, event }) => onEvent(readEvent(data, event)),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') {
        ended = true;
        onEvent(
          failureEvent(
            'too_large',
            `an event is longer than ${formatSetting(maxEventChars / 2 ** 20, 'MiB')}`,
          ),
        );
        return;
      }
      // The standard allows unknown fields, but plain text instead of events is one long unknown field.
      if (error.type === 'unknown-field' && !error.line?.startsWith('{')) return;
      onEvent(failureEvent('malformed', error.line ?? error.message));
    },
  });
  return {
    feed(bytes, from, to) {
      if (ended) return;
      const before = split;
      split = to > from && bytes[to - 1]! >= 0x80;
      parser.feed(
        before || split ? decoder.write(bytes.subarray(from, to)) : bytes.toString('utf8', from, to),
      );
    },
  };
}

const emptyEvent: StreamEvent = { text: '', usage: null, finishReason: null, done: false, error: null };

function failureEvent(kind: NonNullable<StreamEvent['error']>['kind'], text: string): StreamEvent {
  return { ...emptyEvent, error: { kind, text: text.slice(0, 500) } };
}

/**
 * One event of /v1/completions or /v1/chat/completions, as vLLM, SGLang, TGI, llama.cpp, Ollama and OpenAI send them.
 */
export function readEvent(data: string, event?: string): StreamEvent {
  if (data === '[DONE]') return { ...emptyEvent, done: true };
  let parsed: unknown;
  try {
    parsed = JSON.parse(data);
  } catch {
    return failureEvent('malformed', data);
  }
  const chunk = objectOf(parsed);
  if (chunk === null) return failureEvent('malformed', data);
  if (event === 'error' || (chunk['error'] ?? null) !== null || chunk['object'] === 'error') {
    return failureEvent('stream_error', errorText(chunk));
  }
  const choices = chunk['choices'];
  const choice = Array.isArray(choices) ? objectOf(choices[0]) : null;
  const usage = objectOf(chunk['usage']);
  const invalidCount = usage === null ? null : wrongCount(usage);
  if (invalidCount !== null) return failureEvent('malformed', invalidCount);
  return {
    text: choice ? choiceText(choice) : '',
    usage: usage && {
      input_tokens: countOf(usage['prompt_tokens']),
      output_tokens: countOf(usage['completion_tokens']),
      cached_tokens: countOf(objectOf(usage['prompt_tokens_details'])?.['cached_tokens']),
    },
    finishReason: textOf(choice?.['finish_reason']) || null,
    done: false,
    error: null,
  };
}

/** The invalid token count of a usage object; null if all are valid or absent. */
function wrongCount(usage: Record<string, unknown>): string | null {
  const counts: [name: string, value: unknown, most: number][] = [
    ['prompt_tokens', usage['prompt_tokens'], maxTokens.prompt],
    ['completion_tokens', usage['completion_tokens'], maxTokens.completion],
    ['cached_tokens', objectOf(usage['prompt_tokens_details'])?.['cached_tokens'], maxTokens.prompt],
  ];
  const invalidCount = counts.find(
    ([, value, maximum]) =>
      (value ?? null) !== null &&
      !(Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maximum),
  );
  return invalidCount
    ? `usage.${invalidCount[0]} is not a number of tokens: ${shortJson(invalidCount[1])}`
    : null;
}

const countOf = (value: unknown) => (typeof value === 'number' ? value : null);

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function choiceText(choice: Record<string, unknown>): string {
  if (typeof choice['text'] === 'string') return choice['text'];
  const delta = objectOf(choice['delta']);
  if (!delta) return '';
  // vLLM and SGLang: reasoning_content; newer vLLM and Ollama: reasoning.
  const generated = textOf(delta['reasoning_content'] ?? delta['reasoning']) + textOf(delta['content']);
  const calls = delta['tool_calls'];
  if (!Array.isArray(calls)) return generated;
  return generated + calls.map((call) => callText(objectOf(objectOf(call)?.['function']))).join('');
}

function callText(call: Record<string, unknown> | null): string {
  return textOf(call?.['name']) + textOf(call?.['arguments']);
}

/** OpenAI nests one error, gateways one or two more. */
const maxNested = 4;

/** The message of an OpenAI error object at any nesting. */
export function errorText(body: unknown): string {
  let inner = body;
  for (let depth = 0; depth < maxNested; depth++) {
    const { error, message } = objectOf(inner) ?? {};
    if (typeof error === 'string') return error;
    if (objectOf(error) === null) return typeof message === 'string' ? message : shortJson(inner);
    inner = error;
  }
  return shortJson(inner);
}

function shortJson(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? '').slice(0, 500);
  } catch {
    // Nested deeper than the stack.
    return 'an object nested too deep to be shown';
  }
}
