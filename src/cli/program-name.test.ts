import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { asTyped, programName } from '../model/program-name.js';
import { commands } from './commands.js';

const home = mkdtempSync(join(tmpdir(), 'inferscope-program-name-'));
afterAll(() => rmSync(home, { recursive: true }));

test('under npx the program name is npx with the package that it was given', () => {
  const npx = { npm_lifecycle_event: 'npx' };
  const cache = join(home, '_npx/0123abc');
  mkdirSync(join(cache, 'node_modules/.bin'), { recursive: true });
  const script = join(cache, 'node_modules/.bin/inferscope');
  expect(programName(npx, script)).toBe('npx inferscope');
  writeFileSync(
    join(cache, 'package.json'),
    JSON.stringify({ _npx: { packages: ['./a folder/inferscope-0.1.0.tgz'] } }),
  );
  expect(programName(npx, script)).toBe("npx './a folder/inferscope-0.1.0.tgz'");
  expect(programName(npx, join(home, 'node_modules/.bin/inferscope'))).toBe('npx inferscope');
  expect(programName(npx, join(home, 'dist/cli.js'))).toBe('inferscope');
  expect(programName({}, script)).toBe('inferscope');
});

test('every command in a text is written as the user starts it, and other text is unchanged', () => {
  const asUserTypes = (text: string) => asTyped(text, 'npx ./a.tgz');
  for (const { name, alias } of commands)
    for (const verb of [name, ...(alias ? [alias] : [])])
      expect(asUserTypes(`Type: inferscope ${verb} x`)).toBe(`Type: npx ./a.tgz ${verb} x`);
  expect(asUserTypes('See inferscope --help.')).toBe('See npx ./a.tgz --help.');
  const otherTexts =
    'inferscope 0.1.0 · inferscope reads reports · npx inferscope run · ./inferscope run · inferscope-explain';
  expect(asUserTypes(otherTexts)).toBe(otherTexts);
});
