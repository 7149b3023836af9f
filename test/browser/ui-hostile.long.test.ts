import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hostileText } from '../../src/views/test-profile.js';
import { writeChangedKineto } from '../cli/capture-files.js';
import { inferscope } from '../cli/run-cli.js';
import { waitForTimeline } from './ui-server.js';
import { UiPages, importArchive } from './ui-pages.js';

/** Hostile text after a character that reverses the direction of the following text. */
const hostile = `\u202e${hostileText}`;
const reordering = /[\u2028-\u202e\u2066-\u2069]/u;

const ui = new UiPages(
  (setup) => {
    const capture = writeChangedKineto(setup.scratch, 'hostile.json', ({ traceEvents }) => {
      for (const event of traceEvents)
        if (['kernel', 'cpu_op', 'cuda_runtime'].includes(event.cat ?? ''))
          event.name = `${event.name} ${hostile}`;
    });
    expect(inferscope(setup, ['import', '--quiet', capture, '--name', 'hostile']).status).toBe(0);
    importArchive(setup, 'diagnosis/cpu_bound_host-fault.tgz');
    expect(inferscope(setup, ['session', 'note', 'hostile', hostile]).status).toBe(0);
  },
  // A foreign host name that resolves to this machine (DNS rebinding).
  ['--host-resolver-rules=MAP evil.example 127.0.0.1'],
);

/** Expects that no part of a name became an element, ran as a script, or changes the reading order. */
async function expectInert(page: Page): Promise<void> {
  expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.locator('body').innerText()).not.toMatch(reordering);
}

describe('hostile names', () => {
  it('stay text in the list, the overview, the timeline, its panel, search and selection', async () => {
    const sessionPages = ['', '/kernels', '/operators', '/gemms', '/requests', '/memory', '/sql'];
    for (const path of ['/', ...sessionPages.map((page) => ui.pathOf('hostile', page))]) {
      const page = await ui.open(path);
      // An empty page would pass these checks.
      expect(await page.locator('h1').count(), path).toBe(1);
      await expectInert(page);
      await page.close();
    }
    const [[name]] = ui.sql('hostile', 'SELECT name FROM kernels LIMIT 1') as [[string]];
    const kernel = await ui.open(`${ui.pathOf('hostile', '/kernels')}?name=${encodeURIComponent(name)}`);
    expect(await kernel.textContent('#chosen')).toContain('<img src=x onerror');
    await expectInert(kernel);
    await kernel.close();
    const page = await ui.open(ui.pathOf('hostile', '/timeline'));
    await waitForTimeline(page);
    await page.keyboard.press('/');
    await page.keyboard.type('<img src=x onerror');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#found')).toMatch(/^[1-9][\d\s]* found$/);
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
    expect(ui.complaints).toEqual([]);
  });

  it('stay text in an exported file with a timeline', async () => {
    const file = join(ui.setup.scratch, 'hostile.html');
    expect(inferscope(ui.setup, ['ui', 'hostile', '--export', file]).status).toBe(0);
    const page = await ui.context.newPage();
    await page.goto(pathToFileURL(file).href);
    await waitForTimeline(page);
    await page.fill('#search', '<img src=x onerror');
    await page.press('#search', 'Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#details h2')).toContain('<img src=x onerror');
    await expectInert(page);
    await page.close();
    expect(ui.complaints).toEqual([]);
  });

  it('stay text in the result of an SQL statement', async () => {
    const query = 'SELECT DISTINCT name FROM kernels LIMIT 5';
    const page = await ui.open(`${ui.pathOf('hostile', '/sql')}?q=${encodeURIComponent(query)}`);
    await page.waitForSelector('#answer td');
    expect(await page.textContent('#answer')).toContain('<img src=x onerror');
    await expectInert(page);
    await page.close();
    expect(ui.complaints).toEqual([]);
  });
});

