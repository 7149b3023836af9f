import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';

test('the build of the demo prints nothing before the demo’s output', () => {
  const root = packageRoot();
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: { demo: string; build: string };
  };
  expect(scripts.demo).toMatch(/^npm run --silent build && node dist\/cli\.js profile /);
  // Builds into another folder, because other tests run dist.
  const out = testFolder();
  const buildElsewhere = scripts.build.replace('build({ ', `build({ outDir: '${out}', `);
  const result = spawnSync(buildElsewhere, { cwd: root, shell: true, encoding: 'utf8' });
  expect([result.status, result.stdout, result.stderr]).toEqual([0, '', '']);
  expect(existsSync(join(out, 'cli.js'))).toBe(true);
});
