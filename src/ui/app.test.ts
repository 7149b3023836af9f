import { beforeAll, describe, expect, test } from 'vitest';
import type { Hono } from 'hono';
import { renameSession } from '../session/edit.js';
import { testHome } from '../session/test-folder.js';
import { saveSession } from '../session/test-session.js';
import { uiApp } from './app.js';
import { Homes } from './homes.js';

let app: Hono;
const token = 'a token';
const origin = 'http://127.0.0.1:7000';
const [mine, team] = [testHome(), testHome()];
const homes = new Homes([mine, team]);

beforeAll(() => {
  app = uiApp({
    first: null,
    homes,
    host: '127.0.0.1',
    token,
    log: (error) => {
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

describe('access to pages', () => {
  test('every request without the token is refused, on every path', async () => {
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

  test('the token moves from the URL into a cookie that scripts cannot read', async () => {
    const response = await get(`/s/x?token=${encodeURIComponent(token)}&what-if=a`);
    expect([response.status, response.headers.get('location')]).toEqual([303, '/s/x?what-if=a']);
    expect(response.headers.get('set-cookie')).toMatch(/^inferscope-7000=.*HttpOnly; SameSite=Strict/);
  });

  test('requests with another host name, from another site or with a writing method are refused', async () => {
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

  test('pages and scripts are compressed for a browser that accepts it', async () => {
    const headers = { cookie: await cookie(), 'accept-encoding': 'gzip' };
    for (const path of ['/', '/assets/ui-sql.js']) {
      const { status, headers: sent } = await get(path, headers);
      expect([status, sent.get('content-encoding')], path).toEqual([200, 'gzip']);
    }
  });

  test('pages allow only scripts of this server and no frames', async () => {
    const response = await get('/nowhere', { cookie: await cookie() });
    expect(response.status).toBe(404);
    const { headers } = await get('/compare', { cookie: await cookie() });
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('an unknown session id gives an error page and is never used as a path', async () => {
    const known = { cookie: await cookie() };
    const response = await get('/s/no-such-session', known);
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('no-such-session');
    expect((await get('/s/..%2F..%2Fetc%2Fpasswd', known)).status).toBe(404);
    expect((await get('/assets/..%2Fcli.js', known)).status).toBe(404);
  });
});

describe('a server over several homes', () => {
  test('lists the sessions of all homes; two sessions with one id in two homes stay two', async () => {
    const createdAt = new Date('2026-11-20T22:15:03Z');
    const session = await saveSession(mine, { createdAt });
    const theirs = await saveSession(team, { createdAt });
    const newest = await saveSession(team, { label: 'qwen', createdAt: new Date('2026-11-21T00:00:00Z') });
    expect(theirs.id).toBe(session.id);
    await renameSession(session, 'our-run', mine);
    await renameSession(theirs, 'their-run', team);

    const known = { cookie: await cookie() };
    const list = await (await get('/sessions', known)).text();
    for (const text of [mine.root, team.root, `href="/s/${session.id}"`, `href="/s/${session.id}~2"`])
      expect(list).toContain(text);
    const titleAt = async (key: string) =>
      /<nav class="pages".*?<strong[^>]*>([^<]*)/s.exec(await (await get(`/s/${key}/sql`, known)).text())![1];
    expect([await titleAt(session.id), await titleAt(`${session.id}~2`)]).toEqual(['our-run', 'their-run']);
    // Links on the page stay in the same home.
    const page = await (await get(`/s/${session.id}~2/operators`, known)).text();
    expect(page).toContain(`href="/s/${session.id}~2/timeline`);
    expect(page).not.toContain(`href="/s/${session.id}/`);
    expect((await get(`/s/${newest.id}`, known)).status).toBe(404);
    expect((await get(`/s/${session.id}~3`, known)).status).toBe(404);
  });

  test('finds the session to open first across all homes', () => {
    expect(homes.select('their-run')).toMatch(/~2$/);
    expect(homes.select('our-run')).not.toContain('~');
    expect(homes.select('@last')).toMatch(/qwen~2$/);
    expect(() => homes.select('nobody has it')).toThrow('no session "nobody has it"');
  });
});
