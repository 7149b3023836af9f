import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';

const equal = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());

/**
 * Only who has the token sees a page: it comes with the first URL and is kept as a cookie that no script reads and no other site
 * sends. Other users of this machine can reach the port, too.
 */
export function tokenGuard(token: string): MiddlewareHandler {
  return async (context, next) => {
    const url = new URL(context.req.url);
    // Cookies do not know ports: two servers on one host need two names.
    const name = `inferscope-${url.port}`;
    const given = url.searchParams.get('token');
    if (given !== null && equal(given, token)) {
      setCookie(context, name, token, { httpOnly: true, sameSite: 'Strict', path: '/' });
      url.searchParams.delete('token');
      return context.redirect(`${url.pathname}${url.search}`, 303);
    }
    if (!equal(getCookie(context, name) ?? '', token))
      return context.text('Open the URL that inferscope ui printed: it has the token of this server.\n', 401);
    return next();
  };
}

/** What every answer says to browsers: nothing from elsewhere, in no frame, guessed as no other type. */
export const securityHeaders: MiddlewareHandler = async (context, next) => {
  await next();
  const headers = context.res.headers;
  headers.set('x-content-type-options', 'nosniff');
  headers.set('referrer-policy', 'no-referrer');
  headers.set('cross-origin-resource-policy', 'same-origin');
  headers.set('cross-origin-opener-policy', 'same-origin');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
};

/** Of a page of ours: scripts and data from this server alone. */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');
