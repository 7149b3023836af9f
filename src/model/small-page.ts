import type { Agent } from 'undici';

/** More than any /metrics page, list of models or version has. */
const maxPageBytes = 16 * 2 ** 20;

let agent: Agent | null = null;

/**
 * GETs a page of a server that nobody vouches for: it is read up to 16 MiB, and no redirect is followed.
 * @throws when there is no answer in time, or a longer one
 */
export async function smallPage(
  url: string,
  { headers = {}, signal }: { headers?: Record<string, string>; signal: AbortSignal },
): Promise<{ status: number; text: string }> {
  const undici = await import('undici');
  agent ??= new undici.Agent({ maxResponseSize: maxPageBytes });
  const { statusCode, body } = await undici.request(url, { headers, signal, dispatcher: agent });
  return { status: statusCode, text: await body.text() };
}
