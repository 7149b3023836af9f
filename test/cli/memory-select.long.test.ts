import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explainDocumentSchema } from '../../src/model/documents/explain.js';
import { memoryCompareDocumentSchema } from '../../src/model/documents/memory-compare.js';
import { validationDocumentSchema } from '../../src/model/documents/validate.js';
import { packageRoot } from '../../src/model/installation.js';
import { inferscope, createSetup } from './run-cli.js';

test('validate, memory compare and explain use imported memory profiles that are not named', () => {
  const setup = createSetup();
  const empty = join(setup.scratch, 'empty');
  mkdirSync(empty);
  const runJson = (...args: string[]) => {
    const result = inferscope(setup, [...args, '--json'], {}, empty);
    expect(result.status, result.stderr).toBe(0);
    return JSON.parse(result.stdout) as unknown;
  };
  const fixtures = join(packageRoot(), 'test', 'fixtures', 'memory-profiles-h200');
  for (const name of ['qwen2.5-0.5b-float16', 'llama-2-7b-float16'])
    runJson('import', join(fixtures, `${name}.json`));

  expect(validationDocumentSchema.parse(runJson('validate')).data.counts).toMatchObject({ compared: 2 });

  const { data } = memoryCompareDocumentSchema.parse(runJson('memory', 'compare', '@last~1', '@last'));
  expect([data.base, data.now].map(({ model }) => model)).toEqual(['qwen2.5-0.5b', 'llama-2-7b']);

  // The newest session is that of validate, to which no rule applies.
  const { data: explained } = explainDocumentSchema.parse(runJson('explain'));
  expect(explained.rules.every(({ outcome }) => outcome === 'not_applicable')).toBe(true);
  expect([explained.preface.length, explained.sentences.length]).toEqual([1, 0]);
});
