import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { formatCount, formatNs } from '../../src/vocabulary/format.js';
import { kernelLabel } from '../../src/vocabulary/kernel-label.js';
import { inferscope } from '../cli/run-cli.js';
import { fixture } from '../cli/capture-files.js';
import { importArchive, UiPages } from './ui-pages.js';
import { waitForTimeline } from './ui-server.js';
import { waitForCharts, expectFits } from './report-page.js';

const ui = new UiPages();

describe('every page of inferscope ui in Chromium', () => {
  it('shows the sums of SQL for a selection', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault', '/timeline'));
    await waitForTimeline(page);
    const box = (await page.locator('#timeline canvas').boundingBox())!;
    await page.keyboard.press('m');
    await page.mouse.move(box.x + 300, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 60, { steps: 4 });
    await page.mouse.up();
    const selectionResponse = page.waitForResponse((response) => response.url().includes('/api/selection'));
    await page.mouse.move(box.x + 300, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 60, { steps: 4 });
    await page.mouse.up();
    const response = await selectionResponse;
    const query = new URL(response.url()).searchParams;
    const { groups } = (await response.json()) as {
      groups: { table: string; total_ns: number; classes: { id: string; ns: number }[] }[];
    };
    const execution = query.get('execution');
    const [[zero]] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT min(start_ns) FROM (SELECT execution_id, start_ns FROM kernels UNION ALL SELECT execution_id, start_ns FROM api_calls UNION ALL SELECT execution_id, start_ns FROM stages) WHERE execution_id = '${execution}'`,
    ) as [[number]];
    const [start, end] = [zero + Number(query.get('start')), zero + Number(query.get('end'))];
    for (const table of ['kernels', 'api_calls', 'gaps']) {
      const [[ns]] = ui.sql(
        'launch_bound_decode-fault',
        `SELECT sum(least(start_ns + dur_ns, ${end}) - greatest(start_ns, ${start})) FROM ${table} WHERE execution_id = '${execution}' AND start_ns < ${end} AND start_ns + dur_ns > ${start}`,
      ) as [[number]];
      const tableGroups = groups.filter((group) => group.table === table);
      expect(tableGroups.reduce((sum, { total_ns }) => sum + total_ns, 0) / ns, table).toBeCloseTo(1, 6);
    }
    const classes = ui.sql(
      'launch_bound_decode-fault',
      `SELECT class, sum(least(start_ns + dur_ns, ${end}) - greatest(start_ns, ${start})) FROM kernels WHERE execution_id = '${execution}' AND start_ns < ${end} AND start_ns + dur_ns > ${start} GROUP BY 1 ORDER BY 2 DESC`,
    ) as [string, number][];
    const sums = groups.find(({ table }) => table === 'kernels')!.classes;
    expect(sums.map(({ id }) => id)).toEqual(classes.map(([id]) => id));
    for (const [index, { ns }] of sums.entries()) expect(ns / classes[index]![1]).toBeCloseTo(1, 6);
    const byClass = page.locator('#selection table:has(caption:text-is("Kernels · GPU 0, by class"))');
    expect(await byClass.locator('tbody tr').count()).toBe(classes.length);
    // The page shows the same sum, with the number of kernels.
    const [[count, ns]] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT count(*), sum(least(start_ns + dur_ns, ${end}) - greatest(start_ns, ${start})) FROM kernels WHERE execution_id = '${execution}' AND start_ns < ${end} AND start_ns + dur_ns > ${start}`,
    ) as [[number, number | string]];
    const all = page.locator('#selection table:has(caption:text-is("Kernels · GPU 0")) tbody tr').first();
    expect((await all.locator('td').allInnerTexts()).slice(0, 3)).toEqual([
      'all',
      formatCount(count),
      formatNs(Number(ns)),
    ]);
    await page.close();
  });

  it('zooms by keyboard and wheel, shows everything again with f, and fits a width of 390 px', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault', '/timeline'));
    await waitForTimeline(page);
    const width = (): number => {
      const search = new URL(page.url()).searchParams;
      return Number(search.get('end')) - Number(search.get('start'));
    };
    await expect.poll(width).toBeGreaterThan(0);
    const unzoomed = width();
    await page.keyboard.press('w');
    await expect.poll(width).toBeCloseTo(0.7 * unzoomed, -3);
    const box = (await page.locator('#timeline canvas').boundingBox())!;
    await page.mouse.move(box.x + 600, box.y + 60);
    await page.mouse.wheel(0, -300);
    await expect.poll(width).toBeLessThan(0.4 * unzoomed);
    await page.keyboard.press('f');
    await expect.poll(width).toBeCloseTo(unzoomed, -3);
    await page.setViewportSize({ width: 390, height: 800 });
    await expectFits(page);
    await page.close();
  });

  it('offers one execution for download as a chrome trace that starts at 0', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault', '/timeline'));
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).origin));
    await waitForTimeline(page);
    const download = page.waitForEvent('download');
    await page.click('a[download]');
    const file = await download;
    expect(file.suggestedFilename()).toMatch(/\.trace\.json\.gz$/);
    const text = gunzipSync(readFileSync(await file.path())).toString();
    const { traceEvents } = JSON.parse(text) as {
      traceEvents: { cat?: string; ts?: number; dur?: number }[];
    };
    expect(Math.min(...traceEvents.flatMap(({ ts }) => (ts === undefined ? [] : [ts])))).toBe(0);
    expect(traceEvents.filter(({ cat }) => cat === 'kernels')).toHaveLength(
      ui.sql(
        'launch_bound_decode-fault',
        'SELECT count(*) FROM kernels GROUP BY execution_id ORDER BY 1 DESC LIMIT 1',
      )[0]![0] as number,
    );
    // The trace is as long as this execution, so it has no events of the other one.
    const [[span]] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT (max(end_ns) - min(start_ns)) / 1e3 FROM (SELECT execution_id, start_ns, start_ns + dur_ns AS end_ns FROM kernels
       UNION ALL SELECT execution_id, start_ns, start_ns + dur_ns FROM api_calls UNION ALL SELECT execution_id, start_ns, end_ns FROM stages)
       WHERE execution_id = 'nsys'`,
    ) as [[number]];
    const ends = traceEvents.flatMap(({ ts, dur = 0 }) => (ts === undefined ? [] : [ts + dur]));
    expect(ends.reduce((last, end) => Math.max(last, end), 0)).toBeCloseTo(span, 0);
    expect(new Set(requests)).toEqual(new Set([ui.server.origin]));
    await page.close();
  });

  it('lists the sessions, and the trend of a workload after its sessions are analyzed', async () => {
    for (const name of ['launch_bound_decode-fault', 'launch_bound_decode-fixed'])
      await (await ui.open(ui.pathOf(name))).close();
    const page = await ui.open('/');
    const row = page.locator('tbody tr', { hasText: 'launch_bound_decode-fault' });
    const cell = (head: string): Promise<string> => row.locator(`[data-head="${head}"]`).innerText();
    expect(await cell('Model')).toContain('decoder');
    expect([await cell('GPU'), await cell('Batch')]).toEqual(['H200', '1']);
    const ms = /decode ([\d.]+)/.exec(await cell('Headline'))![1]!;
    const label = await row.locator('.sparkline').getAttribute('aria-label');
    expect(label).toContain(`${ms} ms`);
    expect(label!.split(', ')).toHaveLength(2);
    await page.close();
  });

  it('cuts off no section of the overview', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault'));
    const sections = await page.$$eval('main section', (all) =>
      all.map(({ id, scrollHeight, clientHeight }) => ({ id, hidden: scrollHeight - clientHeight })),
    );
    expect(sections.length).toBeGreaterThan(10);
    expect(sections.filter(({ hidden }) => hidden > 1)).toEqual([]);
    await page.close();
  });

  it('runs SQL, reports errors in it, and saves CSV', async () => {
    const page = await ui.open(
      `/s/${ui.idOf('launch_bound_decode-fault')}/sql?q=SELECT%20count(*)%20AS%20n%20FROM%20kernels`,
    );
    await page.waitForSelector('#answer td');
    expect(await page.textContent('#answer td')).toBe(
      String(ui.sql('launch_bound_decode-fault', 'SELECT count(*) FROM kernels')[0]![0]),
    );
    const download = page.waitForEvent('download');
    await page.click('#csv');
    const file = await download;
    expect(file.suggestedFilename()).toBe('inferscope.csv');
    expect(readFileSync(await file.path(), 'utf8')).toBe(`n\r\n${await page.textContent('#answer td')}\r\n`);
    await page.fill('#editor .cm-content', '');
    await page.keyboard.type('SELECT grid FROM ker');
    await page.waitForSelector('.cm-tooltip li[aria-selected]:has-text("kernels")');
    // The completion list accepts keys only a moment after it appears.
    await page.waitForTimeout(200);
    await page.keyboard.press('Enter');
    await page.keyboard.type(' WHERE kernels.reg');
    await page.waitForSelector('.cm-tooltip li[aria-selected]:has-text("registers")');
    await page.waitForTimeout(200);
    await page.keyboard.press('Enter');
    expect(await page.innerText('#editor .cm-content')).toBe(
      'SELECT grid FROM kernels WHERE kernels.registers',
    );
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Run');
    await page.fill('#editor .cm-content', 'SELECT nothing FROM kernels');
    ui.complaints.length = 0;
    await page.keyboard.press('Control+Enter');
    await page.waitForSelector('#answer [role=alert]');
    expect(await page.textContent('#answer')).toContain('nothing');
    // Only the browser's message about the rejected request.
    expect(ui.complaints.splice(0).every((complaint) => complaint.includes('400'))).toBe(true);
    await page.close();
  });

  it('lists kernels with the sums of SQL, sorts and filters, and links to the longest kernel', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault'));
    await page.click('nav.pages a:has-text("Kernels")');
    const [[name, launches, longest, total]] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT name, count(*) OVER (PARTITION BY name), dur_ns, sum(dur_ns) OVER (PARTITION BY name) AS total FROM rank_kernels
       ORDER BY total DESC, dur_ns DESC LIMIT 1`,
    ) as [[string, number, number, number]];
    const first = page.locator('#named tbody tr').first();
    expect((await first.locator('td').nth(2).innerText()).replaceAll(/\D/g, '')).toBe(String(launches));
    expect(await first.locator('td').nth(3).innerText()).toBe(formatNs(total));
    // A name is a link that the keyboard can open.
    await first.locator('a').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('#chosen');
    expect(await page.textContent('#chosen h2')).toBe(kernelLabel(name));
    expect(await page.textContent('#chosen')).toContain(name);
    const bars = await page.locator('.histogram title').allTextContents();
    const counts = bars.map((text) => Number(/: (.*) kernel/.exec(text)![1]!.replaceAll(/\D/g, '')));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(launches);
    await page.click('#named th a:has-text("Kernel")');
    await page.waitForURL(/sort=/);
    await page.waitForSelector('#named tbody tr');
    const names = await page.locator('#named tbody tr td:first-child').allInnerTexts();
    expect(names.length).toBeGreaterThan(1);
    expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, 'en')));
    await page.fill('input[name=q]', 'gemm');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=gemm/);
    expect(await page.locator('#named tbody tr').count()).toBeLessThan(names.length);
    await page.setViewportSize({ width: 390, height: 800 });
    await expectFits(page);
    await page.click('#chosen a[href*="/timeline?"]');
    await waitForTimeline(page);
    const [start, end] = new URL(page.url()).searchParams.get('mark')!.split(',').map(Number);
    expect(end! - start!).toBe(longest);
    await page.waitForSelector('#details table');
    await page.close();
  });

  it('lists operators and GEMMs with the sums of SQL, and links to the longest call', async () => {
    const name = 'kineto-tiny-llm-b1';
    importArchive(ui.setup, 'kineto-torch2.11-h200/tiny-llm-b1-session.tgz');
    const page = await ui.open(ui.pathOf(name));
    await page.click('nav.pages a:has-text("Operators")');
    const [[calls]] = ui.sql(name, "SELECT count(*) FROM rank_ops WHERE name = 'aten::mm'") as [[number]];
    await page.fill('input[name=q]', 'aten::mm');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=aten/);
    await page.click('#named a:text-is("aten::mm")');
    await page.waitForSelector('#chosen');
    const bars = await page.locator('.histogram title').allTextContents();
    const counts = bars.map((text) => Number(/: (.*) call/.exec(text)![1]!.replaceAll(/\D/g, '')));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(calls);
    await page.click('#chosen a[href*="/timeline?"]');
    await waitForTimeline(page);
    const [start, end] = new URL(page.url()).searchParams.get('mark')!.split(',').map(Number);
    const [[longest]] = ui.sql(name, "SELECT max(dur_ns) FROM rank_ops WHERE name = 'aten::mm'") as [
      [number],
    ];
    expect(end! - start!).toBe(longest);
    await page.click('nav.pages a:has-text("GEMMs")');
    await waitForCharts(page);
    const rows = await page.locator('#gemms table').last().locator('tbody tr').count();
    expect(rows).toBeGreaterThan(3);
    expect(await page.locator('#gemms .chart svg path').count()).toBeGreaterThan(rows);
    // Peaks from the H200's data sheet, only for dtypes with GEMMs that the bandwidth can limit.
    const { peaks } = JSON.parse((await page.locator('#gemms figure > script').first().textContent())!) as {
      peaks: { dtype: string; flops_per_s: number }[];
    };
    expect(peaks.find(({ dtype }) => dtype === 'float16')!.flops_per_s / 989.4e12).toBeCloseTo(1, 3);
    await page.click('#gemms details summary');
    await page.locator('#gemms a[href*="shape="]').first().click();
    await page.waitForURL(/shape=/);
    const countOfShape = Number((await page.innerText('#chosen dd >> nth=0')).replaceAll(/\s/g, ''));
    const [m, n, k] = new URL(page.url()).searchParams.get('shape')!.split(/[× ]/);
    const [[recorded]] = ui.sql(
      name,
      `SELECT count(*) FROM ops WHERE name = 'aten::mm' AND input_shapes LIKE '[[${m},${k}],[${k},${n}]%'`,
    ) as [[number]];
    expect(countOfShape).toBe(recorded);
    await page.click('#chosen a[href*="/timeline?"]');
    await waitForTimeline(page);
    await page.waitForSelector('#details h2');
    // The page of the kernel that ran these GEMMs shows them in a roofline chart.
    await page.click('nav.pages a:has-text("Kernels")');
    await page.click('#named td a');
    await page.waitForSelector('#chosen .chart svg path', { state: 'attached' });
    expect(await page.locator('#chosen table a[href*="shape="]').count()).toBeGreaterThan(0);
    await page.close();
  });

  it('reports that a session was deleted while its page was open', async () => {
    importArchive(ui.setup, 'diagnosis/cpu_bound_host-fault.tgz');
    const id = ui.idOf('cpu_bound_host-fault');
    const page = await ui.open(`/s/${id}`);
    expect(inferscope(ui.setup, ['session', 'delete', id, '--yes']).status).toBe(0);
    expect((await page.reload())!.status()).toBe(404);
    expect(await page.textContent('main')).toContain(`there is no session "${id}"`);
    await page.close();
    ui.complaints.length = 0;
  });

  it('wrote no errors to the console', () => {
    expect(ui.complaints).toEqual([]);
  });
});

