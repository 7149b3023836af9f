import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { UiPages } from './ui-pages.js';
import { timelineReady as ready } from './ui-server.js';

const ui = new UiPages();

describe('inferscope ui in Chromium', () => {
  it('lists sessions, filters them, and opens one', async () => {
    const page = await ui.open('/');
    expect(await page.locator('tbody tr').count()).toBe(2);
    await page.fill('#filter', 'fixed');
    expect(await page.locator('tbody tr:visible').count()).toBe(1);
    await page.click('tbody tr:visible a');
    await page.waitForSelector('html[data-charts=drawn]', { state: 'attached' });
    expect(await page.locator('nav.pages strong').first().textContent()).toBe('launch_bound_decode-fixed');
    await page.close();
  });

  it('links a finding to its gap', async () => {
    const page = await ui.open(`/s/${ui.idOf('launch_bound_decode-fault')}`);
    await page.click('#findings .place a[href*="/timeline?"]');
    await ready(page);
    const mark = new URL(page.url()).searchParams.get('mark')!.split(',').map(Number);
    const [gap] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT start_ns, start_ns + dur_ns FROM gaps WHERE launch_latency_ns > 0 AND start_ns = ${mark[0]}`,
    );
    expect(gap).toEqual(mark);
    await page.waitForSelector('#details table');
    expect(await page.locator('#details').textContent()).toContain('launch latency');
    await page.close();
  });

  it('links a bar to its place', async () => {
    const page = await ui.open(`/s/${ui.idOf('launch_bound_decode-fault')}`);
    await page.waitForSelector('html[data-charts=drawn]', { state: 'attached' });
    const bar = page.locator('#waterfall .chart svg path[fill="#c2480a"]').first();
    await bar.click();
    await ready(page);
    await page.waitForSelector('#details table');
    expect(await page.locator('#details').textContent()).toContain('launch call');
    await page.close();
  });

  it('finds a kernel, shows its details, and follows it to its launch', async () => {
    const page = await ui.open(ui.timelineOf('launch_bound_decode-fault'));
    await ready(page);
    await page.keyboard.press('/');
    await page.keyboard.type('elementwise');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#found')).toMatch(/^[1-9]\d* found$/);
    expect(await page.textContent('#details h2')).toContain('elementwise');
    await expect.poll(() => page.url()).toContain('event=');
    const before = page.url();
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toMatch(/launch/i);
    // The address includes the event, so that the page opens there again.
    await expect.poll(() => page.url()).not.toBe(before);
    const again = await ui.open(page.url().slice(ui.base.length));
    await expect.poll(() => again.textContent('#details h2')).toMatch(/launch/i);
    await again.close();
    await page.close();
  });

  it('wrote no errors to the console, and Ctrl-C stops it at once', async () => {
    expect(ui.complaints).toEqual([]);
    const ended = once(ui.server.child, 'exit') as Promise<[number | null]>;
    ui.server.child.kill('SIGINT');
    expect((await ended)[0]).toBe(0);
  });
});
