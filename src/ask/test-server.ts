import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the server received it. */
interface ReceivedRequest {
  path: string;
  headers: IncomingMessage['headers'];
  body: {
    system?: unknown;
    tools?: { function?: { name: string }; name?: string }[];
    tool_choice?: unknown;
    messages: { role: string; content: unknown; tool_call_id?: string }[];
  };
}

/** A reply of the server. */
export type Reply =
  | { text: string }
  | { calls: { name: string; arguments: string }[] }
  | { status: number; message: string; headers?: Record<string, string> }
  /** Never answers. */
  | { silence: true }
  | { raw: string };

export interface TestServer {
  url: string;
  requests: ReceivedRequest[];
  close(): Promise<void>;
}

/**
 * A server with an OpenAI-compatible and an Anthropic endpoint that answers by a script, one entry per request (the last one repeatedly),
 * and counts 100 tokens in and 10 out per reply.
 */
export async function testServer(
  script: (Reply | ((request: ReceivedRequest) => Reply))[],
): Promise<TestServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ReceivedRequest['body'];
      const received = { path: request.url ?? '', headers: request.headers, body };
      requests.push(received);
      const next = script[Math.min(requests.length, script.length) - 1]!;
      answer(response, typeof next === 'function' ? next(received) : next, received.path, requests.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function answer(response: ServerResponse, reply: Reply, path: string, n: number): void {
  if ('silence' in reply) return;
  if ('raw' in reply) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(reply.raw);
    return;
  }
  if ('status' in reply) {
    const error = JSON.stringify({ error: { message: reply.message, type: 'scripted' } });
    // Retries wait as long as the server requests.
    const headers = { 'content-type': 'application/json', 'retry-after-ms': '1', ...reply.headers };
    response.writeHead(reply.status, headers).end(error);
    return;
  }
  const body = path.endsWith('/messages') ? anthropic(reply, n) : openai(reply, n);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** https://platform.openai.com/docs/api-reference/chat/object */
function openai(reply: Extract<Reply, { text: string } | { calls: unknown }>, n: number) {
  const calls = 'calls' in reply ? reply.calls : [];
  return {
    id: `chatcmpl-${n}`,
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'scripted',
    choices: [
      {
        index: 0,
        finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
        message: {
          role: 'assistant',
          content: 'text' in reply ? reply.text : null,
          ...(calls.length > 0
            ? {
                tool_calls: calls.map((call, i) => ({
                  id: `call_${n}_${i}`,
                  type: 'function',
                  function: call,
                })),
              }
            : {}),
        },
      },
    ],
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  };
}

/** https://docs.anthropic.com/en/api/messages */
function anthropic(reply: Extract<Reply, { text: string } | { calls: unknown }>, n: number) {
  return {
    id: `msg_${n}`,
    type: 'message',
    role: 'assistant',
    model: 'scripted',
    content:
      'text' in reply
        ? [{ type: 'text', text: reply.text }]
        : reply.calls.map((call, i) => ({
            type: 'tool_use',
            id: `toolu_${n}_${i}`,
            name: call.name,
            input: JSON.parse(call.arguments) as unknown,
          })),
    stop_reason: 'text' in reply ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 10 },
  };
}
