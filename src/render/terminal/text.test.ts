import { describe, expect, it } from 'vitest';
import { textTable } from './table.js';
import { hanging, textBar, wrap } from './text.js';

describe('text', () => {
  it('wraps at spaces, never between number and unit, and keeps a longer word whole', () => {
    for (const space of [' ', '\u00a0'])
      expect(wrap(`the whole takes 4.40${space}ms per step`, 20)).toEqual([
        'the whole takes',
        '4.40 ms per step',
      ]);
    expect(wrap('at /abc/defgh ij', 4)).toEqual(['at', '/abc/defgh', 'ij']);
    expect(hanging('- ', 'one two three', 9)).toEqual(['- one two', '  three']);
  });

  it('bars: full width for the largest, a thin bar for a small part', () => {
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
