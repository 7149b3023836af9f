import os from 'node:os';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../model/installation.js';
import { describeEnvironment, distribution, evaluatedIssue, packageVersion } from './environment.js';

test('facts of this machine: every null has an issue, and versions equal those of package.json', () => {
  const { hardware, software, issues } = describeEnvironment();
  expect(hardware['cpu_logical_cores']).toBe(os.cpus().length);
  const pinned = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    peerDependencies: Record<string, string>;
  };
  expect(software['duckdb_node_api']).toBe(pinned.dependencies['@duckdb/node-api']);
  expect([pinned.peerDependencies['onnxruntime-node'], null]).toContain(software['onnxruntime_node']);
  expect(software['node']).toBe(process.versions.node);
  for (const issue of issues) expect(issue.text.length).toBeGreaterThan(10);
});

test('the environment has no host name, user, home or environment value', () => {
  const environment = describeEnvironment();
  const facts = Object.values({ ...environment.hardware, ...environment.software });
  // Compares whole values: a host named "linux" does not leak its name on Linux.
  expect(facts).not.toContain(os.hostname());
  expect(facts).not.toContain(os.userInfo().username);
  expect(JSON.stringify(environment)).not.toContain(packageRoot());
  if (process.env['PATH']) expect(JSON.stringify(environment)).not.toContain(process.env['PATH']);
});

test('a package that is not installed has no version', () => {
  expect(packageVersion('no-such-package-of-inferscope')).toBeNull();
  expect(packageVersion('zod')).toMatch(/^4\./);
});

test('warns that figures include profiler overhead only under a profiler', () => {
  expect(evaluatedIssue({ INFERSCOPE_EVALUATOR: 'nsys' })).toMatchObject({
    code: 'under_evaluator',
    severity: 'warning',
    text: expect.stringContaining('--evaluator nsys') as unknown,
  });
  for (const evaluator of ['none', '', undefined])
    expect(evaluatedIssue({ INFERSCOPE_EVALUATOR: evaluator })).toBeNull();
});

test('reads the distribution from os-release', () => {
  expect(
    distribution('NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian'),
  ).toBe('Debian GNU/Linux 12 (bookworm)');
  expect(distribution('PRETTY_NAME=Alpine\n')).toBe('Alpine');
  expect(distribution('')).toBeNull();
});
