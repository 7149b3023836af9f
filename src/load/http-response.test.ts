import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { MalformedResponse, responseReader } from './http-response.js';

interface Answer {
  status: number;
  type: string | null;
  body: string;
  reusable: boolean;
}

/** The result of inferscope's reader, in pieces of `size` bytes. */
function readPieces(text: string, size: number): Answer[] {
  const answers: Answer[] = [];
  let answer: Answer = { status: 0, type: null, body: '', reusable: false };
  const reader = responseReader({
    onHead(status, headers) {
      answer = { status, type: headers.get('content-type') ?? null, body: '', reusable: false };
    },
    onBody(bytes, from, to) {
      answer.body += bytes.toString('latin1', from, to);
    },
    onEnd(reusable) {
      answers.push({ ...answer, reusable });
    },
  });
  const bytes = Buffer.from(text, 'latin1');
  for (let from = 0; from < bytes.length; from += size)
    reader.feed(bytes, from, Math.min(from + size, bytes.length));
  reader.close();
  return answers;
}

/** The result of Node's HTTP client. */
async function readWithNode(text: string): Promise<Omit<Answer, 'reusable'>> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.from(text, 'latin1')));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const sent = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let body = '';
    for await (const bytes of answer) body += (bytes as Buffer).toString('latin1');
    return { status: answer.statusCode!, type: answer.headers['content-type'] ?? null, body };
  } finally {
    server.close();
  }
}

const completeAnswers: [name: string, text: string, reusable: boolean][] = [
  [
    'chunked, with an extension and a trailer',
    'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1A;x=y\r\n, abcdefghijklmnopqrstuvwx\r\n0\r\nx-time: 1\r\n\r\n',
    true,
  ],
  ['a body with its length', 'HTTP/1.1 429 Too Many\r\ncontent-length:  4\r\n\r\nslow', true],
  [
    'a body with its length, and the connection closes',
    'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nab',
    false,
  ],
  ['a body until the connection closes', 'HTTP/1.1 200 OK\r\n\r\neverything', false],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na', false],
  [
    'an answer after an informational one',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\ncontent-length: 0\r\n\r\n',
    true,
  ],
  ['no body', 'HTTP/1.1 204 \r\n\r\n', true],
];

test.each(completeAnswers)('%s, cut at every byte, reads as in Node', async (_, text, reusable) => {
  const expected = { ...(await readWithNode(text)), reusable };
  for (const size of [1, 2, 3, 5, 17, text.length]) expect(readPieces(text, size)).toEqual([expected]);
});

test('two answers on one connection', () => {
  const [, text] = completeAnswers[0]!;
  for (const size of [1, 7, 1000]) {
    const [first, second, ...others] = readPieces(text + text, size);
    expect(first!.body).toBe('hello, abcdefghijklmnopqrstuvwx');
    expect(second).toEqual(first);
    expect(others).toEqual([]);
  }
});

test('a truncated answer has no end', () => {
  const [, text] = completeAnswers[0]!;
  for (const length of [10, 60, 95, text.length - 1])
    expect(readPieces(text.slice(0, length), 1)).toEqual([]);
});

const invalidAnswers = [
  'SSH-2.0-OpenSSH_9.6\r\n',
  '<html>no status line</html>\r\n\r\n',
  'HTTP/1.1 abc\r\n\r\n',
  'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffff\r\n',
  `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(70_000)}`,
];

test('invalid HTTP is reported, however it is cut', () => {
  for (const text of invalidAnswers) {
    expect(() => readPieces(text, text.length)).toThrow(MalformedResponse);
    expect(() => readPieces(text, text.length > 1000 ? 1000 : 1)).toThrow(MalformedResponse);
  }
});
