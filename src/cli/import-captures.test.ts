import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importers } from '../import/index.js';
import { InferscopeError } from '../model/errors.js';
import { createSession, type SessionWriter } from '../session/create.js';
import { testFolder, testHome } from '../session/test-folder.js';
import { importCaptures } from './import-captures.js';

const schema = 'test/fixtures/benchmark-results-from-schema';
const folder = testFolder();
const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const files = [
  ...readdirSync(schema)
    .filter((name) => /\.jsonl?$/.test(name))
    .map((name) => join(schema, name)),
  'test/fixtures/memory-profiles-h200/llama-2-7b-float16.json',
];

let session: SessionWriter;
beforeAll(async () => {
  session = await createSession({ label: 'deep', kind: 'import', home: testHome() });
});
afterAll(() => session.abandon());

test.each(files)('100,000 nested arrays are skipped or rejected: %s', async (file) => {
  const text = readFileSync(file, 'utf8');
  // Inserts the arrays after the last key of the first line (JSON lines), or of the file.
  const line = text.startsWith('{"') ? text.split('\n')[0]! : text;
  const index = line.lastIndexOf('}');
  const path = join(folder, file.replaceAll('/', '-'));
  writeFileSync(path, `${text.slice(0, index)}, "deep": ${deep}${text.slice(index)}`);
  const outcome = await importCaptures(session, [{ path }], { keepRaw: false }).then(
    () => 'read',
    (error: unknown) => error,
  );
  if (outcome !== 'read') {
    expect(outcome).toBeInstanceOf(InferscopeError);
    expect(outcome).toMatchObject({ code: 'E_TRACE_FILE' });
  }
});

test('rejects a memory profile that is nested too deeply', async () => {
  const key = '"missing": {';
  const profile = readFileSync(files.at(-1)!, 'utf8');
  expect(profile.includes(key)).toBe(true);
  const path = join(folder, 'deep.json');
  writeFileSync(path, profile.replace(key, `"deep": ${deep}, ${key}`));
  await expect(importCaptures(session, [{ path }], { keepRaw: false })).rejects.toMatchObject({
    code: 'E_TRACE_FILE',
    parts: { why: expect.stringContaining('256 levels') as string },
  });
});

/** A quadratic pattern would exceed the time limit of a test. */
test.each(['[', '{', '"', ' ', '\n', '#', ',', 'a', '1'])('sniffers read 64 KiB of %j in time', (letter) => {
  for (const importer of importers)
    expect(importer.sniff(`{"a": ${letter.repeat(65_000)}`, 'x.json'), importer.name).toBeTypeOf('boolean');
});
