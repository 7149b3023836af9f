import { beforeAll, describe, expect, test } from 'vitest';
import type { Hono } from 'hono';
import { uiApp } from './app.js';

let app: Hono;
const token = 'a token';
const origin = 'http://127.0.0.1:7000';

beforeAll(() => {
  app = uiApp({
    host: '127.0.0.1',
    token,
    report: (error) => {
      throw error;
    },
  });
});

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  Promise.resolve(app.request(`${origin}${path}`, { headers }));

async function cookie(): Promise<string> {
  const response = await get(`/?token=${encodeURIComponent(token)}`);
  return response.headers.get('set-cookie')!.split(';')[0]!;
}

describe('who may see a page', () => {
  test('nobody without the token, on no path', async () => {
    for (const path of [
      '/',
      '/s/x',
      '/s/x/api/sql?q=SELECT%201',
      '/assets/ui-sql.js',
      '/compare',
      '/nowhere',
    ])
      expect((await get(path)).status, path).toBe(401);
    expect((await get('/?token=wrong')).status).toBe(401);
    expect((await get('/', { cookie: 'inferscope-7000=wrong' })).status).toBe(401);
  });

  test('the token becomes a cookie that scripts cannot read, and leaves the address', async () => {
    const response = await get(`/s/x?token=${encodeURIComponent(token)}&what-if=a`);
    expect([response.status, response.headers.get('location')]).toEqual([303, '/s/x?what-if=a']);
    expect(response.headers.get('set-cookie')).toMatch(/^inferscope-7000=.*HttpOnly; SameSite=Strict/);
  });

  test('no other name of this machine, no other site, nothing is written', async () => {
    const known = { cookie: await cookie() };
    expect((await app.request('http://evil.example:7000/', { headers: known })).status).toBe(403);
    expect((await get('/', { ...known, origin: 'http://evil.example' })).status).toBe(403);
    expect(
      (
        await app.request(`${origin}/sessions`, {
          method: 'POST',
          headers: { ...known, 'content-type': 'application/json' },
        })
      ).status,
    ).toBe(404);
  });

  test('pages allow scripts of this server alone and no frames', async () => {
    const response = await get('/nowhere', { cookie: await cookie() });
    expect(response.status).toBe(404);
    const { headers } = await get('/compare', { cookie: await cookie() });
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('an unknown session is a page that says so, and not a path', async () => {
    const known = { cookie: await cookie() };
    const response = await get('/s/no-such-session', known);
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('no-such-session');
    expect((await get('/s/..%2F..%2Fetc%2Fpasswd', known)).status).toBe(404);
    expect((await get('/assets/..%2Fcli.js', known)).status).toBe(404);
  });
});
