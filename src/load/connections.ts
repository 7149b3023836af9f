import { monotonicNs } from '../model/clock.js';
import { type Connection, type Origin, openConnection, type Receiver } from './connection.js';

/** Connections to one server: one per concurrent request, because a waiting pool would look like a slow server. */
export interface Connections {
  /**
   * Sends over an idle connection or a new one.
   * @returns a function that closes the connection in the middle of the exchange
   */
  send(request: string, receiver: Receiver): () => void;
  /** Closes all of them. */
  close(): void;
}

/** Servers close connections that are idle for 5 s (uvicorn, vLLM's) or longer, so older ones are not reused. */
const idleNs = 4e9;

export function originOf(baseUrl: string): Origin {
  const { protocol, hostname, port } = new URL(baseUrl);
  const tls = protocol === 'https:';
  return {
    tls,
    // An IPv6 address has brackets only in a URL.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? (tls ? 443 : 80) : Number(port),
  };
}

export function openConnections(origin: Origin): Connections {
  const open = new Set<Connection>();
  /** The most recently used one is reused first, so that the others can expire. */
  const idle: { connection: Connection; sinceNs: number }[] = [];

  function take(): Connection {
    const last = idle.pop();
    if (last !== undefined && monotonicNs() - last.sinceNs < idleNs) return last.connection;
    for (const { connection } of [...idle, ...(last ? [last] : [])]) connection.destroy();
    const connection = openConnection(
      origin,
      (free) => idle.push({ connection: free, sinceNs: monotonicNs() }),
      (closed) => {
        open.delete(closed);
        const index = idle.findIndex((entry) => entry.connection === closed);
        if (index >= 0) idle.splice(index, 1);
      },
    );
    open.add(connection);
    return connection;
  }

  return {
    send(request, receiver) {
      const connection = take();
      connection.send(request, receiver);
      return () => connection.destroy();
    },
    close() {
      for (const connection of open) connection.destroy();
    },
  };
}
