import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { dropCutOffLine, readRecordedFacts } from './record-file.js';

const path = join(testFolder(), 'record.jsonl');
const after = (text: string) => {
  writeFileSync(path, text);
  dropCutOffLine(path);
  return readFileSync(path, 'utf8');
};

test('an incomplete last line is removed, complete lines are kept', () => {
  expect(after('{"a":1}\n{"b":2}\n{"c')).toBe('{"a":1}\n{"b":2}\n');
  expect(after('{"a":1}\n')).toBe('{"a":1}\n');
  expect(after('{"a')).toBe('');
  expect(after('')).toBe('');
  // The last newline is more than one read block before the end.
  expect(after(`{"a":1}\n${'x'.repeat(200_000)}`)).toBe('{"a":1}\n');
});

test('a missing file is not an error', async () => {
  dropCutOffLine(`${path}.missing`);
  expect((await readRecordedFacts(`${path}.missing`)).timed).toBe(0);
});

test('timed requests are counted, warm-ups are not, failures are reported', async () => {
  const lines = [
    { type: 'request', iteration: 0, warmup: true },
    { type: 'request', iteration: 5, warmup: false },
    { type: 'stage', iteration: 9, warmup: false },
    { type: 'point', point: 'b1', outcome: 'measured', text: null },
    { type: 'point', point: 'b64', outcome: 'out_of_memory', text: 'bad_alloc' },
    { type: 'point', point: 'b128', outcome: 'skipped', text: 'larger' },
  ];
  writeFileSync(path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"type":"request"`);
  const facts = await readRecordedFacts(path);
  expect([facts.timed, facts.lastIteration, [...facts.outOfMemory]]).toEqual([1, 5, ['b64']]);
  expect(facts.unmeasured.map(({ point, text }) => [point, text])).toEqual([
    ['b64', 'bad_alloc'],
    ['b128', 'larger'],
  ]);
});
