// An OpenAI-like server whose every delay is programmed and whose every write is logged on CLOCK_MONOTONIC: the
// known truth that the load generator is measured against. A process of its own; HTTP by hand, so that a token costs
// one write and nothing else. Usage: node server.mjs [port]; prints {"port": …} when it listens.
//
// POST …/completions, body fields beside OpenAI's: first_ms (delay of the first token), gap_ms (between tokens),
// per_chunk (tokens in a chunk), fault (below), request_id. GET /log gives and clears the log; GET /metrics, /v1/models.
import { createServer } from 'node:net';
import process from 'node:process';

const nowNs = () => Number(process.hrtime.bigint());
let log = [];
let running = 0;
let served = 0;
let tokensSent = 0;
const seenPrompts = new Set();

const frame = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const event = (data) => frame(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';

function plain(socket, status, body, type = 'application/json') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  socket.write(
    `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

function respond(socket, head, body, readNs) {
  const [method, path] = head.split(' ', 2);
  if (method === 'GET' && path === '/log') {
    plain(socket, 200, log);
    log = [];
  } else if (method === 'GET' && path === '/metrics') {
    const lines = [
      `vllm:num_requests_running{model_name="programmed"} ${running}.0`,
      'vllm:num_requests_waiting{model_name="programmed"} 0.0',
      `vllm:generation_tokens_total{model_name="programmed"} ${tokensSent}.0`,
      `vllm:request_success_total{finished_reason="length"} ${served}.0`,
    ];
    plain(socket, 200, `${lines.join('\n')}\n`, 'text/plain; version=0.0.4');
  } else if (method === 'GET' && path.endsWith('/models')) {
    plain(socket, 200, { object: 'list', data: [{ id: 'programmed', object: 'model' }] });
  } else if (method === 'POST' && path.endsWith('/completions')) {
    stream(socket, JSON.parse(body), path.includes('/chat/'), readNs);
  } else plain(socket, 404, { error: { message: `no ${path} here` } });
}

const faults = {
  unauthorized: (socket) => plain(socket, 401, { error: { message: 'no API key' } }),
  busy: (socket) => plain(socket, 429, { error: { message: 'slow down' } }),
  broken: (socket) => plain(socket, 500, { error: { message: 'worker died' } }),
  unstreamed: (socket) => plain(socket, 200, { choices: [{ text: 'all at once' }] }),
  hang: () => {},
  reset: (socket) => socket.destroy(),
};

function stream(socket, request, chat, readNs) {
  const { first_ms = 10, gap_ms = 2, per_chunk = 1, fault = null, max_tokens = 16 } = request;
  if (faults[fault]) return faults[fault](socket);
  const prompt = request.prompt ?? request.messages.at(-1).content;
  const promptTokens = prompt.split(' ').length;
  // A repeated prompt is served from a cache: its first token comes in a fifth of the time.
  const cached = request.prefix_cache === true && seenPrompts.has(prompt);
  if (request.prefix_cache === true) seenPrompts.add(prompt);
  const wanted = fault === 'empty' ? 0 : fault === 'ignores_max' ? max_tokens * 3 : max_tokens;
  const entry = { id: request.request_id ?? null, prompt, read_ns: readNs, writes_ns: [] };
  log.push(entry);
  running++;
  socket.write(streamHead);
  if (chat) socket.write(event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }));
  const choice = (text, reason) =>
    event({
      id: 'cmpl-1',
      object: chat ? 'chat.completion.chunk' : 'text_completion',
      created: 1,
      model: 'programmed',
      choices: [
        chat
          ? { index: 0, delta: { content: text }, finish_reason: reason }
          : { index: 0, text, finish_reason: reason },
      ],
    });
  const token = Buffer.from(choice(' tok'.repeat(per_chunk), null));
  const firstMs = cached ? first_ms / 5 : first_ms;
  let sent = 0;

  function end() {
    running--;
    served++;
    socket.write(choice('', fault === 'empty' ? 'stop' : 'length'));
    if (request.stream_options?.include_usage && fault !== 'no_usage') {
      const usage = {
        prompt_tokens: promptTokens,
        completion_tokens: sent,
        total_tokens: promptTokens + sent,
      };
      if (request.prefix_cache) usage.prompt_tokens_details = { cached_tokens: cached ? promptTokens : 0 };
      socket.write(event({ choices: [], usage }));
    }
    socket.write(`${event('[DONE]')}0\r\n\r\n`);
  }

  function step() {
    if (socket.destroyed) {
      running--;
      return;
    }
    if (fault === 'cut' && sent >= wanted / 2) {
      running--;
      socket.destroy();
      return;
    }
    if (fault === 'malformed' && sent === 1) socket.write(event('{"choices": [{"te'));
    if (fault === 'error_event' && sent === 1)
      socket.write(event({ error: { message: 'out of KV blocks', code: 500 } }));
    if (sent < wanted) {
      entry.writes_ns.push(nowNs());
      socket.write(token);
      sent += per_chunk;
      tokensSent += per_chunk;
    }
    if (sent >= wanted) return end();
    // Absolute due times: a late token does not delay the ones after it.
    const due = readNs / 1e6 + firstMs + (sent / per_chunk) * gap_ms;
    setTimeout(step, Math.max(0, due - nowNs() / 1e6));
  }
  setTimeout(step, Math.max(0, firstMs - (nowNs() - readNs) / 1e6));
}

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  let pending = Buffer.alloc(0);
  socket.on('data', (bytes) => {
    const readNs = nowNs();
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    for (;;) {
      const end = pending.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (pending.length < end + 4 + length) return;
      const body = pending.toString('utf8', end + 4, end + 4 + length);
      pending = pending.subarray(end + 4 + length);
      respond(socket, head, body, readNs);
    }
  });
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
});
