import { describe, expect, it } from 'vitest';
import { figure } from '../../../model/figure.js';
import { hostileText } from '../../test-profile.js';
import { testBench } from '../../test-bench.js';
import { benchReport } from './bench.js';
import { shownFlags } from './flags.js';
import { leadingAnswers } from './summary.js';

const clientScript = '"use strict";';
const report = (document = testBench()): string => benchReport(document, { clientScript });

/** What a reader sees or hears. */
const body = (html: string): string =>
  html
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll(/&nbsp;|\u00a0/g, ' ');
const words = (html: string): string =>
  body(html)
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');

describe('report of a benchmark', () => {
  it('begins with three answers, what lies between variants first', () => {
    const { data } = testBench();
    const answers = leadingAnswers(data);
    expect(answers.map(({ id }) => id)).toEqual(['variants', 'latency', 'batch_knee']);
    const text = words(report());
    const places = answers.map(({ answer }) => text.indexOf(answer));
    expect(places.every((place) => place > 0 && place < text.indexOf('Every point', 400))).toBe(true);
  });

  it('has an entry in the contents for every section and a table behind every chart', () => {
    const html = report();
    const ids = [...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id);
    const linked = [...html.matchAll(/<li><a href="#([\w-]+)">/g)].map(([, id]) => id);
    expect(linked).toEqual(['summary', ...ids]);
    expect(ids).toEqual([
      'answers',
      'points',
      'batch',
      'sequence',
      'variants',
      'spread',
      'machine',
      'efficiency',
      'telemetry',
      'environment',
      'definitions',
    ]);
    const figures = html.split('<figure>').slice(1);
    expect(figures).toHaveLength(2 + 2 + 3 + 3 + 5 + 1);
    for (const part of figures) expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  });

  it('a batch that did not fit is a row with its reason, and is no figure of the best', () => {
    const text = words(report());
    expect(text).toContain('out of memory');
    expect(text).toContain('CUDA out of memory. Tried to allocate 2.00 GiB');
    expect(text).toContain('batch 32, 128 in + 64 out, mode=cudagraph');
    expect(text).not.toContain('batch 32, 128 in + 64 out, mode=eager ±');
  });

  it('without a GPU nothing is drawn of it, and why is said', () => {
    const html = report(testBench({ gpu: false, variants: 1 }));
    expect(html).not.toContain('data-part="gpu_utilization"');
    expect(html).not.toContain('data-chart="bench_variants"');
    expect(words(html)).toContain('the engine runs on the CPU: there is no device to time');
  });

  it('flags of several points that differ in numbers are one, with how many say so', () => {
    const { data } = testBench({ variants: 1 });
    expect(shownFlags(data)).toEqual([
      {
        severity: 'warning',
        code: 'low_utilization',
        whose: '10 of 11 points',
        text: 'The GPU does nothing in 60 to 90 % of a decode step.',
      },
      {
        severity: 'good',
        code: 'good_utilization',
        whose: 'batch\u00a032, 128\u00a0in\u00a0+\u00a064\u00a0out',
        text: 'The device is kept busy.',
      },
    ]);
  });

  it('a utilisation over 100 % is an accounting fault where it stands', () => {
    const made = testBench();
    made.data.variants[0]!.points[0]!.model_utilization.decode_mbu = figure(1.2, 'share', 'test');
    expect(words(report(made))).toContain('120 % accounting fault');
  });

  it('nothing measured at all is a page that says so', () => {
    const made = testBench({ variants: 1 });
    made.data.session.status = 'interrupted';
    made.data.answers = [];
    made.data.variants[0]!.answers = [];
    made.data.variants[0]!.fits = [];
    made.data.variants[0]!.points = [];
    const text = words(report(made));
    expect(text).toContain('0 of 0 points were measured');
    expect(text).toContain('did not run to its end');
  });

  it('eight GPUs sampled for an hour are no megabytes of page', () => {
    const made = testBench();
    const points = Array.from({ length: 3000 }, (_, i): [number, number] => [i * 1200.123456, Math.sin(i)]);
    made.data.telemetry = Array.from({ length: 64 }, (_, i) => ({
      scope: `gpu${i % 8}`,
      metric: `m${Math.floor(i / 8)}`,
      unit: 'W',
      points,
    }));
    expect(report(made).length).toBeLessThan(1.3e6);
  });

  it('keeps hostile names text and refers to nothing outside itself', () => {
    const made = testBench();
    made.data.session.title = hostileText;
    made.data.variants[0]!.label = hostileText;
    made.data.engine.model = hostileText;
    const html = report(made);
    expect(html.match(/<script/g)?.length).toBe(2);
    expect(html).not.toContain('<img');
    expect(html).not.toMatch(/(?:src|href)="(?!#|data:)/);
    const data = /<script type="application\/json" id="profile-data">(.*?)<\/script>/s.exec(html)?.[1];
    expect(JSON.parse(data ?? '')).toEqual(JSON.parse(JSON.stringify(made)));
  });
});
