import { failureText } from '../../load/exchange.js';
import { failureKind, failureWords, tlsFix } from '../../load/failure-kind.js';
import process from 'node:process';
import { InferscopeError } from '../../model/errors.js';
import { smallPage } from '../../model/small-page.js';

interface ServedModel {
  id: string;
  /** Reported by vLLM and SGLang; null for others. */
  maxContext: number | null;
}

/**
 * Expands http://host:8000 to http://host:8000/v1, and cuts an endpoint's URL to its base.
 * @param option text before the URL in the user's input, for errors
 * @throws E_USAGE
 */
export function baseOf(text: string, option: string): string {
  let url: URL | null = null;
  try {
    url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    // Reported below, like a URL that is not HTTP.
  }
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new InferscopeError('E_USAGE', {
      what: `${text} is not a server URL`,
      why: 'It must be http:// or https:// with a host, and usually ends in /v1.',
      fix: `Type for example: ${option} http://127.0.0.1:8000/v1`,
    });
  }
  const path = url.pathname.replace(/\/(?:chat\/)?completions\/?$/, '').replace(/\/+$/, '');
  return `${url.origin}${path === '' ? '/v1' : path}`;
}

/** The key comes only from the environment. */
export function keyOfEnvironment(): string | null {
  return process.env['INFERSCOPE_API_KEY'] ?? process.env['OPENAI_API_KEY'] ?? null;
}

interface RequestOptions {
  /** Headers in addition to the authorization header. */
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/**
 * Models that the server reports; null if it has no such page.
 * @throws E_SERVER_UNREACHABLE, E_SERVER_RESPONSE if it needs a key; the signal's own reason on abort
 */
export async function servedModels(
  baseUrl: string,
  apiKey: string | null,
  { headers = {}, signal }: RequestOptions = {},
): Promise<ServedModel[] | null> {
  const url = `${baseUrl}/models`;
  let status: number;
  let text: string;
  try {
    ({ status, text } = await smallPage(url, {
      headers: { ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }), ...headers },
      signal: AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(10_000)]),
    }));
  } catch (error) {
    signal?.throwIfAborted();
    throw new InferscopeError(
      'E_SERVER_UNREACHABLE',
      {
        what: `no answer from ${url}`,
        why: reasonOf(error),
        fix: isTlsFailure(error)
          ? tlsFix
          : 'Start the server, or check host and port. `inferscope serve` starts one to try.',
      },
      { cause: error },
    );
  }
  if (status === 401 || status === 403) {
    throw new InferscopeError('E_SERVER_RESPONSE', {
      what: `${url} requires a key`,
      why: `It answered ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`,
      fix: 'Set OPENAI_API_KEY (or INFERSCOPE_API_KEY) to a key of this server.',
    });
  }
  if (status !== 200) return null;
  try {
    const { data } = JSON.parse(text) as { data: { id: unknown; max_model_len?: unknown }[] };
    return data.map(({ id, max_model_len }) => ({
      id: String(id),
      maxContext: typeof max_model_len === 'number' ? max_model_len : null,
    }));
  } catch {
    return null;
  }
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'Nothing listens on this host and port (ECONNREFUSED).',
  ENOTFOUND: 'The host name is not known (ENOTFOUND).',
  EAI_AGAIN: 'The name server did not answer (EAI_AGAIN).',
};

const isTlsFailure = (error: unknown): boolean => failureKind(error as Error, false, false) === 'tls';

function reasonOf(error: unknown): string {
  const { code = '', name } = error as { code?: string; name?: string };
  if (name === 'TimeoutError') return 'It did not answer within 10 s.';
  if (reasons[code] !== undefined) return reasons[code];
  const text = failureText(error as Error);
  return isTlsFailure(error) ? `${failureWords('tls')}: ${text}` : text;
}

/**
 * The model to request.
 * @param requested name; empty: the first model
 * @throws E_MODEL_NOT_FOUND, E_SERVER_RESPONSE
 */
export function chooseModel(requested: string, served: ServedModel[] | null, baseUrl: string): ServedModel {
  if (served === null || served.length === 0) {
    if (requested !== '') return { id: requested, maxContext: null };
    throw new InferscopeError('E_SERVER_RESPONSE', {
      what: `${baseUrl}/models lists no model`,
      why: 'There is no model name to request.',
      fix: 'Check the URL (it ends in /v1 for most servers), or name the model with --model.',
    });
  }
  const model = requested === '' ? served[0] : served.find(({ id }) => id === requested);
  if (model) return model;
  throw new InferscopeError('E_MODEL_NOT_FOUND', {
    what: `${baseUrl} does not serve "${requested}"`,
    why: `It serves ${served
      .slice(0, 8)
      .map(({ id }) => id)
      .join(', ')}.`,
    fix: `Type for example: --model ${served[0]!.id}`,
  });
}
