import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { axisHeight, headHeight, laneHeight, layoutOf } from '../../src/ui/client/rows.js';
import type { Counter, TimelineData } from '../../src/ui/timeline/shown.js';
import { importArchive, UiPages } from './ui-pages.js';
import { waitForTimeline } from './ui-server.js';

const ui = new UiPages();
const name = 'launch_bound_decode-fault';
const barHeight = laneHeight - 2;

type Rgb = readonly [number, number, number];
const distance = (a: Rgb, b: Rgb): number => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);

/** The share of a pixel that each color covers, if at most two colors meet in it. */
function coveredShares(pixel: Rgb, colors: readonly Rgb[]): number[] {
  let best = { error: Infinity, shares: [] as number[] };
  for (const [i, a] of colors.entries())
    for (const [j, b] of colors.entries()) {
      if (j < i) continue;
      const length = distance(a, b) ** 2;
      const dot = a.reduce((sum, value, index) => sum + (pixel[index]! - value) * (b[index]! - value), 0);
      const part = length === 0 ? 0 : Math.min(1, Math.max(0, dot / length));
      const mixed = a.map((value, index) => value + part * (b[index]! - value)) as unknown as Rgb;
      const error = distance(mixed, pixel);
      if (error >= best.error) continue;
      const shares = colors.map(() => 0);
      shares[i] = 1 - part;
      shares[j]! += part;
      best = { error, shares };
    }
  return best.shares;
}

/** The pixels of the bars of some lanes: rows from the top, columns from the first visible nanosecond to the last. */
async function readBars(page: Page, tops: readonly number[]): Promise<Rgb[][][]> {
  return page.evaluate<Rgb[][][]>(`(() => {
    const canvas = document.querySelector('#timeline canvas');
    const gutter = canvas.clientWidth < 600 ? 84 : 170;
    return ${JSON.stringify(tops)}.map((top) => {
      const { data, width } = canvas.getContext('2d').getImageData(gutter, top, canvas.width - gutter, ${barHeight});
      return Array.from({ length: ${barHeight} }, (_, y) =>
        Array.from({ length: width }, (_, x) => [...data.slice(4 * (y * width + x), 4 * (y * width + x) + 3)]),
      );
    });
  })()`);
}

/** Opens the timeline at a time, waits until it is drawn, and reads the pixels of its kernels. */
async function openAt(start: number | null, end: number | null) {
  const query = start === null ? '' : `?${new URLSearchParams({ start: String(start), end: String(end) })}`;
  const page = await ui.open(`${ui.pathOf(name, '/timeline')}${query}`);
  await waitForTimeline(page);
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(300);
  const linkQuery = new URL(page.url()).searchParams;
  const execution = linkQuery.get('execution')!;
  const api = ui.pathOf(name, '/api');
  const read = <T>(part: string): Promise<T> =>
    page.evaluate<T>(`fetch('${api}/${part}?execution=${execution}').then((answer) => answer.json())`);
  const timeline = await read<TimelineData>('timeline');
  const { lanes } = layoutOf(timeline, await read<Counter[]>('counters'), {
    closed: new Set(),
    overlaid: false,
    fits: () => true,
  });
  const colors = await page.evaluate<Rgb[]>(`(() => {
    const rgb = (color) => {
      const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const probe = document.createElement('span');
    document.body.append(probe);
    const resolved = (color) => { probe.style.color = color; return getComputedStyle(probe).color; };
    return ['var(--surface)', 'var(--line)', ...${JSON.stringify(timeline.classes['kernels']!.map(({ color }) => color))}].map((color) => rgb(resolved(color)));
  })()`);
  const tops = lanes.filter(({ track }) => track.table === 'kernels').map(({ top }) => top);
  return {
    page,
    execution,
    classes: timeline.classes['kernels']!.map(({ id }) => id),
    colors,
    bars: await readBars(page, tops),
    range: [Number(linkQuery.get('start')), Number(linkQuery.get('end'))] as const,
  };
}

