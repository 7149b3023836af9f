import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { launchBrowser } from './chromium.js';
import { inferscope, createSetup, cli } from '../cli/run-cli.js';
import { readCharts } from './report-page.js';
import { idOf, startUi } from './ui-server.js';
import { testFolder } from '../../src/session/test-folder.js';
import { fixture } from '../cli/capture-files.js';

// npm run picture: screenshots for README and docs, from pages that the built binary writes about H200 sessions.

const launchBound = 'diagnosis/launch_bound_decode-fault.tgz';
/** Pages of `explain ARCHIVE --html` with options `args`, and their `sections` in the screenshot. */
const pictures = [
  { name: 'launch-bound', archive: launchBound, args: [], sections: ['waterfall', 'findings'] },
  {
    name: 'verified',
    archive: launchBound,
    args: ['--verify', fixture('diagnosis/launch_bound_decode-fixed.tgz')],
    sections: ['summary', 'verify'],
  },
  {
    name: 'vllm-step',
    archive: 'vllm-0.26-h200/run-in-process.tgz',
    args: ['--stage', 'decode'],
    sections: ['summary', 'waterfall'],
  },
  {
    name: 'vllm-load',
    archive: 'vllm-0.26-h200/bench-serve.tgz',
    args: [],
    sections: ['summary', 'waterfall'],
  },
] as const;

const scratch = testFolder();
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
});

/**
 * Script that keeps these sections, without folded parts and notes, and opens the first finding with its change and gain, so that it fits on one
 * screen with the waterfall.
 */
const prepareScript = (sections: readonly string[]) => `{
  const keep = ${JSON.stringify(sections)};
  for (const section of document.querySelectorAll('main > section, main > header, nav, footer'))
    if (!keep.includes(section.id)) section.remove();
  document.querySelector('#findings details')?.setAttribute('open', '');
  for (const name of document.querySelectorAll('#findings dt'))
    if (!['change', 'gain'].includes(name.textContent)) name.nextElementSibling.remove(), name.remove();
  const removed = '#summary li:nth-child(n+3), #waterfall > :not(h2, div), #findings li ~ li, #findings .scroll, ' +
    '#findings > :not(h2, ol), figure details, #findings details details, .notes';
  for (const element of document.querySelectorAll(removed)) element.remove();
}`;

test('timeline', async () => {
  const page = join(scratch, 'timeline.html');
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [cli, ...args], {
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
    for (const element of document.querySelectorAll('main > :not(#whole-timeline), nav')) element.remove();
    for (const name of [...document.querySelectorAll('#details dt')].slice(14)) name.nextElementSibling.remove(), name.remove();
  }`);
  const path = join(packageRoot(), 'docs', 'images', 'timeline.png');
  await tab.locator('#whole-timeline').screenshot({ path });
  await tab.close();
  expect(statSync(path).size).toBeLessThan(300_000);
});

test('the same step of two sessions', async () => {
  const setup = createSetup();
  for (const archive of [launchBound, 'diagnosis/launch_bound_decode-fixed.tgz'])
    expect(inferscope(setup, ['session', 'import', fixture(archive)]).status).toBe(0);
  const server = await startUi(setup);
  try {
    const tab = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await tab.goto(server.url);
    const ids = ['launch_bound_decode-fault', 'launch_bound_decode-fixed'].map((name) => idOf(setup, name));
    await tab.goto(`${server.origin}/compare?s=${ids.join('&s=')}&step=2`);
    await readCharts(tab);
    await tab.evaluate(
      "for (const element of document.querySelectorAll('#steps :is(details, .hint)')) element.remove()",
    );
    const path = join(packageRoot(), 'docs', 'images', 'same-step.png');
    await tab.locator('#steps').screenshot({ path });
    await tab.close();
    expect(statSync(path).size).toBeLessThan(300_000);
  } finally {
    server.child.kill('SIGKILL');
  }
});

test.each(pictures)('$name', async ({ name, archive, args, sections }) => {
  const page = join(scratch, `${name}.html`);
  execFileSync(process.execPath, [cli, 'explain', fixture(archive), '--html', page, ...args], {
    env: { ...process.env, INFERSCOPE_HOME: join(scratch, 'home') },
  });
  const tab = await browser.newPage({ viewport: { width: 860, height: 100 } });
  await tab.goto(`file://${page}`);
  await readCharts(tab);
  await tab.evaluate(prepareScript(sections));
  const path = join(packageRoot(), 'docs', 'images', `${name}.png`);
  await tab.screenshot({ path, fullPage: true });
  await tab.close();
  expect(statSync(path).size).toBeLessThan(300_000);
});
