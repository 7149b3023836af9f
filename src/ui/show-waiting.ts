import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Hono, MiddlewareHandler } from 'hono';

/** Slower pages show a waiting page first. */
const patientMs = 2000;
/** Time after which an unclaimed result is dropped. */
const unclaimedMs = 60_000;

interface Work {
  since: number;
  answer: Promise<Response>;
}

/**
 * Shows a waiting page while a slow page is computed; it reloads until the result is ready. Only for page loads of a browser: requests of
 * scripts wait.
 * @param waitingPage makes the waiting page
 */
export function showWaiting(
  app: Hono,
  waitingPage: (context: Context, seconds: number) => Promise<Response>,
): MiddlewareHandler {
  const running = new Map<string, Work>();
  const start = (url: string, requestHeaders: Headers): Work => {
    const headers = new Headers(requestHeaders);
    headers.set('accept', '*/*');
    const answer = Promise.resolve(app.fetch(new Request(url, { headers })));
    const drop = (): unknown => setTimeout(() => running.delete(url), unclaimedMs).unref();
    answer.then(drop, drop);
    return { since: performance.now(), answer };
  };
  return async (context, next) => {
    const { url, path, raw } = context.req;
    if (!context.req.header('accept')?.includes('text/html') || path.includes('/api/')) return next();
    const work = running.get(url) ?? start(url, raw.headers);
    running.set(url, work);
    const answer = await Promise.race([work.answer, sleep(patientMs, null)]);
    if (answer === null) return waitingPage(context, Math.round((performance.now() - work.since) / 1e3));
    running.delete(url);
    // Several tabs may wait for one page, so each gets a copy of the response.
    return answer.clone();
  };
}
