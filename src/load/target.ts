/** Where and how requests are sent. */
export interface LoadTarget {
  /** Base of the API, without a trailing slash, e.g. http://localhost:8000/v1 */
  baseUrl: string;
  api: 'completions' | 'chat';
  model: string;
  apiKey: string | null;
  /** More headers, e.g. of a gateway. */
  headers: Record<string, string>;
  temperature: number;
  ignoreEos: boolean;
  /** Fields added to every body. */
  extraBody: Record<string, unknown>;
  /** A request that has not ended by then counts as timed out. */
  timeoutMs: number;
}

function requestPath(target: LoadTarget): string {
  const base = new URL(target.baseUrl);
  return `${base.pathname.replace(/\/$/, '')}/${target.api === 'chat' ? 'chat/completions' : 'completions'}`;
}

function requestHeaders(target: LoadTarget): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    ...(target.apiKey === null ? {} : { authorization: `Bearer ${target.apiKey}` }),
    ...target.headers,
  };
}

/** Encodes requests to a target as HTTP/1.1. */
export function requestEncoder(target: LoadTarget): (prompt: string, outputTokens: number) => string {
  const headers = { host: new URL(target.baseUrl).host, ...requestHeaders(target) };
  const head = [
    `POST ${requestPath(target)} HTTP/1.1`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ].join('\r\n');
  return (prompt, outputTokens) => {
    const body = requestBody(target, prompt, outputTokens);
    return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  };
}

/** The body of both APIs: greedy by default, and exactly `outputTokens` if the server supports ignore_eos. */
function requestBody(target: LoadTarget, prompt: string, outputTokens: number): string {
  return JSON.stringify({
    model: target.model,
    ...(target.api === 'chat' ? { messages: [{ role: 'user', content: prompt }] } : { prompt }),
    max_tokens: outputTokens,
    temperature: target.temperature,
    stream: true,
    stream_options: { include_usage: true },
    ...(target.ignoreEos ? { ignore_eos: true } : {}),
    ...target.extraBody,
  });
}
