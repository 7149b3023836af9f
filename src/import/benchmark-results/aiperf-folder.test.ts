import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { aiperfFiles, captureName } from './aiperf-folder.js';

const folder = testFolder();

function run(...path: string[]): string {
  const made = join(folder, ...path);
  mkdirSync(made, { recursive: true });
  for (const name of ['profile_export.jsonl', 'profile_export_aiperf.json'])
    writeFileSync(join(made, name), '{}');
  return made;
}

test('the folder of a run and its parent, artifacts/, give the same files, named after the folder of the run', () => {
  const fromRun = run('artifacts', 'qwen3-chat-concurrency2');
  expect(aiperfFiles(fromRun).map(captureName)).toEqual([
    'qwen3-chat-concurrency2',
    'qwen3-chat-concurrency2',
  ]);
  expect(aiperfFiles(join(folder, 'artifacts'))).toEqual(aiperfFiles(fromRun));
  expect(captureName('/some/trace.json.gz')).toBe('trace.json.gz');
});

test('rejects a folder with several runs, with a command for each; any other folder has none', () => {
  const paths = [run('several', 'b'), run('several', 'a')];
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
