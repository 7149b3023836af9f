import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
import { open } from './opened.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-first-screen-'));
const clientScript = readFileSync(childEntry('report-client'), 'utf8');
const viewport = { width: 1280, height: 800 };
let browser: Browser;
let sessions: Session[];

/** An eager decode step on an H200 that takes 26x the roofline limit, and the same step in a CUDA graph. */
const recorded = ['launch_bound_decode-fault', 'launch_bound_decode-fixed'];

beforeAll(async () => {
  const home = homeFolders({ INFERSCOPE_HOME: join(folder, 'home') });
  sessions = [];
  for (const name of recorded) {
    const { id } = await importSession(`test/fixtures/diagnosis/${name}.tgz`, home);
    sessions.push(await openSession(id, home));
  }
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Bottom edges of the elements at a selector, in CSS pixels. */
async function bottoms(html: string, selectors: readonly string[]): Promise<number[][]> {
  const path = join(folder, 'page.html');
  writeFileSync(path, html);
  const { page } = await open(browser, path, { viewport });
  const found: number[][] = [];
  for (const selector of selectors) {
    const boxes = await Promise.all(
      (await page.locator(selector).all()).map((locator) => locator.boundingBox()),
    );
    found.push(boxes.map((box) => (box === null ? Infinity : box.y + box.height)));
  }
  await page.close();
  return found;
}

it('a report shows the headline, the whole waterfall, and the first finding with its gain', async () => {
  const { analyzed, explain } = await analyzeAndExplain(sessions[0]!);
  const html = pageOfView(await viewOf(analyzed), { clientScript, explain });
  const [headline, charts, gains] = await bottoms(html, [
    '#summary .headline',
    '[data-chart=waterfall]',
    '.findings > li:first-child .brief .expected',
  ]);
  for (const [first] of [headline!, charts!, gains!]) expect(first).toBeLessThanOrEqual(viewport.height);
});

it('a comparison shows both waterfalls and their difference', async () => {
  const html = pageOfView(compareView(await compareSessions(sessions)), { clientScript });
  const [charts] = await bottoms(html, ['[data-chart=waterfall]']);
  expect(charts!.slice(0, 3).filter((bottom) => bottom <= viewport.height)).toHaveLength(3);
});
