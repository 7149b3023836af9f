import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { UiPages } from './ui-pages.js';
import { waitForTimeline } from './ui-server.js';
import { waitForCharts } from './report-page.js';

const ui = new UiPages();

describe('inferscope ui in Chromium', () => {
  it('lists sessions, filters them, and opens one', async () => {
    const page = await ui.open('/');
    expect(await page.locator('tbody tr').count()).toBe(2);
    await page.fill('#filter', 'fixed');
    expect(await page.locator('tbody tr:visible').count()).toBe(1);
    await page.click('tbody tr:visible a');
    await waitForCharts(page);
    expect(await page.locator('nav.pages strong').first().textContent()).toBe('launch_bound_decode-fixed');
    await page.close();
  });

  it('links a finding to its gap', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault'));
    await page.click('#findings .place a[href*="/timeline?"]');
    await waitForTimeline(page);
    const mark = new URL(page.url()).searchParams.get('mark')!.split(',').map(Number);
    // The longest gap of the cause with the most time, in a decode step that is not a warm-up.
    const longest = ui.sql(
      'launch_bound_decode-fault',
      `SELECT g.start_ns, g.start_ns + g.dur_ns FROM gaps g JOIN stages s USING (execution_id, capture_id, stage_id)
       JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id
       WHERE p.kind = 'decode' AND NOT coalesce(p.warmup, false) ORDER BY g.launch_overhead_ns DESC LIMIT 1`,
    );
    expect(longest).toEqual([mark]);
    await page.waitForSelector('#details table');
    expect(await page.locator('#details').textContent()).toContain('launch call');
    // The timeline is zoomed so that the gap is visible.
    const [start, end] = ['start', 'end'].map((name) => Number(new URL(page.url()).searchParams.get(name)));
    expect((mark[1]! - mark[0]!) / (end! - start!)).toBeGreaterThan(0.01);
    await page.close();
  });

  it('links a bar of the waterfall to the longest gap behind it', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault'));
    await waitForCharts(page);
    const bar = page.locator('#waterfall .chart svg path[fill="#c2480a"]').first();
    await bar.click();
    await waitForTimeline(page);
    await page.waitForSelector('#details table');
    expect(await page.locator('#details').textContent()).toContain('launch call');
    expect(new URL(page.url()).searchParams.get('mark')).not.toBe(null);
    // All gaps of this cause are highlighted, until Escape.
    const pressed = page.locator('#legend button[aria-pressed=true]');
    expect(await pressed.allInnerTexts()).toEqual(['launch call']);
    expect(await pressed.locator('xpath=..').locator('b').innerText()).toBe('idle');
    await page.keyboard.press('Escape');
    expect(await pressed.count()).toBe(0);
    await expect.poll(() => new URL(page.url()).searchParams.get('class')).toBe(null);
    await page.click('#legend button:has-text("GEMM")');
    await expect.poll(() => new URL(page.url()).searchParams.get('class')).toBe('kernels:gemm');
    await page.close();
  });

  it('finds a kernel, shows its details, and follows it to its launch', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault', '/timeline'));
    await waitForTimeline(page);
    await page.keyboard.press('/');
    await page.keyboard.type('elementwise');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#details dl');
    expect(await page.textContent('#found')).toMatch(/^[1-9][\d\s]* found$/);
    expect(await page.textContent('#details h2')).toContain('elementwise');
    await expect.poll(() => page.url()).toContain('event=');
    const correlation = () => page.innerText('#details dt:text-is("correlation") + dd');
    const before = page.url();
    const launchedBy = await correlation();
    expect(launchedBy).toMatch(/^\d+$/);
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toMatch(/launch/i);
    expect(await correlation()).toBe(launchedBy);
    // From the launch back to its kernel.
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toContain('elementwise');
    expect(await correlation()).toBe(launchedBy);
    await page.click('#details button');
    await expect.poll(() => page.textContent('#details h2')).toMatch(/launch/i);
    // The address includes the event, so that the page opens there again.
    await expect.poll(() => page.url()).not.toBe(before);
    const again = await ui.open(page.url().slice(ui.server.origin.length));
    await expect.poll(() => again.textContent('#details h2')).toMatch(/launch/i);
    await again.close();
    await page.close();
  });

  it('wrote no errors to the console, and Ctrl-C stops the server at once', async () => {
    expect(ui.complaints).toEqual([]);
    const exit = once(ui.server.child, 'exit') as Promise<[number | null]>;
    ui.server.child.kill('SIGINT');
    expect((await exit)[0]).toBe(0);
  });
});
