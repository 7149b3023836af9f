import { describe, expect, test } from 'vitest';
import type { Document } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { textWidth } from '../render/terminal/text.js';
import { testExplain, testFinding } from './test-explain.js';
import { hostileText } from './test-profile.js';
import type { FindingOptions } from './findings.js';
import { explainView } from './explain.js';

const explainText = (explain: Document<ExplainResult>, options: FindingOptions = {}): string =>
  terminalView(explainView(explain, options), { width: 80, level: 2 });
const explainMarkdown = (explain: Document<ExplainResult>): string => markdownView(explainView(explain));

const widest = (text: string): number => Math.max(...text.split('\n').map(textWidth));

test('findings that another one hides follow it, also with details', () => {
  const hidden = testFinding({ id: 'a', title: 'Hidden', hidden_by: 'b' });
  const text = explainText(
    testExplain({ findings: [hidden, testFinding({ id: 'b', title: 'Limit', severity: 'medium' })] }),
  );
  expect(text.indexOf('1  Limit')).toBeGreaterThan(0);
  expect(text.indexOf('2  Hidden')).toBeGreaterThan(text.indexOf('1  Limit'));
  expect(text).not.toContain('Ordered by affected time');
});

describe('explain in the terminal', () => {
  const text = explainText(testExplain());

  test('bars sum to the measured time; smaller ones are one line', () => {
    expect(text).toContain('Decode step: 23.3 ms ± 0.3 (95 %, n = 64) under the profiler');
    const bars = [...text.matchAll(/^ {4}(\S.*?) +(−?\d+\.\d+) ms/gm)].map(([, id, ms]) => [
      id,
      Number(ms!.replace('−', '-')),
    ]);
    const measured = bars.find(([id]) => id === 'measured')![1] as number;
    const sum = bars.filter(([id]) => id !== 'measured').reduce((total, [, ms]) => total + (ms as number), 0);
    // Each is rounded to the digits that ± 0.3 supports.
    expect(Math.abs(sum - measured)).toBeLessThan(0.05 * bars.length);
    // serial and the embedding are below 1 %.
    expect(text).toMatch(/2 smaller +<0\.1 ms/);
    expect(text).toMatch(/launch call +9\.8 ms +42 % {2}█+ +924 gaps/);
    expect(text).toMatch(/synchronization +0\.4 ms .*\n +cudaStreamSynchronize\n/);
  });

  test('findings have their evidence, the number of their query, change, gain and check', () => {
    expect(text).toMatch(/1 {2}Launch-bound: the GPU is idle 91.5 % of every decode step\n/);
    expect(text).toContain('924 launches per step on 22 layers [sql 1]');
    expect(text).toContain('prints the query that evidence marks as [sql 1]');
    expect(text).toContain('torch.compile(model, mode="reduce-overhead")');
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      '20.9 ms per decode step (19.5 to 21.4 ms), leaving 2.4 ms. Assumption:',
    );
    expect(text).toContain('included in it, or visible only after that change');
  });

  test('a finding names the bars with its time, each as in the waterfall', () => {
    const inBars = explainText(
      testExplain({ findings: [testFinding({ bars: ['launch_overhead', 'host.program'] })] }),
    )
      .replaceAll(/\s+/g, ' ')
      .match(/in bars: (.*?) cause:/)![1]!;
    expect(inBars).toContain('launch call 42 % (924 gaps)');
  });

  test('lines fit 80 columns, and names cannot control the terminal', () => {
    expect(widest(text)).toBeLessThanOrEqual(80);
    const hostile = `\u001b[2J${hostileText}`;
    const bad = testExplain({ findings: [testFinding({ title: hostile, check: hostile })] });
    const badText = explainText(bad);
    expect(badText).not.toContain('\u001b');
    expect(widest(badText)).toBeLessThanOrEqual(80);
  });

  test('lists the first of many ranks and a range of the others', () => {
    const ranksOf = (count: number, recorded?: number, lessMs = 0.01): string => {
      const explain = testExplain();
      const [stage] = explain.data.stages;
      stage!.ranks = Array.from({ length: count }, (_, rank) => ({
        rank,
        device: 0,
        measured_ms: 23.25 - rank * lessMs,
      }));
      if (recorded !== undefined) stage!.ranks_recorded = recorded;
      return /Time by rank[^.]*?(?:\d\.\d[^.]*)*\.\n/.exec(explainText(explain))![0].replaceAll(/\s+/g, ' ');
    };
    expect(ranksOf(8)).toContain('rank 7 (GPU 0) 23.2 ms.');
    const many = ranksOf(100, undefined, 0.2);
    expect(many).toContain('Time by rank: rank 0 (GPU 0) 23.3 ms, rank 1');
    expect(many).toMatch(/rank 3 \(GPU 0\) 22\.\d ms; the other 96 take /);
    expect(many.length).toBeLessThan(200);
    expect(ranksOf(8, undefined, 0)).toBe('Time by rank: all 8 take 23.3 ms. ');
    // Only rank 0 takes longer than the others.
    expect(ranksOf(11, 16)).toBe(
      'Time by rank, 11 of 16 compared: rank 0 (GPU 0) 23.3 ms; the other 10 take 23.1 ms to 23.2 ms. ',
    );
    expect(ranksOf(922)).toContain('Time by rank: rank 0 (GPU 0) 23.3 ms; the other 921 take 14.0 ms');
  });

  test('limits the number of findings, and says so if there are none', () => {
    const firstOnly = explainText(testExplain(), { limit: 1 });
    expect(firstOnly).toContain('… and 1 more (--limit)');
    expect(explainText(testExplain({ findings: [] }))).toContain(
      'The rules found nothing significant to change.',
    );
    // Time without a known cause is not "nothing significant".
    const unexplained = testExplain({ findings: [] });
    const [stage] = unexplained.data.stages;
    stage!.bars = [{ ...stage!.bars[0]!, id: 'unattributed', ms: 9, share: 0.33 }];
    expect(explainText(unexplained).replaceAll('\u00a0', ' ')).toContain(
      'The session does not show the cause of 33 % of the decode step.',
    );
  });
});

