import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { fixture } from './ui-pages.js';
import { idOf, startUi, timelineReady, type UiServer, visit } from './ui-server.js';

let setup: Place;
let server: UiServer;
let browser: Browser;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const sessions = {
  fault: 'diagnosis/launch_bound_decode-fault.tgz',
  fixed: 'diagnosis/launch_bound_decode-fixed.tgz',
  torch: 'kineto-torch2.11-h200/tiny-llm-b1-session.tgz',
  load: 'vllm-0.26-h200/bench-serve.tgz',
  watched: 'monitor-0.1-h200/session.tar.gz',
};

beforeAll(async () => {
  setup = place();
  for (const [name, path] of Object.entries(sessions)) {
    const { status, stdout } = inferscope(setup, ['session', 'import', fixture(path), '--json']);
    expect(status).toBe(0);
    const id = /"id": ?"([^"]+)"/.exec(stdout)![1]!;
    expect(inferscope(setup, ['session', 'rename', id, name]).status).toBe(0);
  }
  const job = fixture('nccl-2h100/rank*.json.gz');
  expect(inferscope(setup, ['import', job, '--ranks', '--name', 'job']).status).toBe(0);
  const counters = fixture('ncu-2025.3.1-h200/ncu-tiny.raw.csv');
  expect(inferscope(setup, ['import', counters, '--name', 'ncu']).status).toBe(0);
  server = await startUi(setup);
  browser = await launchBrowser();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  server?.child.kill('SIGKILL');
});

it.each(['light', 'dark'] as const)('axe-core finds nothing wrong on any page, %s', async (colorScheme) => {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme,
    // The axe script itself would be refused by the pages' content security policy.
    bypassCSP: true,
  });
  const page = await context.newPage();
  await page.goto(server.url);
  const id = Object.fromEntries(
    [...Object.keys(sessions), 'job', 'ncu'].map((name) => [name, idOf(setup, name)]),
  );
  const found: string[] = [];
  for (const path of [
    '/',
    `/s/${id['fault']}`,
    `/s/${id['fault']}?what-if=cudagraph`,
    `/s/${id['fault']}/timeline`,
    `/s/${id['fault']}/kernels`,
    `/s/${id['torch']}/operators`,
    `/s/${id['torch']}/operators?name=aten::mm`,
    `/s/${id['torch']}/gemms`,
    `/s/${id['load']}`,
    `/s/${id['load']}/requests`,
    `/s/${id['watched']}/memory`,
    `/s/${id['watched']}/gemms`,
    `/s/${id['job']}/ranks`,
    `/s/${id['ncu']}/kernels`,
    `/s/${id['torch']}/sql`,
    `/compare?s=${id['fault']}&s=${id['fixed']}`,
  ]) {
    await visit(page, `${server.origin}${path}`);
    if (path.includes('/timeline')) {
      await timelineReady(page);
      await page.keyboard.press('v');
      await page.waitForSelector('#selected tbody tr');
    }
    await page.waitForLoadState('networkidle');
    await page.evaluate(axe);
    const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      "axe.run(document, { resultTypes: ['violations'] })",
    );
    found.push(...violations.map((violation) => `${path} ${violation.id} ${violation.nodes[0]?.html}`));
  }
  expect(found).toEqual([]);
  await context.close();
});

it('Tab reaches every control on every page, each visible and marked, and leaves the page again', async () => {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    // Without reduced motion the page would still be moving while it is checked.
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(server.url);
  const fault = `/s/${idOf(setup, 'fault')}`;
  const torch = `/s/${idOf(setup, 'torch')}`;
  const compared = `/compare?s=${idOf(setup, 'fault')}&s=${idOf(setup, 'fixed')}`;
  const paths = [
    '/',
    fault,
    compared,
    `${fault}/timeline`,
    `${fault}/kernels`,
    `${torch}/operators`,
    `${torch}/gemms`,
  ];
  const more = [`/s/${idOf(setup, 'job')}/ranks`, `/s/${idOf(setup, 'load')}/requests`, `${torch}/sql`];
  for (const path of [...paths, ...more, `/s/${idOf(setup, 'watched')}/memory`]) {
    await visit(page, `${server.origin}${path}`);
    if (path.includes('/timeline')) await timelineReady(page);
    await page.waitForLoadState('networkidle');
    const reached = new Set<string>();
    // One more Tab than there are controls: if focus never leaves the page, it is trapped.
    const most = await page.locator('a, button, input, select, summary, [tabindex="0"], .cm-content').count();
    let hasLeft = false;
    for (let index = 0; index <= most && !hasLeft; index++) {
      await page.keyboard.press('Tab');
      const focus = await page.evaluate<{ name: string; seen: boolean } | null>(`(() => {
        const one = document.activeElement;
        if (one === document.body) return null;
        const { width, height, bottom, top } = one.getBoundingClientRect();
        const { outlineStyle } = getComputedStyle(one.closest('.cm-editor') ?? one);
        window.numbers ??= new Map();
        if (!numbers.has(one)) numbers.set(one, numbers.size);
        const seen = width > 0 && height > 0 && bottom > 0 && top < innerHeight && outlineStyle !== 'none';
        return { name: numbers.get(one) + ' ' + one.outerHTML.slice(0, 80), seen };
      })()`);
      if (focus === null || reached.has(focus.name)) hasLeft = true;
      else {
        expect(focus.seen, `${path} ${focus.name}`).toBe(true);
        reached.add(focus.name);
      }
    }
    expect(hasLeft, path).toBe(true);
    expect(reached.size, path).toBeGreaterThan(5);
  }
  await context.close();
});
