import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { figure } from '../../model/figure.js';
import { testExplain } from '../test-explain.js';
import { bareProfile, hostileProfile, testProfile } from '../test-profile.js';
import { explanationTexts } from '../../render/terminal/view.js';
import { profileSummary } from './profile.js';
import { textTable } from './table.js';
import { hanging, textBar, textWidth, wrap } from './text.js';

const reportPath = '~/.local/share/inferscope/sessions/20261120-221503-llama-24m/derived/report.html';
const fault = () => {
  const made = testProfile();
  made.data.stages[1]!.mbu = figure(1.12, 'ratio', 'test');
  return made;
};

describe('profile summary', () => {
  it.each([
    ['whole', testProfile()],
    ['bare', bareProfile()],
    ['hostile', hostileProfile()],
    ['accounting fault', fault()],
  ])(
    '%s: no line but the path passes the columns there are, at most 120, nothing steers the terminal',
    (_, made) => {
      for (const width of [80, 200, 60]) {
        const text = stripVTControlCharacters(profileSummary(made, { reportPath, width }));
        for (const line of text.split('\n')) {
          // One word is whole whatever its length.
          if (!line.includes(reportPath) && line.trim().includes(' '))
            expect(textWidth(line), line).toBeLessThanOrEqual(Math.min(120, width));
        }
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u00a0]/u);
      }
    },
  );

  it('says in words, without colour, everything that colour says', () => {
    const text = stripVTControlCharacters(profileSummary(testProfile(), { reportPath, width: 80 }));
    expect(text).toMatch(
      /^ {2}prefill +[\d.]+ ms +[\d ]+ tok\/s {2}MFU \d+ % +MBU +\d+ % {2}compute-bound$/m,
    );
    expect(text).toMatch(/^ {2}decode +[\d.]+ ms\/step +[\d ]+ tok\/s .* memory-bound$/m);
    expect(text).toMatch(/^ {2}end to end +\d+ ms ± \d+(?:\.\d)? \(95 %, n = 12\)/m);
    expect(text).toMatch(/^ {4}roofline +[\d.]+ ms +\d+ % {2}█+$/m);
    expect(text).toContain('warning: 1 of 12 repeats');
    expect(text.trimEnd().endsWith(reportPath)).toBe(true);
  });

  it('leads with three sentences and the waterfall, then findings, then figures', () => {
    const explain = testExplain();
    const text = stripVTControlCharacters(
      profileSummary(testProfile(), { reportPath, width: 80, explanation: explanationTexts(explain, 80) }),
    ).replaceAll(/\s+/g, ' ');
    const order = [
      explain.data.sentences[0]!,
      explain.data.sentences[2]!,
      'Where a decode step goes',
      'change: ',
      ' compute-bound ',
      'end to end',
      'Session ',
    ].map((one) => text.indexOf(one.replaceAll(/\s+/g, ' ')));
    expect(order.every((at) => at >= 0)).toBe(true);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it('calls MBU over 100 % an accounting fault and missing figures by their reason', () => {
    const faulty = profileSummary(fault(), { reportPath: null, width: 80 });
    expect(stripVTControlCharacters(faulty)).toMatch(/^ {2}decode .* MBU +112 %! +memory-bound$/m);
    expect(faulty).toContain('no hardware can reach');
    const bare = stripVTControlCharacters(profileSummary(bareProfile(), { reportPath: null, width: 80 }));
    expect(bare.replaceAll(/\s+/g, ' ')).toContain(
      'missing: prefill MFU, prefill MBU, decode MFU, decode MBU: no roofline was measured on this machine',
    );
  });
});

describe('text', () => {
  it('wraps at spaces, never between number and unit, and leaves a longer word whole', () => {
    expect(wrap('the whole takes 4.40\u00a0ms a step', 20)).toEqual([
      'the whole takes',
      '4.40\u00a0ms a step',
    ]);
    expect(wrap('at /abc/defgh ij', 4)).toEqual(['at', '/abc/defgh', 'ij']);
    expect(hanging('- ', 'one two three', 9)).toEqual(['- one two', '  three']);
  });

  it('bars: full width for the largest, a sliver for a small part', () => {
    expect(textBar(10, 10, 8)).toBe('████████');
    expect(textBar(0.005, 10, 8)).toBe('▏');
    expect(textBar(0, 10, 8)).toBe('');
    expect(textBar(-1, 10, 8)).toBe('');
  });

  it('a table keeps its width by cutting the flexible column', () => {
    const table = textTable(
      [
        { head: 'name', flexible: true },
        { head: 'ms', align: 'right' },
      ],
      [
        ['/model/layers.0/self_attn/q_proj/MatMul', '0.410'],
        ['b', '12.5'],
      ],
      { width: 30 },
    );
    expect(table.split('\n')).toEqual([
      '  name                      ms',
      '  /model/layers.0/self…  0.410',
      '  b                       12.5',
    ]);
  });
});
