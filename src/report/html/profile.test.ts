import { describe, expect, it } from 'vitest';
import { figure } from '../../model/figure.js';
import { formatFigure } from '../format.js';
import { bareProfile, hostileProfile, testProfile } from '../test-profile.js';
import { headlineSentences } from '../words.js';
import { profileReport } from './profile.js';

const clientScript = '"use strict";';
const report = (document = testProfile()): string => profileReport(document, { clientScript });

/** The page without its data block, style and script: what a reader sees or hears. */
const body = (html: string): string =>
  html
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll('&nbsp;', '\u00a0');

describe('profile report', () => {
  it('begins with the three sentences and the headline figures', () => {
    const made = testProfile();
    const text = body(report(made));
    const places = headlineSentences(made.data).map((sentence) => text.indexOf(sentence));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(Math.max(...places)).toBeLessThan(text.indexOf('id="time"'));
    const plainText = text.replaceAll(/<[^>]+>/g, '');
    for (const shown of [made.data.latency.ttft_ms, made.data.latency.decode_tokens_per_s]) {
      expect(plainText).toContain(formatFigure(shown));
    }
  });

  it('has an entry in the contents for every section and a table behind every chart', () => {
    const html = report();
    const ids = [...html.matchAll(/<section id="([\w-]+)"/g)].map(([, id]) => id);
    const linked = [...html.matchAll(/<li><a href="#([\w-]+)">/g)].map(([, id]) => id);
    expect(ids).toContain('memory');
    expect(linked).toEqual(['summary', ...ids]);
    const figures = html.split('<figure>').slice(1);
    expect(figures.length).toBeGreaterThanOrEqual(11);
    for (const part of figures) expect(part.split('</figure>')[0]).toMatch(/<details>.*<table/s);
  });

  it('the bars of the table are those of the result, measured last', () => {
    const made = testProfile();
    const decode = made.data.stages[1];
    const table = report(made).split('<caption>One decode step: the bars sum')[1]?.split('</table>')[0];
    const ids = [...(table ?? '').matchAll(/<code>([\w.]+)<\/code>/g)].map(([, id]) => id);
    expect(ids).toEqual(decode?.bars.map((bar) => bar.id));
    expect(table).toContain('<strong>measured</strong>');
  });

  it('says where something is missing and why, and draws no empty chart', () => {
    const text = body(report(bareProfile()));
    expect(text).toContain('roofline was not measured');
    expect(text).toContain('Memory was not sampled');
    expect(text).toContain('no roofline was measured on this machine');
    expect(text).toContain('The operator trace was cut off');
    const drawn = [...text.matchAll(/data-chart="(\w+)"/g)].map(([, name]) => name);
    expect(drawn).toEqual(['repeats', 'steps']);
  });

  it('shows a utilisation over 100 % as an accounting fault, at the top and where it stands', () => {
    const made = testProfile();
    made.data.stages[1]!.mbu = figure(1.12, 'ratio', 'test');
    const text = body(report(made));
    expect(text.match(/accounting fault/g)?.length).toBeGreaterThanOrEqual(3);
    expect(text.indexOf('no hardware can reach')).toBeLessThan(text.indexOf('id="time"'));
  });

  it('keeps hostile names text, in elements, attributes and data', () => {
    const html = report(hostileProfile());
    expect(html.match(/<script/g)?.length).toBe(2);
    expect(html).not.toContain('<img');
    expect(html).not.toContain('<!--');
    expect(html).not.toMatch(/[\u2028\u2029](?=[^<]*<\/script>)/);
    const data = /<script type="application\/json" id="profile-data">(.*?)<\/script>/s.exec(html)?.[1];
    expect(JSON.parse(data ?? '')).toEqual(hostileProfile());
  });

  it('refers to nothing outside itself and its policy forbids it', () => {
    const html = report();
    expect(html).not.toMatch(/(?:src|href)="(?!#|data:)/);
    expect(html).not.toMatch(/url\(|@import|https?:/);
    expect(html).toMatch(
      /http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; script-src &#39;sha256-/,
    );
  });
});
