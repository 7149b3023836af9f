import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { passOnRecord } from './outer-run.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-outer-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('passes on complete lines to the record of the surrounding run, each once', () => {
  const [inner, outer] = [join(folder, 'own.jsonl'), join(folder, 'outer.jsonl')];
  const env = { INFERSCOPE_RECORD: outer };
  writeFileSync(outer, '{"of":"others"}\n');
  writeFileSync(inner, '{"n":1}\n{"n":2}\n{"n":');
  const passed = passOnRecord(inner, 0, env);
  expect(passed).toBe('{"n":1}\n{"n":2}\n'.length);
  writeFileSync(inner, '{"n":1}\n{"n":2}\n{"n":"é"}\n');
  expect(passOnRecord(inner, passed, env)).toBe(Buffer.byteLength('{"n":1}\n{"n":2}\n{"n":"é"}\n'));
  expect(readFileSync(outer, 'utf8')).toBe('{"of":"others"}\n{"n":1}\n{"n":2}\n{"n":"é"}\n');
});

test('does nothing without a surrounding run, for a missing record, or for the surrounding record itself', () => {
  const aloneLog = join(folder, 'alone.jsonl');
  writeFileSync(aloneLog, '{"n":1}\n');
  expect(passOnRecord(aloneLog, 0, {})).toBe(0);
  expect(passOnRecord(aloneLog, 0, { INFERSCOPE_RECORD: aloneLog })).toBe(0);
  expect(passOnRecord(join(folder, 'no.jsonl'), 3, { INFERSCOPE_RECORD: join(folder, 'x.jsonl') })).toBe(3);
  expect(readFileSync(aloneLog, 'utf8')).toBe('{"n":1}\n');
});
