import type { ArrivalQueue } from './arrival-queue.js';
import { monotonicNs } from '../model/clock.js';
import type { Connections } from './connections.js';
import { failureKind } from './failure-kind.js';
import type { PlannedRequest } from './load-shape.js';
import { errorText, eventReader, type StreamEvent, type StreamUsage } from './sse.js';
import { formatBytes } from '../vocabulary/format.js';

/** Recorded times and content of one request. Times are CLOCK_MONOTONIC, ns. */
export interface Exchange {
  index: number;
  warmup: boolean;
  /** Open loop: due time of the plan. Closed loop: when its user was free. */
  scheduled_ns: number;
  /** When this client handled it: scheduled_ns + the client's own lag + the wait for a slot. */
  dispatched_ns: number;
  /** When its bytes were written to a connected socket. */
  sent_ns: number | null;
  first_byte_ns: number | null;
  /** Arrival of each chunk with generated text: when the read of its last byte returned, before parsing. */
  chunk_ns: number[];
  /** Tokens generated up to and including each chunk, if the server reports usage with every chunk; else null. */
  chunk_totals: number[] | null;
  closed_ns: number;
  text: string;
  usage: StreamUsage | null;
  finish_reason: string | null;
  /** ok, or the kind of failure: http_429, connect, tls, timeout, stream_cut, malformed, too_large, … */
  status: string;
  error: string | null;
  requested_input_tokens: number | null;
  requested_output_tokens: number;
}

/** Resources that a thread sends requests with. */
export interface Sender {
  connections: Connections;
  /** Queue of chunks until all ready sockets were read. */
  arrivals: ArrivalQueue;
  /** Encodes a request to bytes. */
  encode(request: PlannedRequest): string;
  /** Only a tokenizer needs the text; otherwise it is dropped, to reduce garbage collection. */
  keepText: boolean;
}

export interface ExchangeHandle {
  result: Promise<Exchange>;
  /** Ends it with this status, keeping what arrived. */
  abort(status: 'timeout' | 'cancelled'): void;
  dispatched_ns: number;
}

/** Sends one request and reads its stream. Never rejects: a failure is a status. */
export function exchange(
  { connections, arrivals, encode, keepText }: Sender,
  request: PlannedRequest,
  scheduledNs: number,
): ExchangeHandle {
  const dispatchedNs = monotonicNs();
  const record = newExchange(request, scheduledNs, dispatchedNs);
  let done = false;
  let ended = false;
  let resolve: (outcome: Exchange) => void;
  const result = new Promise<Exchange>((settle) => {
    resolve = settle;
  });

  function fail(status: string, error: string | null): void {
    if (record.status === 'ok') [record.status, record.error] = [status, error];
  }
  /**
   * Ends it after the chunks that were stamped before.
   * @param judge sets the status
   */
  function close(atNs: number, judge: () => void): void {
    if (ended) return;
    ended = true;
    record.closed_ns = atNs;
    arrivals.after(() => {
      record.chunk_ns = stamps.list();
      judge();
      resolve(record);
    });
  }

  const stamps = stampList(request.output_tokens);
  let atNs = 0;
  const reader = eventReader((event) => {
    done ||= event.done;
    if (event.text !== '') {
      stamps.push(atNs);
      if (keepText) record.text += event.text;
    }
    applyEvent(record, event);
    if (event.error) fail(event.error.kind, event.error.text);
    if (event.error?.kind === 'too_large') giveUp(atNs);
  });
  const parse = (bytes: Buffer, from: number, to: number, timeNs: number) => {
    atNs = timeNs;
    reader.feed(bytes, from, to);
  };

  let status = 0;
  let streamed = false;
  const body: Buffer[] = [];
  function judgeAnswer(): void {
    if (status !== 200) {
      fail(`http_${status}`, bodyText(body));
    } else if (!streamed) {
      fail('not_streamed', `The server answered without streaming: ${bodyText(body)}`);
    } else if (!done && record.finish_reason === null) {
      fail('stream_cut', 'The stream ended without [DONE] and without a finish_reason.');
    } else if (record.chunk_ns.length === 0) {
      fail('empty', 'The stream was complete and held no generated text.');
    }
  }

  const maxBytes = maxAnswerBytes(request.output_tokens);
  let received = 0;
  function giveUp(timeNs: number): void {
    drop();
    close(timeNs, () => undefined);
  }

  const drop = connections.send(encode(request), {
    onSend: (timeNs) => {
      record.sent_ns = timeNs;
    },
    onHead(code, headers, timeNs) {
      record.first_byte_ns = timeNs;
      status = code;
      streamed = code === 200 && (headers.get('content-type') ?? '').includes('text/event-stream');
    },
    onBody(bytes, from, to, timeNs) {
      received += to - from;
      if (received > maxBytes) {
        fail('too_large', `The answer is longer than ${formatBytes(maxBytes)}.`);
        giveUp(timeNs);
      } else if (streamed) arrivals.put(parse, bytes, from, to, timeNs);
      else if (body.length < maxBodyPieces) body.push(Buffer.from(bytes.subarray(from, to)));
    },
    onEnd: (timeNs) => close(timeNs, judgeAnswer),
    onFailure: (error, timeNs) =>
      close(timeNs, () => {
        const answered = record.first_byte_ns !== null;
        fail(failureKind(error, answered, record.sent_ns !== null), failureText(error));
      }),
  });

  return {
    result,
    dispatched_ns: dispatchedNs,
    abort(reason) {
      drop();
      const text =
        record.sent_ns === null
          ? 'No connection was made by its time limit.'
          : 'It had not finished by its time limit.';
      close(monotonicNs(), () => fail(reason, reason === 'timeout' ? text : null));
    },
  };
}

