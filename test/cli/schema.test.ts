import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { packageRoot } from '../../src/model/installation.js';
import { jsonSchema, published, publishedNames } from '../../src/model/published.js';
import { inferscope, createSetup, tinyProfileArgs } from './run-cli.js';

const setup = createSetup();

test('`schema` lists the documents', () => {
  expect(inferscope(setup, ['schema'])).toEqual({
    status: 0,
    stdout: `${publishedNames.join('\n')}\n`,
    stderr: '',
  });
});

describe.each(publishedNames)('schema %s', (name) => {
  const path = join(packageRoot(), 'schemas', `${name}.schema.json`);

  test('in the repository equals that of the code (npm run schemas writes it)', () => {
    expect(readFileSync(path, 'utf8')).toBe(jsonSchema(name));
  });

  test('is JSON Schema 2020-12 that can be read back', () => {
    const schema = JSON.parse(readFileSync(path, 'utf8'));
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(() => z.fromJSONSchema(schema)).not.toThrow();
  });
});

test('schemas/ has a file for each published document and no others', () => {
  expect(readdirSync(join(packageRoot(), 'schemas')).sort()).toEqual(
    publishedNames.map((name) => `${name}.schema.json`).sort(),
  );
});

describe('documents that the binary prints and writes match their schemas', () => {
  let id: string;
  beforeAll(() => {
    const { stdout } = inferscope(setup, tinyProfileArgs(setup, '--json'));
    expectDocument(stdout, 'profile');
    id = (JSON.parse(stdout) as { data: { session: { id: string } } }).data.session.id;
  });

  /** Expects the name of the document in `schema`, and a valid document. */
  function expectDocument(text: string, name: (typeof publishedNames)[number]): void {
    const value: unknown = JSON.parse(text);
    expect((value as { schema?: string }).schema).toMatch(new RegExp(`^inferscope/${name}/\\d+\\.\\d+$`));
    expectValid(value, name);
  }

  /** Validates against the printed JSON Schema, and against the schema in the code. */
  function expectValid(value: unknown, name: (typeof publishedNames)[number]): void {
    const { stdout } = inferscope(setup, ['schema', name]);
    const printed = z.fromJSONSchema(JSON.parse(stdout));
    expect(printed.safeParse(value).error?.issues).toBeUndefined();
    expect(published[name].schema.safeParse(value).error?.issues).toBeUndefined();
    // A schema that accepts everything would prove nothing.
    expect(printed.safeParse({}).success).toBe(false);
  }

  test.each<[keyof typeof published, string[]]>([
    ['roofline', ['roofline', '--threads', '1', '--json']],
    ['doctor', ['doctor', '--json']],
    ['session-list', ['session', 'list', '--json']],
    ['session-show', ['session', 'show', '@last', '--json']],
    ['session-user', ['session', 'tag', '@last', 'a', '--json']],
    ['session-verify', ['session', 'verify', '@last', '--json']],
    ['session-export', ['session', 'export', '@last', '-o', join(setup.scratch, 'a.tar.gz'), '--json']],
    ['session-import', ['session', 'import', join(setup.scratch, 'a.tar.gz'), '--json']],
    ['sql', ['sql', 'SELECT * FROM stages', '--format', 'json']],
    ['sql-schema', ['sql', '--schema', '--format', 'json']],
    ['error', ['session', 'show', 'nothing', '--json']],
  ])('%s', (name, args) => expectDocument(inferscope(setup, args).stdout, name));

  test('session, user and record files', () => {
    const folder = join(setup.home, 'sessions', id);
    expectDocument(readFileSync(join(folder, 'session.json'), 'utf8'), 'session');
    expectDocument(readFileSync(join(folder, 'user.json'), 'utf8'), 'user');
    for (const execution of ['clean', 'profiled']) {
      const path = join(folder, 'artifacts', `${execution}-record`, `${execution}.jsonl`);
      const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
      const kinds = new Set(lines.map((line) => (JSON.parse(line) as { type: string }).type));
      expect([...kinds].sort()).toEqual(['clock', 'memory', 'model', 'request', 'stage']);
      const samples = [...kinds].map((kind) => lines.find((line) => line.includes(`"type":"${kind}"`))!);
      for (const line of samples) expectValid(JSON.parse(line), 'record');
    }
  });

  test('session-delete, after the others, which need the session', () => {
    expectDocument(
      inferscope(setup, ['session', 'delete', '@last', '--yes', '--json']).stdout,
      'session-delete',
    );
    expect(existsSync(join(setup.home, 'sessions', id))).toBe(false);
  });
});