describe('explain as Markdown', () => {
  test('has sentences, a table per stage, and findings that open', () => {
    const text = explainMarkdown(testExplain());
    expect(text).toMatch(
      /^## inferscope explain: llm-b1\n\nRoofline peaks: [^\n]+\n\n- \*\*decode step\*\*: 23\.3 ms, profiled · /,
    );
    expect(text).toContain(
      '| launch call | 9.80 ms | 42 % | 924 | high | inside the launching API call | `launch_overhead` |',
    );
    expect(text).toContain(
      '<summary><b>1. Launch-bound: the GPU is idle 91.5 % of every decode step</b> (high)',
    );
    expect(text).toContain('```\nSELECT 924 AS launches\n```');
  });

  test('a line break or an escape sequence in a title stays inside its line', () => {
    const text = explainMarkdown(
      testExplain({ findings: [testFinding({ title: 'a\n\n# heading\u001b[2J' })] }),
    );
    expect(text).not.toMatch(/^# heading/m);
    expect(text).not.toContain('\u001b');
    expect(text).toContain('<summary><b>1. a # heading [2J</b>');
  });

  test('names cannot become mark-up, mentions or the end of a code fence', () => {
    const title = '<img src=x> | @team [x](http://y) `code`';
    const finding = testFinding({ title, cause: title });
    finding.evidence[0]!.sql = 'SELECT 1 -- ```\n</details>';
    const text = explainMarkdown(testExplain({ findings: [finding] }));
    expect(text).not.toContain('<img');
    expect(text).not.toContain('@team');
    expect(text).toContain('````\nSELECT 1 -- ```');
  });
});
