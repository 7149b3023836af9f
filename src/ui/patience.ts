import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Hono, MiddlewareHandler } from 'hono';

/** Slower pages show a waiting page first. */
const patienceMs = 2000;
/** Time after which an unclaimed result is dropped. */
const keptMs = 60_000;

interface Work {
  since: number;
  answer: Promise<Response>;
}

/**
 * Shows a waiting page while a slow page is computed; it reloads until the result is ready. Only for page loads of a browser: requests of
 * scripts wait.
 * @param waiting makes the waiting page
 */
export function patience(
  app: Hono,
  waiting: (context: Context, seconds: number) => Promise<Response>,
): MiddlewareHandler {
  const working = new Map<string, Work>();
  const start = (url: string, requestHeaders: Headers): Work => {
    const headers = new Headers(requestHeaders);
    headers.set('accept', '*/*');
    const answer = Promise.resolve(app.fetch(new Request(url, { headers })));
    const drop = (): unknown => setTimeout(() => working.delete(url), keptMs).unref();
    answer.then(drop, drop);
    return { since: performance.now(), answer };
  };
  return async (context, next) => {
    const { url, path, raw } = context.req;
    if (!context.req.header('accept')?.includes('text/html') || path.includes('/api/')) return next();
    const work = working.get(url) ?? start(url, raw.headers);
    working.set(url, work);
    const answer = await Promise.race([work.answer, sleep(patienceMs, null)]);
    if (answer === null) return waiting(context, Math.round((performance.now() - work.since) / 1e3));
    working.delete(url);
    // Several tabs may wait for one page, so each gets a copy of the response.
    return answer.clone();
  };
}
