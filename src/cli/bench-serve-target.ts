import { validateHeaderName, validateHeaderValue } from 'node:http';
import process from 'node:process';
import { InferscopeError, messageOf } from '../model/errors.js';
import { stoppedEarly } from '../load/probe.js';
import type { LoadTarget } from '../load/target.js';

export interface TargetOptions {
  model?: string;
  api: 'completions' | 'chat';
  temperature: number;
  ignoreEos: boolean;
  extraBody?: string;
  header?: string[];
  timeout: number;
}

/**
 * Where requests go. The key comes from the environment only.
 * @throws E_USAGE, E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_INTERRUPTED
 */
export async function targetOf(
  url: string,
  options: TargetOptions,
  signal: AbortSignal,
): Promise<LoadTarget> {
  const baseUrl = baseOf(url);
  const apiKey = process.env['INFERSCOPE_API_KEY'] ?? process.env['OPENAI_API_KEY'] ?? null;
  const headers = Object.fromEntries((options.header ?? []).map(parseHeader));
  return {
    baseUrl,
    api: options.api,
    model: options.model ?? (await firstModel(baseUrl, apiKey, headers, signal)),
    apiKey,
    headers,
    temperature: options.temperature,
    ignoreEos: options.ignoreEos,
    extraBody: options.extraBody === undefined ? {} : parseBody(options.extraBody),
    timeout_ms: options.timeout,
  };
}

/** http://host:8000 is meant as http://host:8000/v1; an endpoint's own URL is cut to its base. */
export function baseOf(text: string): string {
  let url: URL;
  try {
    url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    throw badUrl(text);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw badUrl(text);
  const path = url.pathname.replace(/\/(?:chat\/)?completions\/?$/, '').replace(/\/+$/, '');
  return `${url.origin}${path === '' ? '/v1' : path}`;
}

function badUrl(text: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${text} is no URL of a server`,
    why: 'It must be http:// or https:// with a host, and usually ends in /v1.',
    fix: 'Type for example: inferscope bench serve http://127.0.0.1:8000/v1',
  });
}

function parseHeader(text: string): [string, string] {
  const at = text.indexOf(':');
  const [name, value] = [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    if (at > 0) return [name, value];
  } catch {
    // Told below, like a header without a name.
  }
  throw new InferscopeError('E_USAGE', {
    what: `--header ${text} is no header`,
    why: 'A header is name:value, with no control characters.',
    fix: 'Type for example: --header "x-route: canary"',
  });
}

function parseBody(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && !Array.isArray(body))
      return body as Record<string, unknown>;
  } catch {
    // Told below, like JSON that is no object.
  }
  throw new InferscopeError('E_USAGE', {
    what: '--extra-body is no JSON object',
    why: `It reads ${text}`,
    fix: `Type for example: --extra-body '{"top_k": 1}'`,
  });
}

async function firstModel(
  baseUrl: string,
  apiKey: string | null,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<string> {
  const url = `${baseUrl}/models`;
  const { request } = await import('undici');
  let status: number;
  let text: string;
  try {
    const answered = await request(url, {
      headers: { ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }), ...headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
    });
    status = answered.statusCode;
    text = await answered.body.text();
  } catch (error) {
    if (signal.aborted) throw stoppedEarly();
    throw new InferscopeError(
      'E_SERVER_UNREACHABLE',
      {
        what: `no answer from ${url}`,
        why: messageOf(error) || String((error as { code?: string }).code ?? error),
        fix: 'Start the server, or check host and port. `inferscope serve` starts one to try.',
      },
      { cause: error },
    );
  }
  try {
    const { data } = JSON.parse(text) as { data: { id: string }[] };
    if (status === 200 && data[0]) return data[0].id;
  } catch {
    // Told below.
  }
  throw new InferscopeError('E_SERVER_RESPONSE', {
    what: `${url} lists no model`,
    why: `It answered ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`,
    fix:
      status === 401 || status === 403
        ? 'Set OPENAI_API_KEY (or INFERSCOPE_API_KEY) to a key of this server.'
        : 'Check the URL (it ends in /v1 for most servers), or name the model with --model.',
  });
}
