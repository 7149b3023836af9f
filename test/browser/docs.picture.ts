import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { launchBrowser } from './chromium.js';
import { inferscope, place } from '../cli/profile-cli.js';
import { chartsDrawn } from './opened.js';
import { idOf, startUi } from './ui-server.js';

/**
 * Screenshots for README and docs, from pages that the built binary writes about H200 sessions: npm run picture. `shows`: the sections of
 * the page in the screenshot.
 */
const launchBound = 'diagnosis/launch_bound_decode-fault.tgz';
const pictures = [
  { name: 'launch-bound', archive: launchBound, words: [], shows: ['waterfall', 'findings'] },
  {
    name: 'verified',
    archive: launchBound,
    words: ['--verify', fixture('diagnosis/launch_bound_decode-fixed.tgz')],
    shows: ['summary', 'verify'],
  },
  {
    name: 'vllm-step',
    archive: 'vllm-0.26-h200/run-in-process.tgz',
    words: ['--stage', 'decode'],
    shows: ['summary', 'waterfall'],
  },
  {
    name: 'vllm-load',
    archive: 'vllm-0.26-h200/bench-serve.tgz',
    words: [],
    shows: ['summary', 'waterfall'],
  },
] as const;

function fixture(path: string): string {
  return join(packageRoot(), 'test', 'fixtures', path);
}

const scratch = mkdtempSync(join(tmpdir(), 'inferscope-picture-'));
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** The first finding is open, with its change and gain, and fits on one screen with the waterfall. Folded parts and notes are left out. */
const prepare = (shows: readonly string[]) => `{
  const keep = ${JSON.stringify(shows)};
  for (const section of document.querySelectorAll('main > section, main > header, nav, footer'))
    if (!keep.includes(section.id)) section.remove();
  document.querySelector('#findings details')?.setAttribute('open', '');
  for (const name of document.querySelectorAll('#findings dt'))
    if (!['change', 'gain'].includes(name.textContent)) name.nextElementSibling.remove(), name.remove();
  const rest = '#summary li:nth-child(n+3), #waterfall > :not(h2, div), #findings li ~ li, #findings .scroll, ' +
    '#findings > :not(h2, ol), figure details, #findings details details, .notes';
  for (const one of document.querySelectorAll(rest)) one.remove();
}`;

test('timeline', async () => {
  const page = join(scratch, 'timeline.html');
  const run = (...words: string[]) =>
    execFileSync(process.execPath, [join(packageRoot(), 'dist', 'cli.js'), ...words], {
      env: { ...process.env, INFERSCOPE_HOME: join(scratch, 'home-of-timeline') },
    });
  run('session', 'import', fixture(launchBound));
  run('ui', '@last', '--export', page);
  const tab = await browser.newPage({ viewport: { width: 1000, height: 1200 } });
  await tab.goto(`file://${page}`);
  await tab.waitForSelector('#timeline[data-ready]');
  await tab.selectOption('#step', { index: 1 });
  await tab.fill('#search', 'nvjet');
  await tab.press('#search', 'Enter');
  await tab.waitForSelector('#details dl');
  // Some calls and kernels around the kernel that the search found.
  for (let i = 0; i < 6; i++) await tab.click('#zoom-out');
  await tab.waitForTimeout(300);
  await tab.evaluate(`{
    for (const one of document.querySelectorAll('main > :not(#whole-timeline), nav')) one.remove();
    for (const one of [...document.querySelectorAll('#details dt')].slice(14)) one.nextElementSibling.remove(), one.remove();
  }`);
  const path = join(packageRoot(), 'docs', 'images', 'timeline.png');
  await tab.locator('#whole-timeline').screenshot({ path });
  await tab.close();
  expect(statSync(path).size).toBeLessThan(300_000);
});

test('the same step of two sessions', async () => {
  const setup = place();
  for (const archive of [launchBound, 'diagnosis/launch_bound_decode-fixed.tgz'])
    expect(inferscope(setup, ['session', 'import', fixture(archive)]).status).toBe(0);
  const server = await startUi(setup);
  try {
    const tab = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await tab.goto(server.url);
    const ids = ['launch_bound_decode-fault', 'launch_bound_decode-fixed'].map((name) => idOf(setup, name));
    await tab.goto(`${server.origin}/compare?s=${ids.join('&s=')}&step=2`);
    await chartsDrawn(tab);
    await tab.evaluate(
      "for (const one of document.querySelectorAll('#steps :is(details, .hint)')) one.remove()",
    );
    const path = join(packageRoot(), 'docs', 'images', 'same-step.png');
    await tab.locator('#steps').screenshot({ path });
    await tab.close();
    expect(statSync(path).size).toBeLessThan(300_000);
  } finally {
    server.child.kill('SIGKILL');
  }
});

test.each(pictures)('$name', async ({ name, archive, words, shows }) => {
  const page = join(scratch, `${name}.html`);
  execFileSync(
    process.execPath,
    [join(packageRoot(), 'dist', 'cli.js'), 'explain', fixture(archive), '--html', page, ...words],
    { env: { ...process.env, INFERSCOPE_HOME: join(scratch, 'home') } },
  );
  const tab = await browser.newPage({ viewport: { width: 860, height: 100 } });
  await tab.goto(`file://${page}`);
  await chartsDrawn(tab);
  await tab.evaluate(prepare(shows));
  const path = join(packageRoot(), 'docs', 'images', `${name}.png`);
  await tab.screenshot({ path, fullPage: true });
  await tab.close();
  expect(statSync(path).size).toBeLessThan(300_000);
});
