import { describe, expect, it } from 'vitest';
import { formatQuantity, formatSigned } from '../../src/vocabulary/format.js';
import { kernelLabel } from '../../src/vocabulary/kernel-label.js';
import { fixture } from '../cli/capture-files.js';
import { inferscope } from '../cli/run-cli.js';
import { importArchive, UiPages } from './ui-pages.js';
import { unfold, waitForCharts } from './report-page.js';

const ui = new UiPages();

const records = new UiPages((setup) => {
  importArchive(setup, 'memory-torch2.11-h200/llama-2-7b.tgz', 'small');
  importArchive(setup, 'memory-torch2.11-h200/llama-3.1-8b-two-gpus.tgz', 'large');
  importArchive(setup, 'load-tests-cpu/prompts-32.tgz', 'short');
  importArchive(setup, 'load-tests-cpu/prompts-96.tgz', 'long');
  importArchive(setup, 'joined-2h100/session.inferscope.tar.gz', 'h100');
  importArchive(setup, 'hot-expert-2h200/hot.tgz', 'h200');
  for (const name of ['first', 'second']) {
    const file = fixture('benchmark-results-from-schema/vllm-serve-detailed.json');
    expect(inferscope(setup, ['import', file, '--name', name]).status).toBe(0);
  }
});

describe('comparisons in inferscope ui', () => {
  it('compares two sessions and puts their steps on one axis', async () => {
    const page = await ui.open('/');
    const listed = await page.locator('tbody td a').allInnerTexts();
    for (const box of await page.locator('input[name=s]').all()) await box.check();
    await page.click('button[type=submit]');
    await waitForCharts(page);
    const names = (await page.innerText('h1')).split(' → ');
    // The list is newest first, a comparison oldest first.
    expect(names).toEqual(listed.toReversed());
    await page.click('nav.pages a:text-is("Swap")');
    await expect.poll(() => page.innerText('h1')).toBe(listed.join(' → '));
    await page.goBack();
    await waitForCharts(page);
    expect(await page.locator('header dd a[href^="/s/"]').allInnerTexts()).toEqual(names);
    // The page has the bars and the changed kernels of `session compare`.
    const { data } = JSON.parse(inferscope(ui.setup, ['session', 'compare', ...names, '--json']).stdout) as {
      data: {
        waterfalls: { bars: { label: string; values: number[] }[] }[];
        kernels: { name: string; values: unknown[] }[];
      };
    };
    await unfold(page);
    const rows = (await page.locator('#waterfalls tbody tr').allInnerTexts()).map((text) =>
      text.replaceAll('\u00a0', ' '),
    );
    expect(rows.length).toBeGreaterThan(5);
    for (const { label, values } of data.waterfalls[0]!.bars) {
      const row = rows.find((text) => text.startsWith(`${label}\t`))?.split('\t');
      if (Math.max(...values) > 0.001)
        expect(row?.slice(1, 3), label).toEqual(values.map((ms) => formatQuantity(ms, 'ms')));
    }
    expect(await page.locator('#waterfalls [data-chart=waterfall] svg').count()).toBe(3);
    const changed = await page.locator('#kernels tbody td:first-child').allInnerTexts();
    expect(changed.toSorted()).toEqual(data.kernels.map(({ name }) => kernelLabel(name)).toSorted());
    expect(await page.locator('#kernels a[href*="/kernels?name="]').count()).toBe(2 * changed.length);
    // The median steps start together and fit on the time axis.
    const { dur_ns, lanes, spans } = JSON.parse(
      (await page.locator('#steps figure > script').first().textContent())!,
    ) as { dur_ns: number; lanes: string[]; spans: [number, number, number, number][] };
    expect(lanes).toEqual(['A · GPU', 'B · GPU', 'A · API calls', 'B · API calls']);
    expect(new Set(spans.map(([lane]) => lane)).size).toBe(4);
    expect(Math.max(...spans.map(([, start, ns]) => start + ns))).toBeLessThanOrEqual(dur_ns);
    expect(Math.min(...spans.map(([, start]) => start))).toBeGreaterThanOrEqual(0);
    expect(await page.locator('#steps a[href*="/timeline?"]').count()).toBe(2);
    expect(await page.innerText('#steps')).toContain('those of the waterfalls are without it');
    // The same step in both sessions.
    await page.click('#steps a:text-is("3")');
    await page.waitForURL(/step=3/);
    await waitForCharts(page);
    expect((await page.innerText('#steps')).match(/step 3 of 6/g)).toHaveLength(2);
    const [[thirdStart]] = ui.sql(
      'launch_bound_decode-fault',
      "SELECT start_ns FROM stages WHERE execution_id = 'nsys' AND kind = 'decode' ORDER BY start_ns LIMIT 1 OFFSET 2",
    ) as [[number]];
    const links: number[] = [];
    for (const link of await page.locator('#steps a[href*="/timeline?"]').all())
      links.push(
        Number(new URL((await link.getAttribute('href'))!, ui.server.origin).searchParams.get('start')),
      );
    expect(links).toContain(thirdStart);
    // The kernels are drawn relative to the start of their step.
    const [[kernelCount, startSum]] = ui.sql(
      'launch_bound_decode-fault',
      `SELECT count(*), sum(start_ns - ${thirdStart})::DOUBLE FROM kernels WHERE execution_id = 'nsys' AND start_ns >= ${thirdStart}
       AND start_ns < (SELECT min(start_ns) FROM stages WHERE execution_id = 'nsys' AND kind = 'decode' AND start_ns > ${thirdStart})`,
    ) as [[number, number]];
    const thirdStep = JSON.parse((await page.locator('#steps figure > script').first().textContent())!) as {
      lanes: string[];
      spans: [number, number, number, number][];
    };
    const faultLane = thirdStep.lanes.indexOf(`${names[0]!.endsWith('fault') ? 'A' : 'B'} · GPU`);
    const faultSpans = thirdStep.spans.filter(([lane]) => lane === faultLane);
    expect(faultSpans).toHaveLength(kernelCount);
    expect(faultSpans.reduce((sum, [, start]) => sum + start, 0) / startSum).toBeCloseTo(1, 6);
    await page.close();
  });

  it('redraws the waterfalls under what-if switches', async () => {
    const page = await ui.open(ui.pathOf('launch_bound_decode-fault'));
    await waitForCharts(page);
    const waterfalls = page.locator('#waterfall [data-chart=waterfall] svg');
    const before = await waterfalls.count();
    // Only the waterfalls are replaced; the page is not loaded again.
    await page.evaluate('globalThis.stays = true');
    await page.click('#switches a:has-text("cudagraph")');
    await page.waitForSelector('#switches a[aria-current]:has-text("cudagraph")');
    // The predicted waterfall and the differences, above the measured one.
    await expect.poll(() => waterfalls.count(), { timeout: 20_000 }).toBe(before + 2);
    expect(await page.locator('#waterfall h3').allInnerTexts()).toHaveLength(2);
    expect(await page.textContent('#waterfall')).toContain('predicted with cudagraph');
    expect(await page.textContent('#waterfall h3')).toMatch(/\d\sms/);
    await page.click('#switches a:has-text("batch-size=8")');
    await page.waitForSelector('#switches a[aria-current]:has-text("batch-size=8")');
    await page.click('#switches a:has-text("batch-size=32")');
    await page.waitForSelector('#switches a[aria-current]:has-text("batch-size=32")');
    expect(new URL(page.url()).searchParams.get('what-if')).toBe('cudagraph,batch-size=32');
    expect(await page.locator('#switches a[aria-current]').count()).toBe(2);
    await page.goBack();
    await page.waitForSelector('#switches a[aria-current]:has-text("batch-size=8")');
    await page.click('#switches a:has-text("as measured")');
    await expect.poll(() => waterfalls.count(), { timeout: 20_000 }).toBe(before);
    expect(await page.evaluate('globalThis.stays')).toBe(true);
    await page.close();
  });

  it('wrote no errors to the console', () => {
    expect(ui.complaints).toEqual([]);
  });
});

