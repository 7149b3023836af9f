import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { hostileText } from '../../src/views/test-profile.js';
import { changedKineto } from '../cli/capture-files.js';
import { inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { idOf, sqlRows, startUi, timelineReady, type UiServer, visit } from './ui-server.js';

/** Starts with a mark that reverses the direction of the text after it. */
const hostile = `\u202e${hostileText}`;
const reordering = /[\u2028-\u202e\u2066-\u2069]/u;

let setup: Place;
let server: UiServer;
let browser: Browser;
let context: BrowserContext;
let complaints: string[] = [];

beforeAll(async () => {
  setup = place();
  const capture = changedKineto(setup.scratch, 'hostile.json', ({ traceEvents }) => {
    for (const event of traceEvents)
      if (['kernel', 'cpu_op', 'cuda_runtime'].includes(event.cat ?? ''))
        event.name = `${event.name} ${hostile}`;
  });
  expect(inferscope(setup, ['import', '--quiet', capture, '--name', 'hostile']).status).toBe(0);
  const fixture = join(packageRoot(), 'test', 'fixtures', 'diagnosis', 'cpu_bound_host-fault.tgz');
  expect(inferscope(setup, ['session', 'import', fixture]).status).toBe(0);
  expect(inferscope(setup, ['session', 'note', 'hostile', hostile]).status).toBe(0);
  server = await startUi(setup);
  // A foreign host name that resolves to this machine (DNS rebinding).
  browser = await launchBrowser(['--host-resolver-rules=MAP evil.example 127.0.0.1']);
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  context.on('weberror', (error) => complaints.push(error.error().message));
  const page = await context.newPage();
  await page.goto(server.url);
  await page.close();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  server?.child.kill('SIGKILL');
});

async function open(path: string): Promise<Page> {
  const page = await context.newPage();
  await visit(page, `${server.origin}${path}`);
  return page;
}

/** No part of a name became an element, ran as a script, or changes the reading order. */
async function expectInert(page: Page): Promise<void> {
  expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.locator('body').innerText()).not.toMatch(reordering);
}

describe('hostile names', () => {
  it('stay text in the list, the overview, the timeline, its panel, search and selection', async () => {
    const id = idOf(setup, 'hostile');
    const sessionPages = ['', '/kernels', '/operators', '/gemms', '/requests', '/memory', '/sql'];
    for (const path of ['/', ...sessionPages.map((pagePath) => `/s/${id}${pagePath}`)]) {
      const page = await open(path);
      // An empty page would pass these checks, too.
      expect(await page.locator('h1').count(), path).toBe(1);
      await expectInert(page);
      await page.close();
    }
    const [[name]] = sqlRows(setup, 'hostile', 'SELECT name FROM kernels LIMIT 1') as [[string]];
    const kernel = await open(`/s/${idOf(setup, 'hostile')}/kernels?name=${encodeURIComponent(name)}`);
    expect(await kernel.textContent('#chosen')).toContain('<img src=x onerror');
    await expectInert(kernel);
    await kernel.close();
    const page = await open(`/s/${idOf(setup, 'hostile')}/timeline`);
    await timelineReady(page);
    await page.keyboard.press('/');
    await page.keyboard.type('<img src=x onerror');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#found')).toMatch(/^[1-9]\d* found$/);
    expect(await page.textContent('#details h2')).toContain('<img src=x onerror');
    await expectInert(page);
    const box = (await page.locator('#timeline canvas').boundingBox())!;
    await page.keyboard.press('Escape');
    await page.keyboard.down('Shift');
    await page.mouse.move(box.x + 200, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 1200, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await page.waitForSelector('#details table');
    // Calls are shown with their full names, kernels with their labels.
    expect(await page.textContent('#details')).toContain('<img src=x onerror');
    await expectInert(page);
    await page.close();
    expect(complaints).toEqual([]);
  });

  it('stay text in an exported file with a timeline', async () => {
    const file = join(setup.scratch, 'hostile.html');
    expect(inferscope(setup, ['ui', 'hostile', '--export', file]).status).toBe(0);
    const page = await context.newPage();
    await page.goto(pathToFileURL(file).href);
    await timelineReady(page);
    await page.fill('#search', '<img src=x onerror');
    await page.press('#search', 'Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#details h2')).toContain('<img src=x onerror');
    await expectInert(page);
    await page.close();
    expect(complaints).toEqual([]);
  });

  it('stay text in the result of an SQL statement', async () => {
    const query = 'SELECT DISTINCT name FROM kernels LIMIT 5';
    const page = await open(`/s/${idOf(setup, 'hostile')}/sql?q=${encodeURIComponent(query)}`);
    await page.waitForSelector('#answer td');
    expect(await page.textContent('#answer')).toContain('<img src=x onerror');
    await expectInert(page);
    await page.close();
    expect(complaints).toEqual([]);
  });
});