describe('the drawn timeline', () => {
  it('gives each class its share of time in SQL, where events are narrower than a pixel', async () => {
    const unzoomed = await openAt(null, null);
    const [from, to] = unzoomed.range;
    await unzoomed.page.close();
    for (const zoom of [1, 3, 10]) {
      const start = from + 0.3 * (to - from) * (1 - 1 / zoom);
      const end = start + (to - from) / zoom;
      const { page, execution, classes, colors, bars, range } = await openAt(
        zoom === 1 ? null : Math.round(start),
        zoom === 1 ? null : Math.round(end),
      );
      const pixelsOfClass = new Map<string, number>();
      const columns = bars[0]![0]!.length;
      const sharesOfColor = new Map<string, number[]>();
      for (const pixel of bars.flat(2)) {
        const key = pixel.join(',');
        const shares = sharesOfColor.get(key) ?? coveredShares(pixel, colors);
        sharesOfColor.set(key, shares);
        for (const [index, id] of classes.entries())
          if (shares[index + 2]! > 0)
            pixelsOfClass.set(id, (pixelsOfClass.get(id) ?? 0) + shares[index + 2]!);
      }
      const rows = ui.sql(
        name,
        `SELECT class, sum(least(start_ns + dur_ns, ${range[1]}) - greatest(start_ns, ${range[0]})) FROM kernels
         WHERE execution_id = '${execution}' AND start_ns < ${range[1]} AND start_ns + dur_ns > ${range[0]} GROUP BY 1`,
      ) as [string, number][];
      expect(rows.length).toBeGreaterThan(3);
      const span = range[1] - range[0];
      const all = rows.reduce((sum, [, ns]) => sum + ns / span, 0);
      const drawn = [...pixelsOfClass].map(([id, pixels]) => [id, pixels / (columns * barHeight)] as const);
      expect(Math.abs(drawn.reduce((sum, [, share]) => sum + share, 0) - all), `at ${zoom}`).toBeLessThan(
        0.01,
      );
      // The parts of a pixel are not known if more than two colors meet in it.
      if (zoom > 1)
        for (const [id, ns] of rows)
          expect(Math.abs((new Map(drawn).get(id) ?? 0) - ns / span), `${id} at ${zoom}`).toBeLessThan(0.005);
      await page.close();
    }
  });

  it('has one bar per kernel in SQL, where kernels are wider than a few pixels', async () => {
    const [[execution]] = ui.sql(
      name,
      'SELECT execution_id FROM kernels GROUP BY 1 ORDER BY count(*) DESC LIMIT 1',
    ) as [[string]];
    const kernels = ui.sql(
      name,
      `SELECT start_ns, start_ns + dur_ns FROM kernels WHERE execution_id = '${execution}' ORDER BY start_ns LIMIT 12 OFFSET 200`,
    ) as [number, number][];
    const [first, last] = [kernels[0]![0], kernels.at(-1)![1]];
    const { page, colors, bars, range } = await openAt(first - 1000, last + 1000);
    const ns = (range[1] - range[0]) / bars[0]![0]!.length;
    expect(Math.min(...kernels.map(([start, end]) => (end - start) / ns))).toBeGreaterThan(4);
    // The first pixel row is above the names inside wide bars.
    const isBarPixel = bars.flatMap(([row]) =>
      row!.map((pixel) => distance(pixel, colors[0]!) > 40 && distance(pixel, colors[1]!) > 40),
    );
    const starts = isBarPixel.filter((isBar, index) => isBar && !isBarPixel[index - 1]).length;
    const [[count]] = ui.sql(
      name,
      `SELECT count(*) FROM kernels WHERE execution_id = '${execution}' AND start_ns < ${range[1]} AND start_ns + dur_ns > ${range[0]}`,
    ) as [[number]];
    expect(starts).toBe(count);
    await page.close();
  });
});

