import { describe, expect, it } from 'vitest';
import { servingDocumentSchema } from '../../../model/documents/serving.js';
import { servingCharts } from '../../charts/registry.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { themes } from '../../palette.js';
import { hostileText } from '../../test-profile.js';
import { testExplain } from '../../test-explain.js';
import { testServing } from '../../test-serving.js';
import { servingReport } from './serving.js';
import { clientSentence } from './summary.js';

const report = (document = testServing()): string =>
  servingReport(document, { clientScript: '"use strict";' });
const words = (html: string): string =>
  html
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&nbsp;|\u00a0/g, ' ')
    .replaceAll(/\s+/g, ' ');

describe('report of a load test', () => {
  it('the document it is made from is a valid one', () => {
    for (const kind of ['closed', 'poisson'] as const)
      expect(servingDocumentSchema.safeParse(testServing(kind)).error).toBeUndefined();
  });

  it('says saturation, the SLO, whose limit it was and what failed before anything else', () => {
    const text = words(report());
    const [saturation, slo, client, failures, loads] = [
      'It saturates at 16 users',
      'The highest load that meets the SLO is 16 users.',
      'Yes, at 64 users: the event loop was busy 97 % of the time.',
      '7 of 500 counted requests failed',
      'A row a load',
    ].map((part) => text.indexOf(part));
    expect([saturation, slo, client, failures, loads]).toEqual(
      [saturation, slo, client, failures, loads].toSorted((a, b) => a! - b!),
    );
    expect(saturation).toBeGreaterThan(0);
  });

  it('leads with three sentences, and the waterfall before its own sections', () => {
    const text = words(servingReport(testServing(), { clientScript: '', explain: testExplain() }));
    const places = [
      'A decode step takes 23.3 ms',
      'It saturates at 16 users',
      'a mean instance of each stage',
      'A row a load',
    ];
    const found = places.map((part) => text.indexOf(part));
    expect(found[0]).toBeGreaterThan(0);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
  });

  it('a client that kept up is said to', () => {
    const { points } = testServing().data;
    expect(clientSentence(points.filter(({ client }) => !client.bound))).toContain('No: ');
  });

  it('loads stand by their size, however the sweep ran', () => {
    expect(byLoad(testServing().data).map(levelLabel)).toEqual(
      ['1 user', '4 users', '16 users', '32 users', '64 users'].map((label) => label.replace(' ', '\u00a0')),
    );
    const { xAxis, series } = servingCharts.serving_latency.build({
      result: testServing().data,
      part: 'ttft',
      theme: themes.light,
      width: 900,
    }) as { xAxis: { data: string[] }; series: { name: string; data: number[] }[] };
    expect(xAxis.data).toHaveLength(5);
    const [p50] = series;
    expect(p50!.data).toEqual(p50!.data.toSorted((a, b) => a - b));
  });

  it('the SLO’s bound is drawn where the lines are, not where it would press them flat', () => {
    const { data } = testServing();
    const marks = (ttft_ms: number) => {
      const result = { ...data, slo: { ...data.slo!, ttft_ms } };
      const { series } = servingCharts.serving_latency.build({
        result,
        part: 'ttft',
        theme: themes.light,
        width: 900,
      }) as { series: { name: string }[] };
      return series.filter(({ name }) => name === 'marks').length;
    };
    expect([marks(200), marks(60_000)]).toEqual([1, 0]);
  });

  it('of an open load there is also the time since a request was due, and what was offered', () => {
    const parts = (html: string) => [...html.matchAll(/data-part="(\w+)"/g)].map(([, part]) => part);
    expect(parts(report())).toEqual(['ttft', 'tpot', 'itl', 'e2e', 'tokens', 'requests']);
    expect(parts(report(testServing('poisson')))).toContain('e2e_from_schedule');
    expect(words(report(testServing('poisson')))).toContain('offered');
  });

  it('failures by kind with an example that stays text', () => {
    const made = testServing();
    made.data.points[3]!.requests.failures[0]!.example = hostileText;
    const html = report(made);
    expect(html.match(/<script/g)?.length).toBe(2);
    expect(html).not.toContain('<img');
    expect(words(html)).toContain('stream cut 2 2.0 %');
    expect(words(html)).toContain('cancelled by us');
    expect(html).not.toMatch(/(?:src|href)="(?!#|data:)/);
  });

  it('has a table behind every chart', () => {
    for (const part of report().split('<figure>').slice(1))
      expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  });
});
