import type { Server } from 'node:http';
import type { ServerType } from '@hono/node-server';
import { InferscopeError, systemErrorCode } from './errors.js';

/**
 * Listens for HTTP requests.
 * @param port 0 chooses a free one
 * @throws E_USAGE when the port is taken or the address is not this machine's
 */
export async function listen(
  answer: (request: Request) => Response | Promise<Response>,
  { host, port }: { host: string; port: number },
): Promise<Server> {
  const { serve } = await import('@hono/node-server');
  const server = await new Promise<ServerType>((resolve, reject) => {
    const started = serve({ fetch: answer, hostname: host, port }, () => resolve(started));
    started.once('error', (error) => reject(listenFailure(error, host, port)));
  });
  return server as Server;
}

const otherPort = 'Choose another port with --port; --port 0 takes a free one';

const listenProblems: Readonly<Record<string, { why: string; fix: string }>> = {
  EADDRINUSE: { why: 'Another program uses this port.', fix: `${otherPort}.` },
  EADDRNOTAVAIL: {
    why: 'It is not an address of this machine.',
    fix: 'Leave out --host for 127.0.0.1, or use --host 0.0.0.0 for all addresses of this machine.',
  },
  EACCES: { why: 'Ports below 1024 need root.', fix: `${otherPort}.` },
  ENOTFOUND: {
    why: 'This host name has no address.',
    fix: 'Leave out --host for 127.0.0.1, or give an address of this machine.',
  },
};

function listenFailure(error: unknown, host: string, port: number): unknown {
  const code = systemErrorCode(error);
  if (code === null) return error;
  return new InferscopeError(
    'E_USAGE',
    {
      what: `cannot listen on ${host}:${port}`,
      ...(listenProblems[code] ?? {
        why: `The system reports ${code}.`,
        fix: `${otherPort}, or leave out --host for 127.0.0.1.`,
      }),
    },
    { cause: error },
  );
}
