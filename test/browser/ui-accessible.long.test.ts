import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { inferscope } from '../cli/run-cli.js';
import { fixture } from '../cli/capture-files.js';
import { importArchive, UiPages } from './ui-pages.js';
import { waitForTimeline, visit } from './ui-server.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const sessions = {
  fault: 'diagnosis/launch_bound_decode-fault.tgz',
  fixed: 'diagnosis/launch_bound_decode-fixed.tgz',
  torch: 'kineto-torch2.11-h200/tiny-llm-b1-session.tgz',
  load: 'vllm-0.26-h200/bench-serve.tgz',
  watched: 'monitor-0.1-h200/session.tar.gz',
  longer: 'load-tests-cpu/prompts-96.tgz',
  joined: 'joined-2h100/session.inferscope.tar.gz',
  memory: 'memory-torch2.11-h200/llama-3.1-8b-two-gpus.tgz',
};

const ui = new UiPages((setup) => {
  for (const [name, path] of Object.entries(sessions)) importArchive(setup, path, name);
  const job = fixture('nccl-2h100/rank*.json.gz');
  expect(inferscope(setup, ['import', job, '--ranks', '--name', 'job']).status).toBe(0);
  const counters = fixture('ncu-2025.3.1-h200/ncu-tiny.raw.csv');
  expect(inferscope(setup, ['import', counters, '--name', 'ncu']).status).toBe(0);
  const results = fixture('benchmark-results-recorded/guidellm-errors.json');
  expect(inferscope(setup, ['import', results, '--name', 'results']).status).toBe(0);
  const operators = fixture('kineto-torch2.11-cpu/layer.json.gz');
  expect(inferscope(setup, ['import', operators, '--name', 'cpu']).status).toBe(0);
});

/** For a walk over all pages on a busy machine, ms. */
const pagesTimeout = 600_000;

/** Every kind of page, each kind of session, and pages with something selected. */
const allPaths = (): string[] => [
  '/',
  ui.pathOf('fault'),
  `${ui.pathOf('fault')}?what-if=cudagraph`,
  ui.pathOf('fault', '/timeline'),
  ui.pathOf('job', '/timeline'),
  ui.pathOf('fault', '/kernels'),
  ui.pathOf('torch', '/operators'),
  ui.pathOf('joined', '/operators'),
  `${ui.pathOf('torch', '/operators')}?name=aten::mm`,
  ui.pathOf('torch', '/gemms'),
  ...['load', 'job', 'ncu', 'watched', 'memory', 'results', 'cpu'].map((name) => ui.pathOf(name)),
  ui.pathOf('load', '/requests'),
  ui.pathOf('watched', '/memory'),
  ui.pathOf('watched', '/gemms'),
  ui.pathOf('job', '/ranks'),
  ui.pathOf('ncu', '/kernels'),
  ui.pathOf('torch', '/sql'),
  `/compare?s=${ui.idOf('fault')}&s=${ui.idOf('fixed')}`,
  `/compare?s=${ui.idOf('load')}&s=${ui.idOf('longer')}`,
  `/compare?s=${ui.idOf('fault')}&s=${ui.idOf('memory')}`,
  '/s/unknown',
];

it.each(['light', 'dark'] as const)(
  'axe-core finds no violation on any page, and nothing is empty, %s',
  async (colorScheme) => {
    const context = await ui.browser.newContext({
      viewport: { width: 1280, height: 800 },
      colorScheme,
      // The content security policy of the pages would block the axe script.
      bypassCSP: true,
    });
    const page = await context.newPage();
    await page.goto(ui.server.url);
    const violations: string[] = [];
    for (const path of allPaths()) {
      await visit(page, `${ui.server.origin}${path}`);
      if (path.includes('/timeline')) {
        await waitForTimeline(page);
        await page.keyboard.press('v');
        await page.waitForSelector('#selected tbody tr');
      }
      await page.waitForLoadState('networkidle');
      await page.evaluate(axe);
      const result = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
        "axe.run(document, { resultTypes: ['violations'] })",
      );
      violations.push(
        ...result.violations.map((violation) => `${path} ${violation.id} ${violation.nodes[0]?.html}`),
      );
      // A table without rows or a section without content says nothing.
      const empty = await page.evaluate<string[]>(`[...document.querySelectorAll('main table, main section')]
        .filter((box) => (box.matches('table') ? !box.querySelector('tbody tr') : box.children.length < 2))
        .map((box) => box.textContent.slice(0, 80))`);
      violations.push(...empty.map((text) => `${path} is empty: ${text}`));
    }
    expect(violations).toEqual([]);
    await context.close();
  },
  pagesTimeout,
);

it(
  'Tab moves through the controls of every page, each visible and outlined, and leaves the page again',
  async () => {
    const context = await ui.browser.newContext({
      viewport: { width: 1280, height: 800 },
      // Without reduced motion the page would still be moving while it is checked.
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    await page.goto(ui.server.url);
    for (const path of allPaths()) {
      await visit(page, `${ui.server.origin}${path}`);
      if (path.includes('/timeline')) await waitForTimeline(page);
      await page.waitForLoadState('networkidle');
      const reached = new Set<string>();
      // If the focus stays in the page after one Tab more than there are controls, it is trapped.
      const controls = await page
        .locator('a, button, input, select, summary, [tabindex="0"], .cm-content')
        .count();
      let hasLeft = false;
      for (let index = 0; index <= controls && !hasLeft; index++) {
        await page.keyboard.press('Tab');
        const focus = await page.evaluate<{ name: string; isVisible: boolean } | null>(`(() => {
        const element = document.activeElement;
        if (element === document.body) return null;
        const { width, height, bottom, top } = element.getBoundingClientRect();
        const { outlineStyle } = getComputedStyle(element.closest('.cm-editor') ?? element);
        window.numbers ??= new Map();
        if (!numbers.has(element)) numbers.set(element, numbers.size);
        const isVisible = width > 0 && height > 0 && bottom > 0 && top < innerHeight && outlineStyle !== 'none';
        return { name: numbers.get(element) + ' ' + element.outerHTML.slice(0, 80), isVisible };
      })()`);
        if (focus === null || reached.has(focus.name)) hasLeft = true;
        else {
          expect(focus.isVisible, `${path} ${focus.name}`).toBe(true);
          reached.add(focus.name);
        }
      }
      expect(hasLeft, path).toBe(true);
      expect(reached.size, path).toBeGreaterThanOrEqual(Math.min(6, controls));
    }
    await context.close();
  },
  pagesTimeout,
);

it('a timeline is printed in light colors, also by a browser in dark mode', async () => {
  const context = await ui.browser.newContext({ colorScheme: 'dark' });
  const page = await context.newPage();
  await page.goto(ui.server.url);
  await visit(page, `${ui.server.origin}${ui.pathOf('fault', '/timeline')}`);
  await waitForTimeline(page);
  const cornerRed = () =>
    page.evaluate<number>(
      "document.querySelector('#timeline canvas').getContext('2d').getImageData(2, 2, 1, 1).data[0]",
    );
  expect(await cornerRed()).toBeLessThan(60);
  await page.emulateMedia({ media: 'print' });
  await expect.poll(cornerRed).toBe(255);
  await page.emulateMedia({ media: 'screen' });
  await expect.poll(cornerRed).toBeLessThan(60);
  await context.close();
});
