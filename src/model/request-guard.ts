import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { MiddlewareHandler } from 'hono';

/** Why a request is rejected before it is read. */
interface Refusal {
  status: 403 | 415;
  message: string;
}

/**
 * Rejects requests that a page in a browser could make on behalf of another site: a Host that is not this server's (DNS rebinding), an
 * Origin of another site, and a body that is not declared as JSON, which browsers send without a preflight request.
 * @param host address that the server listens on, as typed
 */
export function requestGuard(host: string, refuse: (refusal: Refusal) => Response): MiddlewareHandler {
  return async (context, next) => {
    const url = new URL(context.req.url);
    if (!servesName(url.hostname, host)) {
      return refuse({
        status: 403,
        message: `Host ${url.host} is not served; use ${servedAt(host)}.`,
      });
    }
    const origin = context.req.header('origin');
    if (origin !== undefined && hostOf(origin) !== url.host) {
      return refuse({ status: 403, message: 'Cross-origin requests are not served.' });
    }
    if (context.req.method === 'POST' && !isJson(context.req.header('content-type'))) {
      return refuse({ status: 415, message: 'Send the body as content-type: application/json.' });
    }
    return next();
  };
}

/**
 * Whether a host name is a loopback name or that of --host. On all interfaces any IP address is accepted: no name can be rebound to be an
 * address.
 */
function servesName(requested: string, host: string): boolean {
  const name = requested.replace(/^\[|\]$/g, '').toLowerCase();
  const bound = host.toLowerCase();
  if (name === bound || name === 'localhost' || name === '::1' || /^127(?:\.\d+){3}$/.test(name)) return true;
  if (bound !== '0.0.0.0' && bound !== '::') return false;
  return isIP(name) !== 0 || name === hostname().toLowerCase();
}

function servedAt(host: string): string {
  if (host === '0.0.0.0' || host === '::')
    return `an IP address of this machine or its host name, http://${hostname().toLowerCase()}`;
  return `http://${host.includes(':') ? `[${host}]` : host}`;
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

function isJson(type: string | undefined): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(type ?? '');
}