describe('comparisons of sessions without a timeline', () => {
  const compare = (base: string, now: string) =>
    records.open(`/compare?s=${records.idOf(base)}&s=${records.idOf(now)}`);

  it('compares memory profiles by the components of the command', async () => {
    const page = await compare('small', 'large');
    const { data } = JSON.parse(
      inferscope(records.setup, ['memory', 'compare', 'small', 'large', '--json']).stdout,
    ) as { data: { headlines: string[]; components: unknown[] } };
    const lead = (await page.innerText('header')).replaceAll('\u00a0', ' ');
    for (const headline of data.headlines) expect(lead).toContain(headline.replaceAll('\u00a0', ' '));
    expect(await page.locator('#components tbody tr').count()).toBe(data.components.length);
    await page.close();
  });

  it('compares results by the metrics of the command', async () => {
    const page = await compare('first', 'second');
    const { data } = JSON.parse(
      inferscope(records.setup, ['bench', 'compare', 'first', 'second', '--json']).stdout,
    ) as { data: { headline: string; comparisons: unknown[] } };
    expect(await page.innerText('header')).toContain(data.headline);
    expect(await page.locator('#metrics tbody tr').count()).toBe(data.comparisons.length);
    // A chart per unit, with a bar per side and metric.
    await waitForCharts(page);
    const bars = await page.locator('#charts [data-chart=bars] svg path[fill^="#"]').count();
    expect(bars).toBeGreaterThanOrEqual(2 * data.comparisons.length);
    await page.close();
  });

  it('compares two load tests load by load', async () => {
    const page = await compare('short', 'long');
    const { data } = JSON.parse(
      inferscope(records.setup, ['bench', 'compare', 'short', 'long', '--json']).stdout,
    ) as {
      data: {
        comparisons: {
          point: string;
          unit: string;
          base: number | null;
          now: number;
          change: number | null;
        }[];
        differences: { label: string; baseline: string; current: string }[];
      };
    };
    const points = [...new Set(data.comparisons.map(({ point }) => point))];
    expect(points).toHaveLength(3);
    expect(await page.locator('#metrics table').count()).toBe(points.length);
    // Each table has its load as a heading, so its caption is only for screen readers.
    const texts = async (selector: string) =>
      (await page.locator(selector).allTextContents()).map((text) => text.replaceAll('\u00a0', ' '));
    expect(await texts('#metrics h3')).toEqual(await texts('#metrics caption.unseen'));
    const rows = await page.locator('#metrics tbody tr').allInnerTexts();
    expect(rows).toHaveLength(data.comparisons.length);
    for (const [index, { unit, base, now, change }] of data.comparisons.entries()) {
      const cells = rows[index]!.replaceAll('\u00a0', ' ').split('\t');
      if (base !== null) expect(cells[1]).toBe(formatQuantity(base, unit));
      expect(cells).toContain(formatQuantity(now, unit));
      if (change !== null) expect(cells).toContain(formatSigned(change, 'ratio'));
    }
    expect(await page.innerText('#notes')).toContain('geometric means');
    await waitForCharts(page);
    // Charts have the loads that both sides have.
    const lines = JSON.parse((await page.locator('#charts figure > script').first().textContent())!) as {
      x: { categories: string[] };
    };
    expect(lines.x.categories).toHaveLength(2);
    const differences = (await page.locator('#differences tbody tr').allInnerTexts()).map((row) =>
      row.split('\t'),
    );
    expect(differences).toEqual(
      data.differences.map(({ label, baseline, current }) => [label, baseline, current]),
    );
    expect(differences).toEqual([['input length', '32', '96']]);
    await page.close();
  });

  it('separates differences of the environment from facts that one session lacks', async () => {
    const page = await compare('h100', 'h200');
    const { data } = JSON.parse(
      inferscope(records.setup, ['session', 'compare', 'h100', 'h200', '--json']).stdout,
    ) as {
      data: { environment: { label: string; values: (string | null)[]; could_explain: string | null }[] };
    };
    const labels = (isRecorded: boolean) =>
      data.environment
        .filter(({ values }) => values.every((value) => value !== null) === isRecorded)
        .map(({ label }) => label);
    const lists = page.locator('#environment dl');
    expect(await lists.nth(0).locator('dt').allInnerTexts()).toEqual(labels(true));
    expect(await page.innerText('#environment h3')).toBe('Recorded on one side only');
    expect(await lists.nth(1).locator('dt').allInnerTexts()).toEqual(labels(false));
    const gpu = lists.nth(0).locator('dt:text-is("GPU name") + dd');
    expect(await gpu.innerText()).toBe('NVIDIA H100 80GB HBM3 → NVIDIA H200 (another GPU)');
    expect(labels(true)).toContain('GPU 1 SM clock');
    expect(labels(false)).toContain('CUDA runtime');
    // Parts of a stage are indented below it.
    expect(await page.locator('#stages td:first-child').allTextContents()).toContain(
      '\u00a0'.repeat(4) + 'idle',
    );
    await page.close();
  });

  it('says what two sessions without anything in common have', async () => {
    const page = await compare('small', 'first');
    expect(await page.innerText('main')).toMatch(/no load or batch in common/);
    await page.close();
  });
});
