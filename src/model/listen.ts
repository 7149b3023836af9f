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

function listenFailure(error: unknown, host: string, port: number): unknown {
  const code = systemErrorCode(error);
  if (code === null) return error;
  return new InferscopeError(
    'E_USAGE',
    {
      what: `cannot listen on ${host}:${port}`,
      why: code === 'EADDRINUSE' ? 'Another program has that port.' : `The system says ${code}.`,
      fix: 'Take another one with --port (0 takes any that is free), or leave --host out for 127.0.0.1.',
    },
    { cause: error },
  );
}
