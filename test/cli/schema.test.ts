import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { packageRoot } from '../../src/model/installation.js';
import { jsonSchema, published as documents, publishedNames as names } from '../../src/model/published.js';
import { inferscope, place, tinyArgs } from './profile-cli.js';

const setup = place();

test('`schema` lists the documents', () => {
  expect(inferscope(setup, ['schema'])).toEqual({ status: 0, stdout: `${names.join('\n')}\n`, stderr: '' });
});

describe.each(names)('schema %s', (name) => {
  const path = join(packageRoot(), 'schemas', `${name}.schema.json`);

  test('in the repository equals that in the code (else: npm run schemas)', () => {
    expect(readFileSync(path, 'utf8')).toBe(jsonSchema(name));
  });

  test('is JSON Schema 2020-12 that can be read back', () => {
    const schema = JSON.parse(readFileSync(path, 'utf8'));
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(() => z.fromJSONSchema(schema)).not.toThrow();
  });
});

test('no schema of a removed document is left', () => {
  expect(readdirSync(join(packageRoot(), 'schemas')).sort()).toEqual(
    names.map((name) => `${name}.schema.json`).sort(),
  );
});

describe('what the binary prints and writes', () => {
  let id: string;
  beforeAll(() => {
    const { stdout } = inferscope(setup, tinyArgs(setup, '--json'));
    checkDocument(stdout, 'profile');
    id = (JSON.parse(stdout) as { data: { session: { id: string } } }).data.session.id;
  });

  /** Validates against the printed JSON Schema, and against the schema in the code. */
  function checkDocument(text: string, name: (typeof names)[number]): void {
    const value: unknown = JSON.parse(text);
    expect((value as { schema?: string }).schema).toMatch(new RegExp(`^inferscope/${name}/\\d+\\.\\d+$`));
    check(value, name);
  }

  function check(value: unknown, name: (typeof names)[number]): void {
    const { stdout } = inferscope(setup, ['schema', name]);
    const published = z.fromJSONSchema(JSON.parse(stdout));
    expect(published.safeParse(value).error?.issues).toBeUndefined();
    expect(documents[name].schema.safeParse(value).error?.issues).toBeUndefined();
    // A schema that accepts everything would prove nothing.
    expect(published.safeParse({}).success).toBe(false);
  }

  test.each<[keyof typeof documents, string[]]>([
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
  ])('%s', (name, args) => checkDocument(inferscope(setup, args).stdout, name));

  test('session, user and record files', () => {
    const folder = join(setup.home, 'sessions', id);
    checkDocument(readFileSync(join(folder, 'session.json'), 'utf8'), 'session');
    checkDocument(readFileSync(join(folder, 'user.json'), 'utf8'), 'user');
    for (const execution of ['clean', 'profiled']) {
      const path = join(folder, 'artifacts', `${execution}-record`, `${execution}.jsonl`);
      const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
      const kinds = new Set(lines.map((line) => (JSON.parse(line) as { type: string }).type));
      expect([...kinds].sort()).toEqual(['clock', 'memory', 'model', 'request', 'stage']);
      const samples = [...kinds].map((kind) => lines.find((line) => line.includes(`"type":"${kind}"`))!);
      for (const line of samples) check(JSON.parse(line), 'record');
    }
  });

  test('session-delete, last of all', () => {
    checkDocument(
      inferscope(setup, ['session', 'delete', '@last', '--yes', '--json']).stdout,
      'session-delete',
    );
    expect(existsSync(join(setup.home, 'sessions', id))).toBe(false);
  });
});
