import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../session/test-folder.js';
import { claimNames, resultsFolder, writeResult } from './results-folder.js';

test('a checked folder is created only when files are written', () => {
  const folder = testFolder();
  const results = resultsFolder(join(folder, 'results', 'deep'));
  expect(readdirSync(folder)).toEqual([]);
  expect(claimNames(results, ['a.json'])).toEqual(['a.json']);
  expect(readdirSync(results)).toEqual(['a.json']);
  expect(() => resultsFolder(join(results, 'a.json', 'below'))).toThrow();
});

test('files of another session keep their names; those of one session share one number', async () => {
  const folder = testFolder();
  const names = ['baseline_metrics.json', 'latency_results.csv'];
  // One existing file is enough to number all of them.
  writeFileSync(join(folder, 'latency_results.csv'), 'of another session');
  const second = ['baseline_metrics-2.json', 'latency_results-2.csv'];
  expect(claimNames(folder, names)).toEqual(second);
  expect(readdirSync(folder).sort()).toEqual([...second, 'latency_results.csv'].sort());
  // A run that reserves names before the first run has written gets other names.
  expect(claimNames(folder, names)).toEqual(['baseline_metrics-3.json', 'latency_results-3.csv']);
  for (const name of second) await writeResult(join(folder, name), name);
  expect(second.map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual(second);
  expect(readFileSync(join(folder, 'latency_results.csv'), 'utf8')).toBe('of another session');
  expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