it('draws another step below the shown one, aligned at their starts, also from a link', async () => {
  const page = await ui.open(ui.pathOf(name, '/timeline'));
  await waitForTimeline(page);
  const textOf = async (list: string): Promise<string> =>
    (await page.textContent(`${list} option:checked`)) ?? '';
  /** The rows of the lane that is the `number`-th from the top, and the rows of the other step below it. */
  const readLane = async (opened: Page, number: number): Promise<[string, string]> => {
    await opened.waitForLoadState('networkidle');
    await opened.waitForTimeout(300);
    const top = axisHeight + headHeight + 2 * laneHeight * number;
    return (await readBars(opened, [top, top + laneHeight])).map((rows) => JSON.stringify(rows)) as [
      string,
      string,
    ];
  };
  await page.selectOption('#overlay', '0');
  // Without a shown step, one of the same kind is chosen.
  expect([await textOf('#step'), await textOf('#overlay')]).toEqual([
    expect.stringContaining('slowest'),
    expect.stringContaining('median'),
  ]);
  const [slowest, median] = await readLane(page, 0);
  expect(median).not.toBe(slowest);
  await page.selectOption('#step', '0');
  const [shown, below] = await readLane(page, 0);
  expect(below).toBe(shown);
  await page.selectOption('#overlay', '1');
  await expect.poll(() => new URL(page.url()).searchParams.has('overlay')).toBe(true);
  const drawn = await readLane(page, 0);
  const again = await ui.open(page.url().slice(ui.server.origin.length));
  await waitForTimeline(again);
  expect(await readLane(again, 0)).toEqual(drawn);
  await again.close();
  await page.close();
});

it('collapses ranks and expands them again by click and key, and to show an event that a search finds', async () => {
  importArchive(ui.setup, 'diagnosis/exposed_communication-fault.tgz');
  const page = await ui.open(ui.pathOf('exposed_communication-fault', '/timeline'));
  await waitForTimeline(page);
  const height = (): Promise<number> => page.$eval('#timeline canvas', (canvas) => canvas.clientHeight);
  const fullHeight = await height();
  await page.click('#timeline canvas', { position: { x: 30, y: axisHeight + 10 } });
  await expect.poll(height).toBeLessThan(fullHeight);
  await expect.poll(() => new URL(page.url()).searchParams.get('closed')).toMatch(/^rank 0/);
  const collapsedHeight = await height();
  const again = await ui.open(page.url().slice(ui.server.origin.length));
  await waitForTimeline(again);
  expect(await again.$eval('#timeline canvas', (canvas) => canvas.clientHeight)).toBe(collapsedHeight);
  await again.close();
  await page.keyboard.press('c');
  await expect.poll(height).toBe(fullHeight);
  await page.keyboard.press('c');
  await expect.poll(height).toBeLessThan(fullHeight);
  await page.keyboard.press('c');
  await expect.poll(height).toBe(fullHeight);
  // Without a mouse: the second group is the stages of rank 0.
  await page.focus('#timeline');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await page.textContent('#status')).toBe('Stages, open');
  await page.keyboard.press('Enter');
  await expect.poll(height).toBeLessThan(fullHeight);
  expect(await page.textContent('#status')).toMatch(/^Stages, closed: \d+ lanes?$/);
  await expect.poll(() => new URL(page.url()).searchParams.get('closed')).toBe('rank 0 Stages');
  await page.keyboard.press('Space');
  await expect.poll(height).toBe(fullHeight);
  await page.keyboard.press('Tab');
  expect(await page.textContent('#status')).toBe('');
  await page.keyboard.press('c');
  await expect.poll(height).toBeLessThan(fullHeight);
  await page.keyboard.press('/');
  await page.keyboard.type('nccl');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#details dl');
  await expect.poll(height).toBe(fullHeight);
  await page.close();
  // The browser complains about the canvases that this test reads.
  expect(ui.complaints.filter((complaint) => !complaint.includes('willReadFrequently'))).toEqual([]);
});

