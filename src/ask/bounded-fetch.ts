import { InferscopeError, systemErrorCode } from '../model/errors.js';
import type { AskBudget } from './budget.js';
import { formatSetting } from '../vocabulary/format.js';

export type Fetch = typeof globalThis.fetch;

/** Whether the server is unreachable: retrying does not help, but the SDK retries after any TypeError of fetch. */
function isUnreachable(error: unknown): boolean {
  const { cause } = error as { cause?: unknown };
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes(systemErrorCode(cause) ?? '');
}

/**
 * A fetch with a time limit per reply, a size limit per body, and without redirects: the request contains the key and the session's data,
 * which are only for the configured server.
 * @throws E_SERVER_RESPONSE for a redirect; reading a body longer than replyBytes fails with the same code
 */
export function boundedFetch(send: Fetch, timeoutMs: number, budget: AskBudget): Fetch {
  return async (input, init) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = init?.signal ? AbortSignal.any([init.signal, limit]) : limit;
    budget.bytes += typeof init?.body === 'string' ? Buffer.byteLength(init.body) : 0;
    let reply: Response;
    try {
      reply = await send(input, { ...init, signal, redirect: 'manual' });
    } catch (error) {
      throw isUnreachable(error) ? new Error('the connection failed', { cause: error }) : error;
    }
    const { status, headers, body } = reply;
    if (status >= 300 && status < 400) {
      await body?.cancel();
      throw redirected(new URL(input instanceof Request ? input.url : input), headers.get('location'));
    }
    if (body === null) return reply;
    return new Response(body.pipeThrough(limitedStream(budget)), { status, headers });
  };
}

function limitedStream(budget: AskBudget): TransformStream<Uint8Array, Uint8Array> {
  const { replyBytes } = budget.limits;
  let remainingBytes = replyBytes;
  return new TransformStream({
    transform(chunk, controller) {
      remainingBytes -= chunk.length;
      budget.bytes += chunk.length;
      if (remainingBytes >= 0) controller.enqueue(chunk);
      else controller.error(tooLong(replyBytes));
    },
  });
}

const tooLong = (bytes: number): InferscopeError =>
  new InferscopeError('E_SERVER_RESPONSE', {
    what: `a reply of the model's server is longer than ${formatSetting(bytes / 2 ** 20, 'MiB')}`,
    why: 'This is longer than any answer, so the rest was not read.',
    fix: 'Check the URL and the model (INFERSCOPE_AI_URL, ai: base_url); --model none answers from the session alone.',
  });

function redirected(from: URL, location: string | null): InferscopeError {
  const to = location !== null && URL.canParse(location, from.href) ? new URL(location, from) : null;
  return new InferscopeError('E_SERVER_RESPONSE', {
    what: `${from.host} redirects to ${to ? to.host : 'no valid URL'}`,
    why: 'Redirects are not followed: the key and the data are for the configured server. Nothing was sent to any other server.',
    fix: to
      ? `If you trust ${to.host}, configure the URL that it redirects to (${to.origin}${to.pathname}, without the last part): INFERSCOPE_AI_URL, or ai: base_url`
      : 'Check the URL (INFERSCOPE_AI_URL, ai: base_url).',
  });
}
