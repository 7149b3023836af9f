import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { explainDocumentSchema } from '../../src/model/documents/explain.js';
import { packageRoot } from '../../src/model/installation.js';
import { captures, writeChangedSqlite } from './capture-files.js';
import { expectFailure, inferscope, createSetup, widestLine, listSessions } from './run-cli.js';

const setup = createSetup();

let importSummary = '';
beforeAll(() => {
  const result = inferscope(setup, ['import', captures.sqlite, '--quiet', '--name', 'b1']);
  expect(result.status, result.stderr).toBe(0);
  importSummary = result.stdout;
});

const explain = (...args: string[]) => inferscope(setup, ['explain', ...args]);

describe('explain', () => {
  test('the summary of import has stages, waterfall and findings before the report', () => {
    const positions = [
      /^ +decode step +[\d.]+ ms/m,
      /launch call/,
      /expected gain: [\d.]+ ms/,
      /report:/,
    ].map((pattern) => importSummary.search(pattern));
    expect(positions.every((position) => position > 0)).toBe(true);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  });

  test('prints one stage in the terminal; --fail-on exits with 1 for any finding of that severity', () => {
    const result = explain('b1', '--stage', 'decode', '--limit', '1', '--fail-on', 'low');
    expect(result.status, result.stderr).toBe(1);
    expect(result.stdout).toMatch(/Decode step: [\d.]+ ms .*n = 4\) under the\s+profiler/);
    expect(result.stdout).not.toContain('  prefill ');
    // Code, commands to copy and single words are not wrapped.
    const unwrapped = /^ {17}(with|model)\b|^ {4}inferscope |^ *\S+$/;
    const prose = result.stdout.split('\n').filter((line) => !unwrapped.test(line));
    expect(widestLine(prose.join('\n'))).toBeLessThanOrEqual(80);
  });

  test('--json is one document; the query of a bar runs with inferscope sql and sums to the bar', () => {
    const { stdout } = explain('--json');
    const { data } = explainDocumentSchema.parse(JSON.parse(stdout));
    const decode = data.stages.find(({ kind }) => kind === 'decode')!;
    const bar = decode.bars.find(({ id }) => id === 'launch_overhead')!;
    const answer = inferscope(setup, ['sql', '--session', 'b1', '--json', bar.sql!]);
    expect(answer.status, answer.stderr).toBe(0);
    const { rows } = (JSON.parse(answer.stdout) as { data: { rows: (string | number)[][] } }).data;
    expect(rows.reduce((sum, row) => sum + Number(row[2]), 0)).toBeCloseTo(bar.ms, 6);
  });

  test('commands of one stage have its flag, so that numbers of queries are those shown', () => {
    const result = explain('b1', '--stage', 'decode', '--verbose');
    expect(result.stdout).toContain('inferscope explain b1 --stage decode --sql 1');
    expect(explain('b1', '--stage', 'decode').stdout).toContain(
      'inferscope explain b1 --stage decode --verbose',
    );
  });

  test('sentences and next steps of one stage are about it', () => {
    const { data } = explainDocumentSchema.parse(
      JSON.parse(explain('b1', '--stage', 'prefill', '--json').stdout),
    );
    expect(data.sentences[0]).toMatch(/^A prefill /);
    const whys = data.next_steps.map(({ why }) => why).join(' ');
    expect(whys).toContain('of a prefill');
    expect(whys).not.toContain('of a decode step');
  });

  test('a request has the findings of its steps', () => {
    const titles = (stage: string) =>
      explainDocumentSchema
        .parse(JSON.parse(explain('b1', '--stage', stage, '--json').stdout))
        .data.findings.map(({ title }) => title);
    const ofDecode = titles('decode');
    expect(ofDecode.length).toBeGreaterThan(0);
    expect(titles('request')).toEqual(expect.arrayContaining(ofDecode));
  });

  test('--sql prints the query behind a piece of evidence, which can be run', () => {
    const query = explain('--sql', '1');
    expect(query.status, query.stderr).toBe(0);
    const answer = inferscope(setup, ['sql', '--session', 'b1', query.stdout]);
    expect(answer.status, answer.stderr).toBe(0);
  });

  test('--format md prints Markdown for a pull request', () => {
    const result = explain('--format', 'md', '--limit', '0');
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toMatch(/^## inferscope explain: b1\n/);
    expect(result.stdout).toContain('| `launch_overhead` |');
  });

  test('errors are reported in three parts', () => {
    const stage = expectFailure(explain('--stage', 'decoding', '--json'), 2, 'E_USAGE');
    expect(stage.what).toContain('--stage takes prefill, decode, mixed, ');
    expectFailure(explain('nothing-of-this-name', '--json'), 2, 'E_SESSION_NOT_FOUND');
    expect(expectFailure(explain('--rank', '7', '--json'), 2, 'E_USAGE').what).toContain('rank 7');
  });
});

describe('a file instead of a session', () => {
  test('imports a capture, and rejects other files', () => {
    const before = listSessions(setup).length;
    const result = explain(captures.sqlite, '--stage', 'decode');
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toContain('launch call');
    expect(listSessions(setup).length).toBe(before + 1);
    expectFailure(explain(join(packageRoot(), 'package.json'), '--json'), 5, 'E_FORMAT_UNKNOWN');
    expectFailure(explain('nowhere.json.gz', '--json'), 2, 'E_SESSION_NOT_FOUND');
    expect(listSessions(setup).length).toBe(before + 1);
  });

  test('a rank of a session without a timeline is refused', () => {
    const file = join(packageRoot(), 'test/fixtures/benchmark-results-recorded/guidellm-sweep.json');
    expectFailure(explain(file, '--rank', '3', '--json'), 2, 'E_USAGE');
  });

  test('a stage that the session cannot have has its reason', () => {
    const file = join(packageRoot(), 'test/fixtures/benchmark-results-recorded/guidellm-errors.json');
    const { stdout, stderr, status } = explain(file, '--stage', 'decode');
    expect(status, stderr).toBe(0);
    expect(stdout).toContain('No waterfall of decode: the client sees requests');
  });
});

test('steps that start at the same time have no time of their own, so no rule judges them', () => {
  const overlap = 'UPDATE NVTX_EVENTS SET start = 0, "end" = 1000000000000';
  const { stdout, stderr, status } = explain(
    writeChangedSqlite(setup.scratch, 'overlap.sqlite', overlap),
    '--json',
  );
  expect(status, stderr).toBe(0);
  const { stages, findings } = explainDocumentSchema.parse(JSON.parse(stdout)).data;
  expect(stages.map(({ kind }) => kind)).toContain('prefill');
  expect(findings.filter(({ stage }) => stage === 'prefill')).toEqual([]);
});
