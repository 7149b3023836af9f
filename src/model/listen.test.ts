import { expect, test } from 'vitest';
import { listen } from './listen.js';

const ok = () => new Response('ok');

test('a port that is taken and a foreign address are different errors', async () => {
  const server = await listen(ok, { host: '127.0.0.1', port: 0 });
  const { port } = server.address() as { port: number };
  try {
    await expect(listen(ok, { host: '127.0.0.1', port })).rejects.toMatchObject({
      parts: { why: 'Another program uses this port.', fix: expect.stringContaining('--port 0') },
    });
    await expect(listen(ok, { host: '192.0.2.1', port: 0 })).rejects.toMatchObject({
      parts: {
        why: 'It is not an address of this machine.',
        fix: expect.not.stringContaining('--port'),
      },
    });
  } finally {
    server.close();
  }
});