/** OpenSSL's message is a line of its source; the reason is in a separate field. */
/** Words for a socket's error. */
export function failureText(error: (NodeJS.ErrnoException & { reason?: string }) | null): string {
  if (error === null) return 'The server closed the connection.';
  if (error.reason !== undefined && error.code !== undefined) return `${error.reason} (${error.code})`;
  return error.message || error.code || error.name;
}

/** A token's event has some hundred bytes, with many logprobs some thousand. */
function maxAnswerBytes(outputTokens: number): number {
  return 8 * 2 ** 20 + outputTokens * 16_384;
}

/** Error pages are kept only in part. */
const maxBodyPieces = 16;

function newExchange(request: PlannedRequest, scheduledNs: number, dispatchedNs: number): Exchange {
  return {
    index: request.index,
    warmup: request.warmup,
    scheduled_ns: scheduledNs,
    dispatched_ns: dispatchedNs,
    sent_ns: null,
    first_byte_ns: null,
    chunk_ns: [],
    chunk_totals: null,
    closed_ns: dispatchedNs,
    text: '',
    usage: null,
    finish_reason: null,
    status: 'ok',
    error: null,
    requested_input_tokens: request.input_tokens,
    requested_output_tokens: request.output_tokens,
  };
}

function applyEvent(record: Exchange, { text, usage, finishReason }: StreamEvent): void {
  if (usage) {
    const total = usage.output_tokens;
    if (text !== '' && total !== null) (record.chunk_totals ??= []).push(total);
    const cached = usage.cached_tokens ?? record.usage?.cached_tokens ?? null;
    record.usage = { ...usage, cached_tokens: cached };
  }
  if (finishReason !== null) record.finish_reason = finishReason;
}

/** A typed array, so that garbage collection need not copy the numbers, which would delay stamps. */
function stampList(expected: number) {
  let stamps = new Float64Array(Math.min(expected, 4096) + 16);
  let count = 0;
  return {
    push(atNs: number): void {
      if (count === stamps.length) {
        const longer = new Float64Array(2 * count);
        longer.set(stamps);
        stamps = longer;
      }
      stamps[count++] = atNs;
    },
    list: () => Array.from(stamps.subarray(0, count)),
  };
}

function bodyText(body: Buffer[]): string {
  const text = Buffer.concat(body).toString('utf8').slice(0, 2000);
  try {
    return errorText(JSON.parse(text)).slice(0, 500);
  } catch {
    return text.slice(0, 500);
  }
}
