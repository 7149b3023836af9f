import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import process from 'node:process';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { launchBrowser } from '../../test/browser/chromium.js';
import { openInPerfetto, servePerfetto } from '../../test/perfetto/perfetto-ui.js';

// drive.ts SESSION TRACE PERFETTO-FOLDER CLI LIMIT-S: opens a session in inferscope ui and its chrome trace in Perfetto, pans and zooms
// for 10 s in each, and prints the figures of both.

const [session = '', trace = '', folder = '', cli = '', limit = '300'] = process.argv.slice(2);
const limitMs = 1000 * Number(limit);
const viewport = { width: 1280, height: 800 };

interface Measured {
  firstMs: number | null;
  usableMs: number;
  /** From the request of the page until it is usable: without the start of the command, which Perfetto's UI does not have. */
  openedMs: number;
  bytesUsable: number;
  bytesMoved: number;
  p50: number;
  p95: number;
  longest: number;
  frames: number;
  heap: number;
  resident: number;
  /** Memory of the process that serves the page; 0 without one. */
  server: number;
  /** The largest response with a part of the timeline. */
  largest: number | null;
}

/** Bytes that this page fetched, and its largest tile. */
async function countBytes(
  page: Page,
): Promise<{ client: CDPSession; bytes: () => number; largest: () => number }> {
  const client = await page.context().newCDPSession(page);
  let [bytes, largest] = [0, 0];
  const tiles = new Set<string>();
  client.on('Network.requestWillBeSent', ({ requestId, request }) => {
    if (request.url.includes('/api/tiles')) tiles.add(requestId);
  });
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    bytes += encodedDataLength;
    if (tiles.has(requestId)) largest = Math.max(largest, encodedDataLength);
  });
  await client.send('Network.enable');
  await client.send('Performance.enable');
  return { client, bytes: () => bytes, largest: () => largest };
}

/** Resident bytes of all processes of the browser. */
function residentBytes(): number {
  const parents = new Map<number, { parent: number; bytes: number }>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const field = (name: string): number =>
        Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
      if (/^Name:\s+chromium/m.test(status))
        parents.set(Number(pid), { parent: field('PPid'), bytes: 1024 * field('RssAnon') });
    } catch {
      // The process has exited.
    }
  }
  const below = (pid: number): boolean => {
    const parent = parents.get(pid)?.parent;
    return parent === process.pid || (parent !== undefined && below(parent));
  };
  return [...parents].filter(([pid]) => below(pid)).reduce((sum, [, { bytes }]) => sum + bytes, 0);
}

/** One second each; wheel events as often as the browser accepts them, at most every 16 ms. */
const moves = ['in', 'in', 'right', 'left', 'in', 'in', 'right', 'left', 'out', 'out'] as const;

async function frameTimesOfMoves(
  page: Page,
  point: { x: number; y: number },
  zoomKey: string | null,
): Promise<number[]> {
  await page.mouse.move(point.x, point.y);
  await page.evaluate(
    `globalThis.frameTimes = []; (function next(t) { frameTimes.push(t); requestAnimationFrame(next); })(performance.now())`,
  );
  for (const move of moves) {
    const zooms = move === 'in' || move === 'out';
    if (zooms && zoomKey !== null) await page.keyboard.down(zoomKey);
    const until = performance.now() + 1000;
    while (performance.now() < until) {
      const next = performance.now() + 16;
      if (zooms) await page.mouse.wheel(0, move === 'in' ? -20 : 20);
      else await page.mouse.wheel(move === 'right' ? 20 : -20, 0);
      const wait = next - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    }
    if (zooms && zoomKey !== null) await page.keyboard.up(zoomKey);
  }
  const times = await page.evaluate<number[]>('frameTimes');
  return times.slice(1).map((time, i) => time - times[i]!);
}

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.floor(q * (sorted.length - 1))]!;

async function moveAndMeasure(
  page: Page,
  { client, bytes }: Awaited<ReturnType<typeof countBytes>>,
  point: { x: number; y: number },
  zoomKey: string | null,
): Promise<Omit<Measured, 'firstMs' | 'usableMs' | 'openedMs' | 'server' | 'largest'>> {
  const bytesUsable = bytes();
  const frames = (await frameTimesOfMoves(page, point, zoomKey)).sort((a, b) => a - b);
  const { metrics } = await client.send('Performance.getMetrics');
  return {
    bytesUsable,
    bytesMoved: bytes() - bytesUsable,
    p50: quantile(frames, 0.5),
    p95: quantile(frames, 0.95),
    longest: frames.at(-1)!,
    frames: frames.length,
    heap: metrics.find(({ name }) => name === 'JSHeapUsedSize')!.value,
    resident: residentBytes(),
  };
}

