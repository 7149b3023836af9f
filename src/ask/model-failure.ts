import { InferscopeError, messageOf, systemErrorCode } from '../model/errors.js';
import { redactText } from '../model/redaction.js';
import { defaultTimeoutMs, type ModelSettings } from './model-settings.js';
import { formatSetting } from '../vocabulary/format.js';

const withoutModel = '--model none answers from the session alone.';

/**
 * Converts an error of a model request to an InferscopeError.
 * @returns E_INTERRUPTED, E_TIMEOUT, E_MODEL_ACCESS (401, 403), E_SERVER_RESPONSE (429, 5xx, any other reply), E_SERVER_UNREACHABLE; an
 * InferscopeError unchanged
 */
export async function modelFailure(
  error: unknown,
  settings: ModelSettings,
  interrupted: boolean,
): Promise<Error> {
  const { APICallError, RetryError } = await import('ai');
  const { baseUrl, model, timeoutMs, apiKeyEnv, apiKey } = settings;
  const { host } = new URL(baseUrl);
  const lastError = RetryError.isInstance(error) ? error.lastError : error;
  // The SDK wraps errors thrown while reading a reply.
  const inferscopeError = causes(lastError).find((cause) => cause instanceof InferscopeError);
  if (inferscopeError) return inferscopeError;
  if (interrupted) {
    return new InferscopeError('E_INTERRUPTED', {
      what: 'interrupted before the answer was complete',
      why: 'No part of it was saved in the session.',
      fix: `Ask again, or use no model: ${withoutModel}`,
    });
  }
  if (isTimeout(lastError)) {
    return new InferscopeError('E_TIMEOUT', {
      what: `${model} at ${host} did not answer within ${formatSetting(timeoutMs / 1000, 's')}`,
      why: 'That is the time limit of one reply.',
      fix: `Raise it in inferscope.yaml, ai: {timeout: ${Math.max(2 * timeoutMs, defaultTimeoutMs) / 1000}s}; ${withoutModel}`,
    });
  }
  if (APICallError.isInstance(lastError)) {
    const message = redactText(
      serverMessage(lastError.responseBody) ?? lastError.message,
      apiKey === null ? [] : [apiKey],
    );
    const status = lastError.statusCode;
    if (status === undefined) return unreachable(host, baseUrl, lastError);
    if (status === 401 || status === 403) {
      return new InferscopeError('E_MODEL_ACCESS', {
        what: `${host} refused the key (HTTP ${status})`,
        why: `It answered: ${message}`,
        fix: `${apiKey === null ? `Set ${apiKeyEnv}` : `Check the key in ${apiKeyEnv}`} and the model's name, ${model}; ${withoutModel}`,
      });
    }
    return new InferscopeError('E_SERVER_RESPONSE', {
      what: `${host} answered HTTP ${status}${status === 429 ? ': too many requests or no quota left' : ''}`,
      why: `It answered: ${message}`,
      fix: tooLong.test(message)
        ? `The question comes with the findings of the session: use a model with a longer context than ${model}; ${withoutModel}`
        : status === 404
          ? `Check the URL ${baseUrl} and the model's name, ${model}; ${withoutModel}`
          : status === 429 || status >= 500
            ? `Try again later; ${withoutModel}`
            : `Check the model's name, ${model}, and that it supports tools; ${withoutModel}`,
    });
  }
  if (isNetwork(lastError)) return unreachable(host, baseUrl, lastError);
  return new InferscopeError(
    'E_SERVER_RESPONSE',
    {
      what: `the answer of ${model} at ${host} cannot be read`,
      why: redactText(messageOf(lastError), apiKey === null ? [] : [apiKey]).slice(0, 400),
      fix: `Check that ${baseUrl} is an API of the configured provider; ${withoutModel}`,
    },
    { cause: lastError },
  );
}

/** Whether the server rejects tools: it then answers with a 4xx that mentions tools. */
export async function refusesTools(error: unknown): Promise<boolean> {
  const { APICallError, RetryError } = await import('ai');
  const lastError = RetryError.isInstance(error) ? error.lastError : error;
  if (!APICallError.isInstance(lastError)) return false;
  const { statusCode, responseBody, message } = lastError;
  return (
    [400, 404, 422, 501].includes(statusCode ?? 0) &&
    /\btools?\b|tool[-_ ]?(?:call|choice|use)/i.test(serverMessage(responseBody) ?? message)
  );
}

/** Error texts for a prompt that is longer than the model's context. */
const tooLong =
  /\b(?:context|too long|too many tokens|maximum (?:number of )?tokens|prompt is too|token limit|max_model_len)\b/i;

function unreachable(host: string, baseUrl: string, error: unknown): InferscopeError {
  return new InferscopeError('E_SERVER_UNREACHABLE', {
    what: `${host} cannot be reached`,
    why: causes(error).map(messageOf).at(-1) ?? 'The connection failed.',
    fix: `Check that a server listens at ${baseUrl} (INFERSCOPE_AI_URL, ai: base_url); ${withoutModel}`,
  });
}

/** The error and its chain of causes. */
function causes(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let current = error; current && chain.length < 8; current = (current as { cause?: unknown }).cause)
    chain.push(current);
  return chain;
}

const isTimeout = (error: unknown): boolean =>
  causes(error).some(
    (cause) =>
      (cause as { name?: unknown }).name === 'TimeoutError' ||
      systemErrorCode(cause) === 'UND_ERR_HEADERS_TIMEOUT',
  );

const isNetwork = (error: unknown): boolean =>
  causes(error).some((cause) =>
    /^(ECONN|ENOTFOUND|EAI_|EHOST|ENET|EPIPE|CERT_|UND_ERR)/.test(systemErrorCode(cause) ?? ''),
  );

/** The message in an error body of either provider. */
function serverMessage(body: string | undefined): string | null {
  if (!body) return null;
  try {
    const { error, message } = JSON.parse(body) as { error?: unknown; message?: unknown };
    const reported =
      typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : error;
    const text = [reported, message].find((candidate) => typeof candidate === 'string');
    if (typeof text === 'string') return text.slice(0, 400);
  } catch {
    // Not JSON: an error page of a proxy.
  }
  return body.replaceAll(/\s+/g, ' ').slice(0, 200);
}
