import { describe, expect, it } from 'vitest';
import { textTable } from './table.js';

describe('textTable', () => {
  const columns = [
    { head: 'name' },
    { head: 'min', leaveOut: 2 },
    { head: 'mean' },
    { head: 'samples', leaveOut: 1 },
  ];
  const rows = [['busy', '10.0 %', '50.0 %', '61']];

  it('drops columns in their order, no more than necessary, and names them', () => {
    // Two of indent, cells of 4, 6, 6 and 7 and two between them: 31.
    expect(textTable(columns, rows, { width: 31 })).toBe(
      '  name  min     mean    samples\n  busy  10.0 %  50.0 %  61',
    );
    expect(textTable(columns, rows, { width: 30 })).toBe(
      '  name  min     mean\n  busy  10.0 %  50.0 %\n  (no room at 30 columns:\n  samples)',
    );
    expect(textTable(columns, rows, { width: 21 }).split('\n').slice(0, 2)).toEqual([
      '  name  mean',
      '  busy  50.0 %',
    ]);
    expect(textTable(columns, rows, { width: 21 })).toMatch(/samples,\s+min\)$/);
  });

  it('cuts names with equal starts in the middle, others at the end; down to a minimum before columns are dropped', () => {
    const one = [{ head: 'metric', flexible: 16 }, { head: 'value' }, { head: 'n', leaveOut: 0 }];
    const family = ['server_prefill_throughput.mean', 'server_prefill_throughput.p99'];
    const row = (name: string) => [name, '1.25 ms', '12'];
    expect(textTable(one, family.map(row), { width: 32 }).split('\n').slice(1)).toEqual([
      '  server_p…put.mean  1.25 ms  12',
      '  server_p…hput.p99  1.25 ms  12',
    ]);
    expect(textTable(one, [row('server_prefill_throughput')], { width: 32 }).split('\n')[1]).toBe(
      '  server_prefill_t…  1.25 ms  12',
    );
  });

  it('folds names that only differ in their middle', () => {
    const names = ['aiperf.active_decode_throughput_per_user', 'aiperf.active_decode_concurrency_per_user'];
    const text = textTable(
      [{ head: 'metric', flexible: true }, { head: 'mean' }],
      names.map((name) => [name, '1.25']),
      { width: 28 },
    );
    const lines = text.split('\n').slice(1);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(28);
    expect(lines.map((line) => line.replace('1.25', '').trim()).join('')).toBe(names.join(''));
  });

  it('exceeds the width if nothing can be dropped', () => {
    expect(textTable([{ head: 'name' }], [['a long cell']], { width: 5 })).toBe('  name\n  a long cell');
  });
});

it('a table with columns that cannot be dropped has heads of several lines', () => {
  const columns = [{ head: 'load' }, { head: 'prefix cache hits' }, { head: 'send lag p99' }];
  expect(textTable(columns, [['4 users', '0 %', '28.4 µs']], { width: 30 }).split('\n')).toEqual([
    '  load     prefix  send',
    '           cache   lag p99',
    '           hits',
    '  4 users  0 %     28.4 µs',
  ]);
});

it('a word that is wider than its wrapped column is continued on the next line', () => {
  const columns = [{ head: 'finding', flexible: 12, lines: true }, { head: 'now' }];
  const text = textTable(columns, [['Synchronization: the host waits', 'gone']], { width: 18 });
  expect(text.split('\n')).toEqual([
    '  finding     now',
    '  Synchroniz  gone',
    '  ation:',
    '  the host',
    '  waits',
  ]);
});