describe('requests that are rejected', () => {
  it('a browser without the token, with a wrong one, or under another host name', async () => {
    const stranger = await browser.newContext();
    const page = await stranger.newPage();
    const token = new URL(server.url).search;
    const rebound = server.origin.replace('127.0.0.1', 'evil.example');
    for (const [url, status] of [
      [`${server.origin}/`, 401],
      [`${server.origin}/?token=wrong`, 401],
      [`${server.origin}/s/${idOf(setup, 'hostile')}/timeline`, 401],
      [`${rebound}/`, 403],
      [`${rebound}/${token}`, 403],
    ] as const) {
      expect((await page.goto(url))!.status(), url).toBe(status);
      expect(await page.locator('body').innerText(), url).not.toContain('hostile');
    }
    await stranger.close();
  });

  it("another site's page in a browser that has the token", async () => {
    const otherServer: Server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html><title>other</title>'),
    );
    await new Promise<void>((listening) => otherServer.listen(0, '127.0.0.1', listening));
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(otherServer.address() as AddressInfo).port}/`);
    const statuses: number[] = [];
    // Playwright hides responses that the browser blocks.
    const network = await context.newCDPSession(page);
    await network.send('Network.enable');
    network.on('Network.responseReceivedExtraInfo', ({ statusCode }) => statuses.push(statusCode));
    // Cookies ignore the port, so the browser sends this one, and the server must reject the request.
    const answered = await page.evaluate<{ fetched: string; script: string }>(`(async () => {
      const origin = ${JSON.stringify(server.origin)};
      const fetched = await fetch(origin + '/sessions', { credentials: 'include' }).then(
        ({ status }) => String(status),
        () => 'refused',
      );
      const script = document.createElement('script');
      script.src = origin + '/assets/ui-sql.js';
      const loaded = new Promise((resolve) => {
        script.addEventListener('load', () => resolve('loaded'));
        script.addEventListener('error', () => resolve('refused'));
      });
      document.head.append(script);
      return { fetched, script: await loaded };
    })()`);
    expect(answered).toEqual({ fetched: 'refused', script: 'refused' });
    // The browser keeps both responses from the page; the server also refuses the request that names its origin.
    expect(statuses).toEqual([403, 200]);
    await page.close();
    otherServer.close();
    complaints = [];
  });
});

describe('robustness of open pages', () => {
  it('eight tabs at once each show the whole timeline', async () => {
    const path = `/s/${idOf(setup, 'cpu_bound_host-fault')}/timeline`;
    const pages = await Promise.all(Array.from({ length: 8 }, () => open(path)));
    await Promise.all(pages.map((page) => timelineReady(page)));
    const legends = await Promise.all(pages.map((page) => page.locator('#legend').innerText()));
    expect(new Set(legends).size).toBe(1);
    // Also what is read late.
    for (const part of ['GEMM', 'launch latency', 'synchronization']) expect(legends[0]).toContain(part);
    await Promise.all(pages.map((page) => page.close()));
    expect(complaints).toEqual([]);
  });

  it('report the error of each invalid statement, and answer the next one', async () => {
    const page = await open(`/s/${idOf(setup, 'cpu_bound_host-fault')}/sql`);
    await page.waitForSelector('#answer td');
    for (const statement of [
      'SELEC 1',
      'DELETE FROM kernels',
      'SELECT 1; SELECT 2',
      "SELECT * FROM read_text('/etc/hostname')",
      "COPY kernels TO 'kernels.csv'",
      '',
    ]) {
      await page.fill('#editor .cm-content', statement);
      await page.keyboard.press('Control+Enter');
      await page.waitForSelector('#answer [role=alert]');
      expect((await page.textContent('#answer'))!.length, statement).toBeGreaterThan(10);
      expect(await page.isDisabled('#csv'), statement).toBe(true);
    }
    await page.fill('#editor .cm-content', 'SELECT count(*) AS n FROM kernels');
    await page.keyboard.press('Control+Enter');
    await page.waitForSelector('#answer td');
    expect(await page.textContent('#answer td')).toBe(
      String(sqlRows(setup, 'cpu_bound_host-fault', 'SELECT count(*) FROM kernels')[0]![0]),
    );
    await page.close();
    // Except the browser's own messages about rejected requests.
    expect(complaints.splice(0).every((complaint) => complaint.includes('400'))).toBe(true);
  });

  it('an open timeline reports that its session was deleted and stays drawn', async () => {
    const id = idOf(setup, 'cpu_bound_host-fault');
    const page = await open(`/s/${id}/timeline`);
    await timelineReady(page);
    expect(inferscope(setup, ['session', 'delete', id, '--yes']).status).toBe(0);
    for (let i = 0; i < 3; i++) await page.keyboard.press('w');
    await expect.poll(() => page.textContent('#status')).toContain(id);
    expect(await page.locator('#legend').innerText()).not.toBe('');
    await page.goto(`${server.origin}/`);
    expect(await page.locator('tbody').innerText()).not.toContain(id);
    await page.close();
    expect(complaints.splice(0).every((complaint) => complaint.includes('404'))).toBe(true);
  });
});
