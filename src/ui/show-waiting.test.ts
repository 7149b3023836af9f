import { setTimeout as sleep } from 'node:timers/promises';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { showWaiting } from './show-waiting.js';

const navigation = { accept: 'text/html,*/*' };

/** Routes that take as long as their name says, and a count of their computations. */
function slowPages() {
  const app = new Hono();
  const computed: string[] = [];
  app.use(
    '/s/:id/*',
    showWaiting(app, (context, seconds) => Promise.resolve(context.text(`waiting for ${seconds} s`))),
  );
  app.get('/s/:ms', async (context) => {
    const ms = context.req.param('ms');
    computed.push(ms);
    await sleep(Number(ms));
    return context.text(`page ${ms}`, 200, { 'content-security-policy': 'its own' });
  });
  const get = async (path: string, headers: Record<string, string>) => {
    const response = await app.request(path, { headers });
    return [await response.text(), response.headers.get('content-security-policy')];
  };
  return { get, computed };
}

test('a slow page is announced, computed once, and sent to all who wait for it', async () => {
  const { get, computed } = slowPages();
  expect(await get('/s/2600', navigation)).toEqual(['waiting for 2 s', null]);
  expect(await Promise.all([get('/s/2600', navigation), get('/s/2600', navigation)])).toEqual([
    ['page 2600', 'its own'],
    ['page 2600', 'its own'],
  ]);
  expect(computed).toEqual(['2600']);
});

test('a fast page comes at once, and a script waits for a slow one', async () => {
  const { get, computed } = slowPages();
  expect((await get('/s/0', navigation))[0]).toBe('page 0');
  expect((await get('/s/2200', { accept: '*/*' }))[0]).toBe('page 2200');
  expect(computed).toEqual(['0', '2200']);
});
