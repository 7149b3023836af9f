// An OpenAI-like server with programmed delays that logs each of its writes on CLOCK_MONOTONIC, as the reference for
// the load generator's measurements. It runs in a separate process and writes HTTP itself, so that a token costs only
// one write. Usage: node server.mjs [port]; prints {"port": …} when it listens. With TLS_KEY and TLS_CERT (PEM) it
// serves https.
//
// POST …/completions and …/chat/completions; GET /log returns and clears the log; GET /metrics, /v1/models, /health;
// POST /defaults.
// Fields of the body are in programmed-stream.mjs.
import { createServer } from 'node:net';
import process from 'node:process';
import { createServer as createTlsServer } from 'node:tls';
import { answer, counters, defaults } from './programmed-stream.mjs';

const nowNs = () => Number(process.hrtime.bigint());
let log = [];

function sendResponse(socket, status, body, type = 'application/json') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  socket.write(
    `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

function metricsPage() {
  const label = '{model_name="programmed"}';
  return `${[
    `programmed_connections_total ${counters.connections}`,
    `vllm:num_requests_running${label} ${counters.running}.0`,
    `vllm:num_requests_waiting${label} 0.0`,
    `vllm:generation_tokens_total${label} ${counters.tokens}.0`,
    `vllm:prefix_cache_queries_total${label} ${counters.cacheQueries}.0`,
    `vllm:prefix_cache_hits_total${label} ${counters.cacheHits}.0`,
    `vllm:request_success_total{finished_reason="length"} ${counters.served}.0`,
  ].join('\n')}\n`;
}

function respond(socket, head, body, readNs) {
  const [method, path] = head.split(' ', 2);
  if (method === 'GET' && path === '/log') {
    // The object of a stream has more fields than its log entry.
    sendResponse(
      socket,
      200,
      log.map(({ id, prompt, read_ns, writes_ns }) => ({ id, prompt, read_ns, writes_ns })),
    );
    log = [];
  } else if (method === 'GET' && path === '/metrics') {
    sendResponse(socket, 200, metricsPage(), 'text/plain; version=0.0.4');
  } else if (method === 'GET' && path === '/health') {
    sendResponse(socket, 200, 'ok', 'text/plain');
  } else if (method === 'GET' && path.endsWith('/models')) {
    sendResponse(socket, 200, { object: 'list', data: [{ id: 'programmed', object: 'model' }] });
  } else if (method === 'POST' && path === '/defaults') {
    sendResponse(socket, 200, Object.assign(defaults, JSON.parse(body)));
  } else if (method === 'POST' && path.endsWith('/completions')) {
    const entry = answer(socket, JSON.parse(body), path.includes('/chat/'), readNs, sendResponse);
    if (entry) log.push(entry);
  } else sendResponse(socket, 404, { error: { message: `no ${path} here` } });
}

function serve(socket) {
  counters.connections++;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  let pending = Buffer.alloc(0);
  socket.on('data', (bytes) => {
    const readNs = nowNs();
    // Answers a TLS handshake like most servers without TLS.
    if (bytes[0] === 0x16) {
      sendResponse(socket, 400, 'Bad Request');
      socket.end();
      return;
    }
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    for (;;) {
      const end = pending.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      if (/^x-fault: slow_read/im.test(head)) {
        // Reads the head but not the body.
        socket.pause();
        return;
      }
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (pending.length < end + 4 + length) return;
      const body = pending.toString('utf8', end + 4, end + 4 + length);
      pending = pending.subarray(end + 4 + length);
      respond(socket, head, body, readNs);
    }
  });
}

const { TLS_KEY: key, TLS_CERT: cert } = process.env;
const server = key ? createTlsServer({ key, cert }, serve) : createServer(serve);
server.on('tlsClientError', () => {});
server.listen({ port: Number(process.argv[2] ?? 0), host: '127.0.0.1', backlog: 4096 }, () => {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
});
