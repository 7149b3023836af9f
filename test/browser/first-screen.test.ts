import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { analyzeAndExplain } from '../../src/advice/explain/session-explanation.js';
import { compareSessions } from '../../src/compare/sessions/compare.js';
import { childEntry } from '../../src/model/installation.js';
import { pageOfView } from '../../src/render/html/view.js';
import { importSession } from '../../src/session/archive-import.js';
import { homeFolders } from '../../src/session/home.js';
import { openSession, type Session } from '../../src/session/open.js';
import { compareView } from '../../src/views/compare.js';
import { viewOf } from '../../src/views/registry.js';
import { launchBrowser } from './chromium.js';
import { openReport } from './report-page.js';
import { testFolder } from '../../src/session/test-folder.js';

const folder = testFolder();
const clientScript = readFileSync(childEntry('report-client'), 'utf8');
const viewport = { width: 1280, height: 800 };
let browser: Browser;
let sessions: Session[];

/** An eager decode step on an H200 that takes 26x the roofline limit, and the same step in a CUDA graph. */
const names = ['launch_bound_decode-fault', 'launch_bound_decode-fixed'];

beforeAll(async () => {
  const home = homeFolders({ INFERSCOPE_HOME: join(folder, 'home') });
  sessions = [];
  for (const name of names) {
    const { id } = await importSession(`test/fixtures/diagnosis/${name}.tgz`, home);
    sessions.push(await openSession(id, home));
  }
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

/** Bottom edges of the elements at a selector, in CSS pixels. */
async function readBottoms(html: string, selectors: readonly string[]): Promise<number[][]> {
  const path = join(folder, 'page.html');
  writeFileSync(path, html);
  const { page } = await openReport(browser, path, { viewport });
  const bottoms: number[][] = [];
  for (const selector of selectors) {
    const boxes = await Promise.all(
      (await page.locator(selector).all()).map((locator) => locator.boundingBox()),
    );
    bottoms.push(boxes.map((box) => (box === null ? Infinity : box.y + box.height)));
  }
  await page.close();
  return bottoms;
}

it('the first screen of a report has the headline, the whole waterfall, and the first finding with its gain', async () => {
  const { analyzed, explain } = await analyzeAndExplain(sessions[0]!);
  const html = pageOfView(await viewOf(analyzed), { clientScript, explain });
  const [headline, charts, gains] = await readBottoms(html, [
    '#summary .headline',
    '[data-chart=waterfall]',
    '.findings > li:first-child .brief .expected',
  ]);
  for (const [first] of [headline!, charts!, gains!]) expect(first).toBeLessThanOrEqual(viewport.height);
});

it('the first screen of a comparison has both waterfalls and their difference', async () => {
  const html = pageOfView(compareView(await compareSessions(sessions)), { clientScript });
  const [charts] = await readBottoms(html, ['[data-chart=waterfall]']);
  expect(charts!.slice(0, 3).filter((bottom) => bottom <= viewport.height)).toHaveLength(3);
});
