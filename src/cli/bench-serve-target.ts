import { validateHeaderName, validateHeaderValue } from 'node:http';
import { baseOf, chooseModel, keyOfEnvironment, servedModels } from '../engines/openai/find-server.js';
import { stoppedEarly } from '../load/probe.js';
import type { LoadTarget } from '../load/target.js';
import { InferscopeError } from '../model/errors.js';

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
 * Resolves the target of the requests. The API key comes only from the environment.
 * @throws E_USAGE, E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_INTERRUPTED
 */
export async function targetOf(
  url: string,
  options: TargetOptions,
  signal: AbortSignal,
): Promise<LoadTarget> {
  const baseUrl = baseOf(url, 'inferscope bench serve');
  const apiKey = keyOfEnvironment();
  const headers = Object.fromEntries((options.header ?? []).map(parseHeader));
  const extraBody = options.extraBody === undefined ? {} : parseBody(options.extraBody);
  return {
    baseUrl,
    api: options.api,
    model: options.model ?? (await firstModel(baseUrl, apiKey, headers, signal)),
    apiKey,
    headers,
    temperature: options.temperature,
    ignoreEos: options.ignoreEos,
    extraBody,
    timeoutMs: options.timeout,
  };
}

function parseHeader(text: string): [string, string] {
  const index = text.indexOf(':');
  const [name, value] = [text.slice(0, index).trim().toLowerCase(), text.slice(index + 1).trim()];
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    if (index > 0) return [name, value];
  } catch {
    // Reported below, like a header without a name.
  }
  throw new InferscopeError('E_USAGE', {
    what: '--header is not a header',
    why: 'A header is name:value, without control characters.',
    fix: 'Type for example: --header "x-route: canary"',
  });
}

function parseBody(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && !Array.isArray(body))
      return body as Record<string, unknown>;
  } catch {
    // Reported below, like JSON that is not an object.
  }
  throw new InferscopeError('E_USAGE', {
    what: '--extra-body is not a JSON object',
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
  try {
    return chooseModel('', await servedModels(baseUrl, apiKey, { headers, signal }), baseUrl).id;
  } catch (error) {
    throw signal.aborted ? stoppedEarly() : error;
  }
}