it('lists the single events of the visible range by keyboard, sorted and in pages, with links into the timeline', async () => {
  const page = await ui.open(ui.pathOf(name, '/timeline'));
  await waitForTimeline(page);
  await page.focus('#timeline');
  await page.keyboard.press('v');
  await page.waitForSelector('#selected tbody tr');
  const execution = new URL(page.url()).searchParams.get('execution')!;
  const [[count, longest]] = ui.sql(
    name,
    `SELECT count(*), max(dur_ns) FROM kernels WHERE execution_id = '${execution}'`,
  ) as [[number, number]];
  const readEventCount = async (selector: string): Promise<number> =>
    Number(/(\d+)events/.exec((await page.innerText(selector)).replaceAll(/\s/g, ''))![1]);
  expect(await readEventCount('#selected-pages')).toBe(count);
  const firstRow = (): Promise<string> => page.innerText('#selected tbody tr >> nth=0');
  const before = await firstRow();
  await page.click('#selected-pages button:text-is("next")');
  await expect.poll(firstRow).not.toBe(before);
  await page.click('#selected th button:text-is("start")');
  await page.waitForSelector('#selected th[aria-sort=ascending]');
  await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('start');
  await page.click('#selected th button:text-is("inside the selection")');
  await page.waitForSelector('#selected th[aria-sort=descending]');
  await page.focus('#selected tbody button');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#event dl');
  await expect.poll(() => page.url()).toMatch(/event=.*mark=|mark=.*event=/);
  const event = await page.evaluate<{ start: number; end: number }>(`(() => {
    const query = new URLSearchParams(location.search);
    const [lane, index] = query.get('event').split(',');
    return fetch(document.body.dataset.api + '/event?' + new URLSearchParams({ execution: query.get('execution'), lane, index }))
      .then((answer) => answer.json());
  })()`);
  expect(event.end - event.start).toBe(longest);
  // Lists the events of one name; the list is in the address.
  const nameButton = page.locator('#selection .columns tbody tr:nth-child(2) button').first();
  const [label, full] = [await nameButton.innerText(), await nameButton.getAttribute('title')];
  await nameButton.click();
  await expect.poll(() => new URL(page.url()).searchParams.get('name')).toBe(full ?? label);
  const again = await ui.open(page.url().slice(ui.server.origin.length));
  await again.waitForSelector('#selected tbody tr');
  await expect.poll(() => page.innerText('#selected caption')).toContain(label);
  expect(await again.innerText('#selected')).toBe(await page.innerText('#selected'));
  await again.close();
  await page.keyboard.press('Escape');
  await expect.poll(() => page.locator('#selection *').count()).toBe(0);
  await page.close();
});

it('walks along a row, zooms to an event, and goes to its launch and back by keyboard', async () => {
  const page = await ui.open(ui.pathOf(name, '/timeline'));
  await waitForTimeline(page);
  await page.keyboard.press('/');
  await page.keyboard.type('nvjet');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#event dl');
  await page.focus('#timeline');
  const stateOf = (parameter: string): string => new URL(page.url()).searchParams.get(parameter) ?? '';
  const width = (): number => Number(stateOf('end')) - Number(stateOf('start'));
  await expect.poll(() => stateOf('event')).toMatch(/^\d+,\d+$/);
  const [lane, index] = stateOf('event').split(',').map(Number) as [number, number];
  const before = width();
  await page.keyboard.press('.');
  await expect.poll(() => stateOf('event')).toBe(`${lane},${index + 1}`);
  await page.keyboard.press(',');
  await expect.poll(() => stateOf('event')).toBe(`${lane},${index}`);
  expect(width()).toBeCloseTo(before, -1);
  await page.keyboard.press('l');
  await expect.poll(() => stateOf('event').split(',')[0]).not.toBe(String(lane));
  await page.keyboard.press('l');
  await expect.poll(() => stateOf('event')).toBe(`${lane},${index}`);
  await page.keyboard.press('z');
  const event = await page.evaluate<{ start: number; end: number }>(
    `fetch('${ui.pathOf(name, '/api')}/event?' + new URLSearchParams({ execution: '${stateOf('execution')}', lane: ${lane}, index: ${index} })).then((answer) => answer.json())`,
  );
  await expect.poll(width).toBeCloseTo(1.3 * (event.end - event.start), -2);
  await page.keyboard.press('f');
  await expect.poll(width).toBeGreaterThan(before);
  await page.close();
});
