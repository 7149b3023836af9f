import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { captures } from './capture-files.js';
import { inferscope, createSetup, tinyProfileArgs, widestLine } from './run-cli.js';

const setup = createSetup();

/** A folder with a name of 150 characters, and a capture and a model in it. */
const deep = join(setup.scratch, 'a-long-name-'.repeat(12), 'captures');
const capture = join(deep, 'capture.sqlite');
const model = join(deep, 'config.json');
/** A home in this folder, so that the paths of sessions, reports and caches are long, too. */
const home = join(deep, 'home');

const run = (columns: number, ...args: string[]) => {
  const result = inferscope(setup, args, { COLUMNS: String(columns), INFERSCOPE_HOME: home });
  expect(result.status, result.stderr).toBeLessThanOrEqual(1);
  return result.stdout;
};

beforeAll(() => {
  mkdirSync(deep, { recursive: true });
  cpSync(captures.sqlite, capture);
  cpSync(setup.tiny, model);
  cpSync(join(setup.home, 'cache'), join(home, 'cache'), { recursive: true });
  run(80, 'import', '--quiet', capture, '--name', 'long');
});

const outputs: [string, string[]][] = [
  ['import', ['import', '--quiet', capture]],
  ['profile', tinyProfileArgs({ tiny: model })],
  ['explain', ['explain', 'long', '--limit', '20']],
  ['session show', ['session', 'show', 'long']],
  ['session list', ['session', 'list']],
  ['doctor', ['doctor']],
];

test.each(outputs)('%s fits the terminal width and never splits a path', (name, args) => {
  const widths: number[] = [];
  for (const columns of [80, 120]) {
    const lines = run(columns, ...args).split('\n');
    // Only paths, commands, code and single words may be wider, because they are copied.
    const unwrapped = /a-long-name-|^ {4}inferscope \w|^ {17}(with|model)\b.*[(=]|^ *\S+$/;
    const prose = lines.filter((line) => !unwrapped.test(line));
    widths.push(widestLine(prose.join('\n')));
    expect(widths.at(-1), name).toBeLessThanOrEqual(columns);
    for (const line of lines.filter((text) => text.includes('a-long-name-')))
      expect(line, name).toContain('a-long-name-'.repeat(12));
  }
  // In a wide terminal some lines are longer than 80 columns.
  expect(widths[1], name).toBeGreaterThan(80);
});
