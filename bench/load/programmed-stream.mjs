// Streams of the programmed server. Fields of a request in addition to OpenAI's:
//   first_ms   delay of the first token after the request was read       gap_ms     between tokens
//   per_chunk  tokens in a chunk       request_id  written to the log    fault      one of those below
//   prefix_cache  true: blocks of 16 words seen before are served from a cache, the first token comes up to 5 times
//                 sooner, usage reports them (unless report_cached is false), and /metrics counts them
//   fault_every   3: every third request has the fault
//   reasoning  chat: number of tokens sent as reasoning_content before the content
//   tool_call  chat: true: the tokens are the arguments of a tool call
import process from 'node:process';
import { countCachedWords } from './prefix-blocks.mjs';
import { wheel } from './wheel.mjs';

export const counters = {
  connections: 0,
  requests: 0,
  running: 0,
  served: 0,
  tokens: 0,
  cacheQueries: 0,
  cacheHits: 0,
};

/** For clients that cannot add fields to a body: POST /defaults sets these. */
export const defaults = { first_ms: 10, gap_ms: 2 };

const nowNs = () => Number(process.hrtime.bigint());
const { later } = wheel(nowNs);

const frame = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const event = (data) => frame(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';

/** Answers without a stream, by fault. */
const faultsWithoutStream = {
  unauthorized: (socket, sendResponse) => sendResponse(socket, 401, { error: { message: 'no API key' } }),
  not_found: (socket, sendResponse) => sendResponse(socket, 404, { error: { message: 'no such model' } }),
  busy: (socket, sendResponse) => sendResponse(socket, 429, { error: { message: 'slow down' } }),
  broken: (socket, sendResponse) => sendResponse(socket, 500, { error: { message: 'worker died' } }),
  unstreamed: (socket, sendResponse) => sendResponse(socket, 200, { choices: [{ text: 'all at once' }] }),
  hang: () => {},
  reset: (socket) => socket.destroy(),
  endless: (socket) => flood(socket, event({ choices: [{ index: 0, text: 'x' }] }).repeat(200)),
  endless_event: (socket) => flood(socket, frame('A'.repeat(50_000)), frame('data: {"choices":[{"text":"')),
  no_http: (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'),
};

/** Writes the text until the client disconnects. */
function flood(socket, piece, first = '') {
  socket.write(streamHead + first);
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
    if (!socket.destroyed) socket.once('drain', more);
  };
  more();
}

/** The data of one faulty event, by fault; the rest of the stream is complete. */
const oddEvents = {
  null_event: 'null',
  huge_usage: { choices: [], usage: { prompt_tokens: 5, completion_tokens: 1e15 } },
  negative_usage: { choices: [], usage: { prompt_tokens: -5, completion_tokens: 8 } },
  deep_error: `${'{"error":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
};

function chunk(chat, delta, text, reason) {
  const choice = chat
    ? { index: 0, delta, finish_reason: reason }
    : { index: 0, text, finish_reason: reason };
  return event({
    id: 'cmpl-1',
    object: chat ? 'chat.completion.chunk' : 'text_completion',
    created: 1,
    model: 'programmed',
    choices: [choice],
  });
}

const tokenBytes = new Map();

/** The bytes of a chunk of `count` tokens, encoded once. */
function tokenChunk(kind, count) {
  const key = `${kind} ${count}`;
  let bytes = tokenBytes.get(key);
  if (!bytes) {
    const text = ' tok'.repeat(count);
    const delta = {
      content: { content: text },
      reasoning: { reasoning_content: text },
      tool: { tool_calls: [{ index: 0, function: { arguments: text } }] },
      text: null,
    }[kind];
    bytes = Buffer.from(chunk(kind !== 'text', delta, text, null));
    tokenBytes.set(key, bytes);
  }
  return bytes;
}

function promptOf({ prompt, messages }) {
  if (prompt !== undefined) return prompt;
  const { content } = messages.at(-1);
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
}

/** Answers one request. @returns its entry in the log; null if it was rejected */
export function answer(socket, request, chat, readNs, sendResponse) {
  const { first_ms, gap_ms, per_chunk = 1, fault_every = 1 } = { ...defaults, ...request };
  counters.requests++;
  const fault = counters.requests % fault_every === 0 ? (request.fault ?? null) : null;
  const max_tokens = request.max_tokens ?? request.max_completion_tokens ?? 16;
  if (faultsWithoutStream[fault]) {
    faultsWithoutStream[fault](socket, sendResponse);
    return null;
  }
  const prompt = promptOf(request);
  const promptTokens = prompt.split(' ').length;
  const cached = request.prefix_cache === true ? countCachedWords(prompt) : 0;
  if (request.prefix_cache === true) {
    counters.cacheQueries += promptTokens;
    counters.cacheHits += cached;
  }
  const tokenCount = fault === 'empty' ? 0 : fault === 'ignores_max' ? max_tokens * 3 : max_tokens;
  const entry = { id: request.request_id ?? null, prompt, read_ns: readNs, writes_ns: [], step };
  const { reasoning = 0, tool_call = false } = request;
  const kindOf = (sent) => (!chat ? 'text' : tool_call ? 'tool' : sent < reasoning ? 'reasoning' : 'content');
  const firstMs = first_ms * (1 - (0.8 * cached) / promptTokens);
  let sent = 0;
  counters.running++;
  socket.write(
    fault === 'close_after' ? streamHead.replace('\r\n', '\r\nconnection: close\r\n') : streamHead,
  );
  if (chat) socket.write(event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }));

  function end() {
    counters.running--;
    counters.served++;
    let last = chunk(chat, {}, '', fault === 'empty' ? 'stop' : 'length');
    if (request.stream_options?.include_usage && fault !== 'no_usage') {
      const usage = {
        prompt_tokens: promptTokens,
        completion_tokens: sent,
        total_tokens: promptTokens + sent,
      };
      if (request.prefix_cache && request.report_cached !== false)
        usage.prompt_tokens_details = { cached_tokens: cached };
      last += event({ choices: [], usage });
    }
    socket.write(`${last}${event('[DONE]')}0\r\n\r\n`);
    if (fault === 'close_after') socket.end();
  }

  function step() {
    if (socket.destroyed || (fault === 'cut' && sent >= tokenCount / 2)) {
      counters.running--;
      socket.destroy();
      return;
    }
    // The connection stays open, but nothing more is sent.
    if (fault === 'stall' && sent >= tokenCount / 2) return;
    if (fault === 'malformed' && sent === 1) socket.write(event('{"choices": [{"te'));
    if (oddEvents[fault] && sent === 1) socket.write(event(oddEvents[fault]));
    if (fault === 'error_event' && sent === 1)
      socket.write(event({ error: { message: 'out of KV blocks', code: 500 } }));
    if (sent < tokenCount) {
      const bytes = tokenChunk(kindOf(sent), per_chunk);
      entry.writes_ns.push(nowNs());
      socket.write(bytes);
      sent += per_chunk;
      counters.tokens += per_chunk;
    }
    if (sent >= tokenCount) end();
    // Due times are absolute, so that a late token does not delay the following ones.
    else later(entry, readNs + (firstMs + (sent / per_chunk) * gap_ms) * 1e6);
  }
  later(entry, readNs + firstMs * 1e6);
  return entry;
}
