import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { monotonicNs } from '../model/clock.js';
import { type ResponseHeaders, responseReader } from './http-response.js';
import { formatSetting } from '../vocabulary/format.js';

/**
 * The sender of the request on a connection. Times are CLOCK_MONOTONIC, ns, taken when bytes are read from the kernel.
 */
export interface Receiver {
  /** Called just before the request's bytes are written to the connected socket. */
  onSend(atNs: number): void;
  onHead(status: number, headers: ResponseHeaders, atNs: number): void;
  /** Valid only during the call. */
  onBody(bytes: Buffer, from: number, to: number, atNs: number): void;
  onEnd(atNs: number): void;
  /**
   * Nothing follows.
   * @param error of the socket or of reading the answer; null if the server closed in the middle
   */
  onFailure(error: Error | null, atNs: number): void;
}

export interface Origin {
  tls: boolean;
  host: string;
  port: number;
}

export interface Connection {
  /** Sends now, or when connected. One request at a time. */
  send(request: string, receiver: Receiver): void;
  /** Closes it; waiting callers are not notified. */
  destroy(): void;
}

/** For a host that does not answer a SYN: the same time as undici and most other clients. */
const connectMs = 10_000;

/**
 * All sockets of a thread read into this one buffer: their callbacks run in sequence and copy what they need. A buffer
 * per read would make streams of small chunks expensive.
 */
const shared = Buffer.allocUnsafeSlow(65_536);

/**
 * Opens a connection to `origin`.
 * @param onIdle called when an answer is complete and the connection is free for the next request
 * @param onGone called once when the connection can no longer be used
 */
export function openConnection(
  { tls, host, port }: Origin,
  onIdle: (connection: Connection) => void,
  onGone: (connection: Connection) => void,
): Connection {
  let receiver: Receiver | null = null;
  let waiting: string | null = null;
  let connected = false;
  let isClosed = false;
  let atNs = 0;

  const reader = responseReader({
    onHead: (status, headers) => receiver?.onHead(status, headers, atNs),
    onBody: (bytes, from, to) => receiver?.onBody(bytes, from, to, atNs),
    onEnd(reusable) {
      const ended = receiver;
      receiver = null;
      ended?.onEnd(atNs);
      if (!reusable) close();
      else if (!isClosed) onIdle(connection);
    },
  });

  function fail(error: Error | null): void {
    const failed = receiver;
    receiver = null;
    close();
    failed?.onFailure(error, atNs);
  }
  function close(): void {
    if (isClosed) return;
    isClosed = true;
    clearTimeout(connectTimeout);
    socket.destroy();
    onGone(connection);
  }
  function read(length: number): boolean {
    atNs = monotonicNs();
    if (isClosed) return false;
    // Unsolicited bytes: the connection is out of step with the server.
    if (receiver === null) close();
    else
      try {
        reader.feed(shared, 0, length);
      } catch (error) {
        fail(error as Error);
      }
    return !isClosed;
  }
  function write(): void {
    if (waiting === null || !connected) return;
    const request = waiting;
    waiting = null;
    receiver!.onSend(monotonicNs());
    socket.write(request);
  }

  const onread = { buffer: shared, callback: read };
  const options = { host, port, onread };
  const socket: Socket = tls
    ? connectTls({ ...options, ALPNProtocols: ['http/1.1'], ...(isIP(host) ? {} : { servername: host }) })
    : connectTcp({ ...options, noDelay: true });
  if (tls) socket.setNoDelay(true);
  const connectTimeout = setTimeout(() => {
    atNs = monotonicNs();
    fail(
      Object.assign(new Error(`no connection within ${formatSetting(connectMs / 1000, 's')}`), {
        code: 'ETIMEDOUT',
      }),
    );
  }, connectMs);
  socket.on(tls ? 'secureConnect' : 'connect', () => {
    clearTimeout(connectTimeout);
    connected = true;
    write();
  });
  socket.on('error', (error) => {
    atNs = monotonicNs();
    fail(error);
  });
  const onClosed = () => {
    if (isClosed) return;
    atNs = monotonicNs();
    if (receiver === null || !reader.close()) fail(null);
  };
  socket.on('end', onClosed);
  socket.on('close', onClosed);

  const connection: Connection = {
    send(request, to) {
      receiver = to;
      waiting = request;
      write();
    },
    destroy() {
      receiver = null;
      close();
    },
  };
  return connection;
}
