import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { captures } from './capture-files.js';
import { inferscope, place, tinyArgs } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

/** A folder with a name of 150 characters, and a capture and a model in it. */
const deep = join(setup.scratch, 'a-long-name-'.repeat(12), 'captures');
const capture = join(deep, 'capture.sqlite');
const model = join(deep, 'config.json');
/** A home in this folder, so that paths of sessions, reports and caches are long, too. */
const home = join(deep, 'home');

const run = (columns: number, ...args: string[]) => {
  const ran = inferscope(setup, args, { COLUMNS: String(columns), INFERSCOPE_HOME: home });
  expect(ran.status, ran.stderr).toBeLessThanOrEqual(1);
  return ran.stdout;
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
  ['profile', tinyArgs({ tiny: model })],
  ['explain', ['explain', 'long', '--limit', '20']],
  ['session show', ['session', 'show', 'long']],
  ['session list', ['session', 'list']],
  ['doctor', ['doctor']],
];

test.each(outputs)('%s fits the terminal width; a path is never split', (name, args) => {
  const widest: number[] = [];
  for (const columns of [80, 120]) {
    const lines = run(columns, ...args).split('\n');
    // Only paths, commands, code and single words may be wider, because they are copied.
    const whole = /a-long-name-|^ {4}inferscope \w|^ {17}(with|model)\b.*[(=]|^ *\S+$/;
    const prose = lines.filter((line) => !whole.test(line));
    widest.push(Math.max(...prose.map((line) => [...line].length)));
    expect(widest.at(-1), name).toBeLessThanOrEqual(columns);
    for (const line of lines.filter((text) => text.includes('a-long-name-')))
      expect(line, name).toContain('a-long-name-'.repeat(12));
  }
  // A wide terminal is used: some lines are longer than 80 columns.
  expect(widest[1], name).toBeGreaterThan(80);
});