it('draws kernels with counters under the rooflines, with links to the kernels, with and without a timeline', async () => {
  const counters = fixture('ncu-2025.3.1-h200/ncu-tiny.raw.csv');
  const captures = [fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), counters, '--name', 'with-timeline'];
  expect(inferscope(ui.setup, ['import', ...captures]).status).toBe(0);
  expect(inferscope(ui.setup, ['import', counters, '--name', 'counters-only']).status).toBe(0);
  const page = await ui.open(ui.pathOf('with-timeline', '/kernels'));
  await waitForCharts(page);
  const { points } = JSON.parse((await page.locator('figure > script').first().textContent())!) as {
    points: { name: string; link?: string }[];
  };
  const [[kernelCount]] = ui.sql('with-timeline', 'SELECT count(DISTINCT kernel_name) FROM counters') as [
    [number],
  ];
  expect(new Set(points.map(({ link }) => link)).size).toBe(kernelCount);
  // Points are drawn above the roofline's lines, which ignore clicks.
  await page.locator('.chart svg path[fill="#0072b2"]').last().click();
  await page.waitForSelector('#chosen');
  const chosen = new URL(page.url()).searchParams.get('name')!;
  expect(
    points.map(({ link }) => new URLSearchParams(link?.split('?')[1]?.split('#')[0]).get('name')),
  ).toContain(chosen);
  const [[launches]] = ui.sql('with-timeline', `SELECT count(*) FROM kernels WHERE name = '${chosen}'`) as [
    [number],
  ];
  expect(Number((await page.innerText('#chosen dd >> nth=0')).replaceAll(/\s/g, ''))).toBe(launches);
  expect(await page.locator('#chosen .chart').count()).toBe(1);
  await page.click('#chosen a[href*="/timeline?"]');
  await waitForTimeline(page);
  const countersPage = await ui.open(ui.pathOf('counters-only'));
  await countersPage.click('nav.pages a:text-is("Kernels")');
  await waitForCharts(countersPage);
  expect(await countersPage.locator('#kernels table').last().locator('tbody tr').count()).toBeGreaterThan(0);
  await countersPage.close();
  await page.close();
});
