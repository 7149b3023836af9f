import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';

const equal = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());

/**
 * Allows only requests with the token. It is in the first URL, then in a cookie that scripts cannot read and other sites cannot send. The
 * token is needed because other users of this machine can connect to the port, too.
 */
export function tokenGuard(token: string): MiddlewareHandler {
  return async (context, next) => {
    const url = new URL(context.req.url);
    // Cookies ignore ports, so the name contains the port: two servers on one host need different cookies.
    const name = `inferscope-${url.port}`;
    const sentToken = url.searchParams.get('token');
    if (sentToken !== null && equal(sentToken, token)) {
      setCookie(context, name, token, { httpOnly: true, sameSite: 'Strict', path: '/' });
      url.searchParams.delete('token');
      return context.redirect(`${url.pathname}${url.search}`, 303);
    }
    if (!equal(getCookie(context, name) ?? '', token))
      return context.text('Open the URL that inferscope ui printed: it has the token of this server.\n', 401);
    return next();
  };
}

/**
 * Cache-control of responses with an ETag of their content: the browser asks each time and gets a 304. A URL alone does not name the
 * content, since another version of inferscope may answer it.
 */
export const revalidated = 'private, no-cache';

/** Security headers of every response: no type sniffing, no referrer, no use by pages of other sites, and no cache unless it asks for one. */
export const securityHeaders: MiddlewareHandler = async (context, next) => {
  await next();
  const headers = context.res.headers;
  headers.set('x-content-type-options', 'nosniff');
  headers.set('referrer-policy', 'no-referrer');
  headers.set('cross-origin-resource-policy', 'same-origin');
  headers.set('cross-origin-opener-policy', 'same-origin');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
};

/** Content security policy of our pages: only scripts and data of this server. */
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