async function inInferscope(browser: Browser): Promise<Measured> {
  const page = await browser.newPage({ viewport });
  const count = await countBytes(page);
  const began = performance.now();
  const server = spawn(process.execPath, [cli, 'ui', session, '--no-open'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const url = new URL(line.toString().trim());
    url.pathname += '/timeline';
    const first = page
      .waitForResponse(
        async (response) => response.url().includes('/api/tiles') && (await response.body()).length > 0,
      )
      .then(() => performance.now() - began);
    const requested = performance.now();
    await page.goto(url.href);
    await page.waitForSelector('#timeline[data-ready]', { timeout: limitMs });
    const [usableMs, openedMs] = [performance.now() - began, performance.now() - requested];
    const firstMs = await first;
    // Waits for the last tiles of the first view.
    await page.waitForLoadState('networkidle');
    const box = (await page.locator('#timeline canvas').boundingBox())!;
    const point = { x: box.x + box.width / 2, y: box.y + 100 };
    const moved = await moveAndMeasure(page, count, point, null);
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    const serverBytes = 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]);
    return { firstMs, usableMs, openedMs, ...moved, server: serverBytes, largest: count.largest() };
  } finally {
    server.kill('SIGINT');
  }
}

async function inPerfetto(browser: Browser): Promise<Measured> {
  const ui = await servePerfetto(folder);
  try {
    const context = await browser.newContext({ viewport, serviceWorkers: 'block' });
    const page = await context.newPage();
    // The UI requests news and analytics from the web.
    await page.route(
      (url) => url.hostname !== '127.0.0.1',
      (route) => route.abort(),
    );
    const count = await countBytes(page);
    const began = performance.now();
    const failure = page
      .waitForSelector('.pf-modal-dialog, .modal-dialog', { timeout: limitMs })
      .then(async (dialog) => {
        throw new Error((await dialog.innerText()).replaceAll(/\s+/g, ' ').slice(0, 300));
      });
    failure.catch(() => {});
    const opened = openInPerfetto(page, ui, trace, limitMs).then((query) =>
      query('SELECT count(*) FROM slice'),
    );
    const [[slices]] = (await Promise.race([opened, failure])) as [[number]];
    const usableMs = performance.now() - began;
    console.log(`Perfetto has ${slices} slices`);
    await page.waitForLoadState('networkidle');
    const moved = await moveAndMeasure(page, count, { x: 800, y: 300 }, 'Control');
    // The file is passed to the page's worker without a network, unlike a hosted trace.
    const bytesUsable = moved.bytesUsable + statSync(trace).size;
    return { firstMs: null, usableMs, openedMs: usableMs, ...moved, bytesUsable, server: 0, largest: null };
  } finally {
    ui.close();
  }
}

const measured: Record<string, Measured> = {};
for (const [name, measure] of [
  ['inferscope', inInferscope],
  ['Perfetto', inPerfetto],
] as const) {
  const browser = await launchBrowser();
  try {
    measured[name] = await measure(browser);
  } catch (error) {
    console.log(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await browser.close();
  }
}

const rows: [string, (result: Measured) => number | null, string, number][] = [
  ['first kernels drawn', ({ firstMs }) => firstMs, 's', 1000],
  ['usable', ({ usableMs }) => usableMs, 's', 1000],
  ['usable, from the request of the page', ({ openedMs }) => openedMs, 's', 1000],
  ['bytes until then', ({ bytesUsable }) => bytesUsable, 'MB', 1e6],
  ['bytes in 10 s of pan and zoom', ({ bytesMoved }) => bytesMoved, 'MB', 1e6],
  ['frame, median', ({ p50 }) => p50, 'ms', 1],
  ['frame, 95th percentile', ({ p95 }) => p95, 'ms', 1],
  ['frame, longest', ({ longest }) => longest, 'ms', 1],
  ['frames in 10 s', ({ frames }) => frames, '', 1],
  ['JavaScript heap of the page', ({ heap }) => heap, 'MB', 1e6],
  ['memory of the browser', ({ resident }) => resident, 'MB', 1e6],
  ['memory of browser and server', ({ resident, server }) => resident + server, 'MB', 1e6],
  ['largest tile', ({ largest }) => largest, 'MB', 1e6],
];
const { inferscope, Perfetto } = measured;
console.log('| | inferscope | Perfetto | Perfetto / inferscope |\n| --- | ---: | ---: | ---: |');
for (const [label, valueOf, unit, scale] of rows) {
  const [ours, theirs] = [inferscope, Perfetto].map((tool) => (tool ? valueOf(tool) : null));
  const shown = (value: number | null | undefined): string =>
    value === null || value === undefined ? '–' : `${Number((value / scale).toPrecision(3))} ${unit}`;
  const ratio = ours && theirs ? Number((theirs / ours).toPrecision(2)) : '–';
  console.log(`| ${label} | ${shown(ours)} | ${shown(theirs)} | ${ratio} |`);
}
