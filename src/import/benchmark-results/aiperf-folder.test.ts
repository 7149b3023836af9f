import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { aiperfFiles, captureName } from './aiperf-folder.js';

const folder = testFolder();

function makeRun(...path: string[]): string {
  const runFolder = join(folder, ...path);
  mkdirSync(runFolder, { recursive: true });
  for (const name of ['profile_export.jsonl', 'profile_export_aiperf.json'])
    writeFileSync(join(runFolder, name), '{}');
  return runFolder;
}

test('the folder of a run and its parent, artifacts/, give the same files, named after the folder of the run', () => {
  const fromRun = makeRun('artifacts', 'qwen3-chat-concurrency2');
  expect(aiperfFiles(fromRun).map(captureName)).toEqual([
    'qwen3-chat-concurrency2',
    'qwen3-chat-concurrency2',
  ]);
  expect(aiperfFiles(join(folder, 'artifacts'))).toEqual(aiperfFiles(fromRun));
  expect(captureName('/some/trace.json.gz')).toBe('trace.json.gz');
});

test('rejects a folder with several runs, with a command for each; any other folder has none', () => {
  const paths = [makeRun('several', 'b'), makeRun('several', 'a')];
  expect(() => aiperfFiles(join(folder, 'several'))).toThrow(
    expect.objectContaining({
      code: 'E_USAGE',
      parts: expect.objectContaining({
        fix: `inferscope import ${paths[1]} && inferscope import ${paths[0]}`,
      }),
    }),
  );
  expect(aiperfFiles(folder)).toEqual([]);
});
