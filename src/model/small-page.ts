import type { Agent } from 'undici';

/** Maximum bytes of a page, larger than any /metrics page, list of models or version. */
const maxPageBytes = 16 * 2 ** 20;

let agent: Agent | null = null;

/**
 * GETs a page of an untrusted server: reads at most 16 MiB and follows no redirect.
 * @throws if there is no answer in time, or a longer one
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
