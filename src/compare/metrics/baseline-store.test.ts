import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Baseline } from '../../model/documents/baseline.js';
import { homeFolders } from '../../session/home.js';
import { baselineNames, checkBaselineName, readBaseline, writeBaseline } from './baseline-store.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-baselines-'));
const home = homeFolders({ INFERSCOPE_HOME: join(root, 'home') });
afterAll(() => rmSync(root, { recursive: true }));

const baseline: Baseline = {
  name: 'main',
  set_at: '2026-11-21T00:00:00.000Z',
  sessions: [{ id: 'i', name: null, title: 't', kind: 'profile', started_at: '2026-11-21T00:00:00.000Z' }],
  identity: [{ label: 'cpu model', part: 'hardware', value: 'A' }],
  metrics: [
    {
      id: 'tpot_ms',
      point: null,
      name: 'tpot_ms',
      unit: 'ms',
      better: 'lower',
      value: 2,
      basis: 'launches',
      values: [1, 3],
      interval: null,
      source: 'iterations',
    },
  ],
};

test('stores baselines by name and in a file, and reads them back unchanged', async () => {
  expect(await baselineNames(home)).toEqual([]);
  await writeBaseline(baseline, undefined, home);
  expect(await readBaseline('main', home)).toEqual(baseline);
  expect(await baselineNames(home)).toEqual(['main']);
  const file = join(root, 'repository', 'perf', 'baseline.json');
  expect(await writeBaseline(baseline, file, home)).toBe(file);
  expect(await readBaseline(file, home)).toEqual(baseline);
  expect(readFileSync(file, 'utf8')).toMatch(/"schema": "inferscope\/baseline\/1\.0"/);
  // No partial file is left next to it.
  expect(readdirSync(join(root, 'repository', 'perf'))).toEqual(['baseline.json']);
});

test('reports a missing file, a file that is not a baseline, and a newer major version, with what to type', async () => {
  await expect(readBaseline('nope', home)).rejects.toMatchObject({ code: 'E_USAGE' });
  await expect(readBaseline(join(root, 'none.json'), home)).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { fix: expect.stringContaining('--file') },
  });
  const file = join(root, 'bad.json');
  writeFileSync(file, '{"schema": "inferscope/baseline/1.0"');
  await expect(readBaseline(file, home)).rejects.toMatchObject({ code: 'E_RECORD_FILE' });
  writeFileSync(
    file,
    JSON.stringify({ schema: 'inferscope/baseline/2.0', tool_version: '9', data: baseline, issues: [] }),
  );
  await expect(readBaseline(file, home)).rejects.toMatchObject({ code: 'E_RECORD_FILE' });
});

test('a name cannot lead out of the folder', () => {
  for (const name of ['../x', 'a/b', '', 'x.json', '.hidden']) {
    expect(() => checkBaselineName(name)).toThrow(/cannot be called/);
  }
});
