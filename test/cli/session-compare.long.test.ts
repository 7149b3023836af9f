import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { compareDocumentSchema } from '../../src/model/documents/compare.js';
import { captures, writeChangedSqlite } from './capture-files.js';
import { expectFailure, inferscope, createSetup, widestLine } from './run-cli.js';

const setup = createSetup();

/** Every kernel takes twice as long, as on a slower device. */
const slower = 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = start + 2 * ("end" - start)';

beforeAll(() => {
  const files = {
    eager: captures.sqlite,
    graph: captures.graph,
    slow: writeChangedSqlite(join(setup.scratch, 'in'), 'slow.sqlite', slower),
  };
  for (const [name, path] of Object.entries(files)) {
    const result = inferscope(setup, ['import', path, '--no-analyze', '--quiet', '--name', name]);
    expect(result.status, result.stderr).toBe(0);
  }
});

const compare = (...args: string[]) => inferscope(setup, ['session', 'compare', ...args]);
function compareJson(...names: string[]) {
  const { status, stdout, stderr } = compare(...names, '--json');
  expect([status, stderr]).toEqual([0, '']);
  return compareDocumentSchema.parse(JSON.parse(stdout)).data;
}

test('kernels that take twice as long are matched with the original ones', () => {
  const { kernels, classes } = compareJson('eager', 'slow');
  expect(kernels.length).toBeGreaterThan(5);
  for (const { values } of kernels) {
    const [before, after] = values;
    expect([after!.count, after!.mean_ns]).toEqual([before!.count, 2 * before!.mean_ns]);
  }
  for (const { changes } of classes) expect(changes[1]!.ratio).toBeCloseTo(2, 9);
});

test('prints text, and writes a page', () => {
  const page = join(setup.scratch, 'pages', 'compare.html');
  const { status, stdout, stderr } = compare('eager', 'slow', '--html', page);
  expect([status, stderr]).toEqual([0, `page written: ${page}\n`]);
  for (const word of ['A  eager', 'B  slow', 'Stages', 'Classes', 'slower']) expect(stdout).toContain(word);
  expect(readFileSync(page, 'utf8').slice(0, 15)).toBe('<!DOCTYPE html>');
  expect(widestLine(stdout)).toBeLessThanOrEqual(80);
});

test('three sessions are shown as a matrix', () => {
  const { sessions, stages } = compareJson('eager', 'slow', 'graph');
  expect(sessions.map(({ name }) => name)).toEqual(['eager', 'slow', 'graph']);
  for (const { values } of stages) expect(values).toHaveLength(3);
  expect(compare('eager', 'slow', 'graph').stdout).toContain('C  graph');
});

test('sessions that cannot be compared are rejected', () => {
  expectFailure(compare('eager', '--json'), 2, 'E_USAGE');
  expectFailure(compare('eager', 'eager', '--json'), 2, 'E_USAGE');
  expectFailure(compare('eager', 'none-such', '--json'), 2, 'E_SESSION_NOT_FOUND');
  expectFailure(compare('--json'), 2, 'E_USAGE');
  inferscope(setup, ['import', captures.dmon, '--no-analyze', '--quiet', '--name', 'log']);
  const { status, stderr } = compare('eager', 'log');
  // A log of nvidia-smi has no timeline, which an error or a warning reports.
  expect(status !== 0 || stderr.length > 0).toBe(true);
  expect(compare('--help').stdout.match(/^ {2}\$ inferscope session compare /gm)).toHaveLength(2);
});
