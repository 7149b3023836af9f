import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { unusedNames, writeResult } from './results-folder.js';

test('files of another session keep their names; those of one session get one number', async () => {
  const folder = testFolder();
  const names = ['baseline_metrics.json', 'latency_results.csv'];
  expect(unusedNames(folder, names)).toEqual(names);
  // One that exists is enough.
  writeFileSync(join(folder, 'latency_results.csv'), 'of another session');
  const second = ['baseline_metrics-2.json', 'latency_results-2.csv'];
  expect(unusedNames(folder, names)).toEqual(second);
  for (const name of second) await writeResult(join(folder, name), name);
  expect(unusedNames(folder, names)).toEqual(['baseline_metrics-3.json', 'latency_results-3.csv']);
  expect(readFileSync(join(folder, 'latency_results.csv'), 'utf8')).toBe('of another session');
  expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
