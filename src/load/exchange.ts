import type { Dispatcher } from 'undici';
import { monotonicNs } from './clock.js';
import { failureKind } from './failure-kind.js';
import type { PlannedRequest } from './load-shape.js';
import { errorText, eventReader, type StreamEvent, type StreamUsage } from './sse.js';
import { requestBody, requestHeaders, requestPath, type LoadTarget } from './target.js';

/** What was seen of one request. Times are CLOCK_MONOTONIC, ns. */
export interface Exchange {
  index: number;
  warmup: boolean;
  /** Open loop: when the plan wanted it sent. Closed loop: when its user was free. */
  scheduled_ns: number;
  /** When this client turned to it: scheduled_ns + the client's own lag + the wait for a slot. */
  dispatched_ns: number;
  /** When its bytes were given to a connected socket. */
  sent_ns: number | null;
  first_byte_ns: number | null;
  /** Arrival of each chunk with generated text. */
  chunk_ns: number[];
  /** Tokens generated up to and with each chunk, where the server tells with every one; else null. */
  chunk_totals: number[] | null;
  closed_ns: number;
  text: string;
  usage: StreamUsage | null;
  finish_reason: string | null;
  /** ok, or the kind of failure: http_429, connect, tls, timeout, stream_cut, malformed, … */
  status: string;
  error: string | null;
  requested_input_tokens: number | null;
  requested_output_tokens: number;
}

/** Chunks stamped and not yet parsed. Parsing waits until every socket that is ready was read, so that no stamp does. */
const stamped: { take(bytes: Buffer, atNs: number): void; bytes: Buffer; atNs: number }[] = [];
let parsing = false;

function parseLater(take: (bytes: Buffer, atNs: number) => void, bytes: Buffer, atNs: number): void {
  stamped.push({ take, bytes, atNs });
  if (parsing) return;
  parsing = true;
  // The check phase follows the poll phase, in which all waiting sockets are read and stamped.
  setImmediate(parseStamped);
}

function parseStamped(): void {
  parsing = false;
  const waiting = stamped.splice(0);
  for (const { take, bytes, atNs } of waiting) take(bytes, atNs);
}

export interface ExchangeHandle {
  result: Promise<Exchange>;
  /** Ends it with this status; what arrived is kept. */
  abort(status: 'timeout' | 'cancelled'): void;
  dispatched_ns: number;
}

/** Sends one request and reads its stream. Never rejects: a failure is a status. */
export function exchange(
  dispatcher: Dispatcher,
  target: LoadTarget,
  request: PlannedRequest,
  scheduledNs: number,
): ExchangeHandle {
  const dispatchedNs = monotonicNs();
  const seen: Exchange = {
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
  let settled = false;
  let done = false;
  let aborted: 'timeout' | 'cancelled' | null = null;
  let controller: Dispatcher.DispatchController | null = null;
  let resolve: (seen: Exchange) => void;
  const result = new Promise<Exchange>((settle) => {
    resolve = settle;
  });

  function fail(status: string, error: string | null): void {
    if (seen.status === 'ok') [seen.status, seen.error] = [status, error];
  }
  function settle(): void {
    if (settled) return;
    settled = true;
    resolve(seen);
  }

  let atNs = 0;
  function take(event: StreamEvent): void {
    if (event.error) fail(event.error.kind, event.error.text);
    if (event.done) done = true;
    if (event.text !== '') {
      seen.chunk_ns.push(atNs);
      seen.text += event.text;
      const total = event.usage?.output_tokens;
      if (typeof total === 'number') (seen.chunk_totals ??= []).push(total);
    }
    if (event.usage)
      seen.usage = {
        ...event.usage,
        cached_tokens: event.usage.cached_tokens ?? seen.usage?.cached_tokens ?? null,
      };
    if (event.finishReason !== null) seen.finish_reason = event.finishReason;
  }

  const reader = eventReader(take);
  let status = 0;
  let streamed = false;
  const body: Buffer[] = [];
  const feed = (bytes: Buffer, at: number) => {
    atNs = at;
    reader.feed(bytes);
  };

  function finish(): void {
    if (status !== 200) {
      fail(`http_${status}`, bodyText(body));
    } else if (!streamed) {
      fail('not_streamed', `The server answered without streaming: ${bodyText(body)}`);
    } else if (!done && seen.finish_reason === null) {
      fail('stream_cut', 'The stream ended without [DONE] and without a finish_reason.');
    } else if (seen.chunk_ns.length === 0) {
      fail('empty', 'The stream was complete and held no generated text.');
    }
    settle();
  }

  try {
    dispatcher.dispatch(
      {
        origin: new URL(target.baseUrl).origin,
        path: requestPath(target),
        method: 'POST',
        headers: requestHeaders(target),
        body: requestBody(target, request.prompt, request.output_tokens),
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      {
        onRequestStart(control) {
          controller = control;
          seen.sent_ns = monotonicNs();
          if (aborted) control.abort(new Error(aborted));
        },
        onResponseStart(_, statusCode, headers) {
          seen.first_byte_ns = monotonicNs();
          status = statusCode;
          streamed = statusCode === 200 && String(headers['content-type']).includes('text/event-stream');
        },
        onResponseData(_, chunk) {
          const at = monotonicNs();
          if (streamed) parseLater(feed, chunk, at);
          else body.push(chunk);
        },
        onResponseEnd() {
          seen.closed_ns = monotonicNs();
          // After the chunks that were stamped before it.
          setImmediate(finish);
        },
        onResponseError(_, error) {
          seen.closed_ns = monotonicNs();
          setImmediate(() => {
            if (aborted) fail(aborted, aborted === 'timeout' ? 'It had not ended by its time limit.' : null);
            else fail(failureKind(error, seen.first_byte_ns !== null), error.message || error.name);
            settle();
          });
        },
      },
    );
  } catch (error) {
    fail('connect', String(error));
    settle();
  }

  return {
    result,
    dispatched_ns: dispatchedNs,
    abort(reason) {
      aborted = reason;
      if (controller) controller.abort(new Error(reason));
      else {
        // Still waiting for a connection: it is counted now, and ends when it would be sent.
        seen.closed_ns = monotonicNs();
        fail(reason, reason === 'timeout' ? 'No connection was free or made by its time limit.' : null);
        settle();
      }
    },
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