describe('requests that are rejected', () => {
  it('of a browser without the token, with a wrong one, or under another host name', async () => {
    const stranger = await ui.browser.newContext();
    const page = await stranger.newPage();
    const token = new URL(ui.server.url).search;
    const rebound = ui.server.origin.replace('127.0.0.1', 'evil.example');
    for (const [url, status] of [
      [`${ui.server.origin}/`, 401],
      [`${ui.server.origin}/?token=wrong`, 401],
      [`${ui.server.origin}${ui.pathOf('hostile', '/timeline')}`, 401],
      [`${rebound}/`, 403],
      [`${rebound}/${token}`, 403],
    ] as const) {
      expect((await page.goto(url))!.status(), url).toBe(status);
      expect(await page.locator('body').innerText(), url).not.toContain('hostile');
    }
    await stranger.close();
  });

  it("of another site's page in a browser that has the token", async () => {
    const otherServer: Server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html><title>other</title>'),
    );
    await new Promise<void>((listening) => otherServer.listen(0, '127.0.0.1', listening));
    const page = await ui.context.newPage();
    await page.goto(`http://127.0.0.1:${(otherServer.address() as AddressInfo).port}/`);
    const statuses: number[] = [];
    // Playwright hides responses that the browser blocks.
    const network = await ui.context.newCDPSession(page);
    await network.send('Network.enable');
    network.on('Network.responseReceivedExtraInfo', ({ statusCode }) => statuses.push(statusCode));
    // Cookies ignore the port, so the browser sends this one, and the server must reject the request.
    const outcome = await page.evaluate<{ fetched: string; script: string }>(`(async () => {
      const origin = ${JSON.stringify(ui.server.origin)};
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
    expect(outcome).toEqual({ fetched: 'refused', script: 'refused' });
    // The browser hides both responses from the page, and the server rejects the request that names another origin. The browser may have
    // the script already, and then asks whether it changed.
    expect(statuses).toEqual([403, expect.toBeOneOf([200, 304])]);
    await page.close();
    otherServer.close();
    ui.complaints.length = 0;
  });
});

describe('open pages', () => {
  it('eight tabs opened at once each show the whole timeline', async () => {
    const path = ui.pathOf('cpu_bound_host-fault', '/timeline');
    const pages = await Promise.all(Array.from({ length: 8 }, () => ui.open(path)));
    await Promise.all(pages.map((page) => waitForTimeline(page)));
    const legends = await Promise.all(pages.map((page) => page.locator('#legend').innerText()));
    expect(new Set(legends).size).toBe(1);
    // Also entries that are loaded after the page.
    for (const part of ['GEMM', 'launch latency', 'synchronization']) expect(legends[0]).toContain(part);
    await Promise.all(pages.map((page) => page.close()));
    expect(ui.complaints).toEqual([]);
  });

  it('the SQL page reports the error of each invalid statement, and runs the next one', async () => {
    const page = await ui.open(ui.pathOf('cpu_bound_host-fault', '/sql'));
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
      String(ui.sql('cpu_bound_host-fault', 'SELECT count(*) FROM kernels')[0]![0]),
    );
    await page.close();
    // Only the browser's messages about rejected requests.
    expect(ui.complaints.splice(0).every((complaint) => complaint.includes('400'))).toBe(true);
  });

  it('an open timeline reports that its session was deleted and stays drawn', async () => {
    const id = ui.idOf('cpu_bound_host-fault');
    const page = await ui.open(`/s/${id}/timeline`);
    await waitForTimeline(page);
    expect(inferscope(ui.setup, ['session', 'delete', id, '--yes']).status).toBe(0);
    for (let i = 0; i < 3; i++) await page.keyboard.press('w');
    await expect.poll(() => page.textContent('#status')).toContain(id);
    expect(await page.locator('#legend').innerText()).not.toBe('');
    await page.goto(`${ui.server.origin}/`);
    expect(await page.locator('tbody').innerText()).not.toContain(id);
    await page.close();
    expect(ui.complaints.splice(0).every((complaint) => complaint.includes('404'))).toBe(true);
  });
});
