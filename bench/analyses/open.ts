import { statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { launchBrowser } from '../../test/browser/chromium.js';

// Time until a report has drawn its charts in Chromium, compared with an empty page of the same size: node open.js REPORT.html. Exits with
// 1 if the median misses the goal.

const goalS = 2;
const rounds = 5;
const report = resolve(process.argv[2] ?? '');
const bytes = statSync(report).size;
const blank = join(dirname(report), 'blank.html');
writeFileSync(blank, `<!doctype html><html data-charts="drawn"><!--${'x'.repeat(bytes)}--></html>`);

const browser = await launchBrowser();
const times = { report: [] as number[], blank: [] as number[] };
try {
  // The first round warms the browser.
  for (let round = 0; round <= rounds; round++) {
    for (const [name, path] of [
      ['blank', blank],
      ['report', report],
    ] as const) {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      const began = performance.now();
      await page.goto(pathToFileURL(path).href);
      await page.waitForSelector('html[data-charts=drawn]', { state: 'attached' });
      if (round > 0) times[name].push((performance.now() - began) / 1000);
      await page.close();
    }
  }
} finally {
  await browser.close();
}
const median = (all: readonly number[]): number => all.toSorted((a, b) => a - b)[all.length >> 1]!;
const [reportS, empty] = [median(times.report), median(times.blank)];
console.log(
  `open in Chromium     ${reportS.toFixed(2)} s, ${(reportS / empty).toFixed(1)} x a blank page of as many bytes (${empty.toFixed(2)} s), ${(bytes / 1e6).toFixed(2)} MB; goal ${goalS} s: ${reportS > goalS ? 'MISSED' : 'met'}`,
);
process.exitCode = reportS > goalS ? 1 : 0;
