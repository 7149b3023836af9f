import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explainDocumentSchema } from '../../src/model/documents/explain.js';
import { packageRoot } from '../../src/model/installation.js';
import { captures } from './capture-files.js';
import { expectFailure, inferscope, place } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));

let imported = '';
beforeAll(() => {
  const ran = inferscope(setup, ['import', captures.sqlite, '--quiet', '--name', 'b1']);
  expect(ran.status, ran.stderr).toBe(0);
  imported = ran.stdout;
});

const explain = (...words: string[]) => inferscope(setup, ['explain', ...words]);
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));

describe('explain', () => {
  test('the summary of import starts with stages, waterfall and findings', () => {
    const places = [/^ +decode step +[\d.]+ ms/m, /launch call/, /expected gain: [\d.]+ ms/, /report:/].map(
      (pattern) => imported.search(pattern),
    );
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  test('prints one stage in the terminal; --fail-on exits with 1 for any finding of that severity', () => {
    const ran = explain('b1', '--stage', 'decode', '--limit', '1', '--fail-on', 'low');
    expect(ran.status, ran.stderr).toBe(1);
    expect(ran.stdout).toMatch(/Decode step: [\d.]+ ms .*n = 4\) under the\s+profiler/);
    expect(ran.stdout).not.toContain('  prefill ');
    // Code, commands to copy and single words are not wrapped.
    const whole = /^ {17}(with|model)\b|^ {4}inferscope |^ *\S+$/;
    const prose = ran.stdout.split('\n').filter((line) => !whole.test(line));
    expect(widest(prose.join('\n'))).toBeLessThanOrEqual(80);
  });

  test('--json is one document; the query of a bar runs with inferscope sql and sums to the bar', () => {
    const { stdout } = explain('--json');
    const { data } = explainDocumentSchema.parse(JSON.parse(stdout));
    const decode = data.stages.find(({ kind }) => kind === 'decode')!;
    const bar = decode.bars.find(({ id }) => id === 'launch_overhead')!;
    const answered = inferscope(setup, ['sql', '--session', 'b1', '--json', bar.sql!]);
    expect(answered.status, answered.stderr).toBe(0);
    const { rows } = (JSON.parse(answered.stdout) as { data: { rows: (string | number)[][] } }).data;
    expect(rows.reduce((sum, row) => sum + Number(row[2]), 0)).toBeCloseTo(bar.ms, 6);
  });

  test('--sql prints the query of an evidence, which can be run', () => {
    const query = explain('--sql', '1');
    expect(query.status, query.stderr).toBe(0);
    const answered = inferscope(setup, ['sql', '--session', 'b1', query.stdout]);
    expect(answered.status, answered.stderr).toBe(0);
  });

  test('--format md prints Markdown for a pull request', () => {
    const ran = explain('--format', 'md', '--limit', '0');
    expect(ran.status, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/^## inferscope explain: b1\n/);
    expect(ran.stdout).toContain('| `launch_overhead` |');
  });

  test('errors are reported in three parts', () => {
    const stage = expectFailure(explain('--stage', 'decoding', '--json'), 2, 'E_USAGE');
    expect(stage.what).toContain('--stage takes prefill, decode, mixed, ');
    expectFailure(explain('nothing-of-this-name', '--json'), 2, 'E_SESSION_NOT_FOUND');
    expect(expectFailure(explain('--rank', '7', '--json'), 2, 'E_USAGE').what).toContain('rank 7');
  });
});

describe('a file instead of a session', () => {
  const inClone = (...path: string[]) => join(packageRoot(), ...path);
  const sessions = () =>
    readdirSync(join(setup.home, 'sessions')).filter((name) => !name.startsWith('.')).length;

  test('imports a capture; rejects other files', () => {
    const before = sessions();
    const ran = explain(captures.sqlite, '--stage', 'decode');
    expect(ran.status, ran.stderr).toBe(0);
    expect(ran.stdout).toContain('launch call');
    expect(sessions()).toBe(before + 1);
    expectFailure(explain(inClone('package.json'), '--json'), 5, 'E_FORMAT_UNKNOWN');
    expectFailure(explain('nowhere.json.gz', '--json'), 2, 'E_SESSION_NOT_FOUND');
    expect(sessions()).toBe(before + 1);
  });
});
