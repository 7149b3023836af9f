import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { testFolder } from '../../src/session/test-folder.js';
import { expectFailure, inferscope, createSetup, plantRoofline } from './run-cli.js';

const setup = createSetup();

/** Creates a project folder with an inferscope.yaml of this text. */
function createProject(text: string): string {
  const folder = testFolder();
  writeFileSync(join(folder, 'inferscope.yaml'), text);
  return folder;
}

test('values are taken from flag, project, user and default, in this order; `home` is used if the environment has none', () => {
  const folder = createProject(`
home: own-home
profile:
  model: ${setup.tiny}
  input_len: 8
  output_len: 5
  threads: 1
  launches: 1
  repeats: 2
`);
  plantRoofline(join(folder, 'own-home'));
  const config = join(testFolder(), 'inferscope');
  mkdirSync(config);
  writeFileSync(join(config, 'config.yaml'), 'profile: {batch_size: 2, output_len: 9}\n');
  const inner = join(folder, 'deep', 'below');
  mkdirSync(inner, { recursive: true });
  // An empty variable counts as unset; without `home` the session would be in the data directory.
  const env = {
    INFERSCOPE_HOME: '',
    XDG_CONFIG_HOME: join(config, '..'),
    XDG_DATA_HOME: testFolder(),
  };
  const result = inferscope(setup, ['profile', '--json', '--repeats', '1'], env, inner);
  expect(result.status, result.stderr).toBe(0);
  const { data } = profileDocumentSchema.parse(JSON.parse(result.stdout));
  expect(data.workload).toMatchObject({ batch_size: 2, input_len: 8, output_len: 5, threads: 1 });
  expect(data.workload.model!.name).toBe('tiny');
  expect(data.latency).toMatchObject({ repeats: 1, launches: 1 });
  const listed = inferscope(setup, ['session', 'list', '--json'], env, inner);
  expect(JSON.parse(listed.stdout).data).toMatchObject({
    home: join(folder, 'own-home'),
    sessions: [{ id: data.session.id }],
  });
});

describe('an invalid file exits with 5 and reports line and column, and nothing is run', () => {
  const fails = (text: string) => {
    const folder = createProject(text);
    const result = inferscope(setup, ['profile', '--model', setup.tiny, '--json'], {}, folder);
    return expectFailure(result, 5, 'E_CONFIG_FILE');
  };

  test('an unknown key, with the nearest valid one', () => {
    const nested = fails('profile:\n  input_len: 8\n  outputlen: 4\n');
    expect(nested.what).toMatch(/inferscope\.yaml:3:3: unknown key "profile\.outputlen"/);
    expect(nested.fix).toContain('Did you mean "output_len"?');
    expect(fails('profil: {}\n')).toMatchObject({
      what: expect.stringMatching(/inferscope\.yaml:1:1: unknown key "profil"/),
      fix: expect.stringContaining('Did you mean "profile"?'),
    });
  });

  test.each([
    ['a text for a number', 'profile:\n  threads: many\n', ':2:3', 'profile.threads'],
    ['a number out of range', 'profile:\n  batch_size: 0\n', ':2:3', 'profile.batch_size'],
    ['half a token', 'profile: {output_len: 1.5}\n', ':1:11', 'profile.output_len'],
    ['a section that is a list', 'profile: [1]\n', ':1:1', 'profile'],
    ['a number for a text', 'home: 7\n', ':1:1', 'home'],
  ])('%s', (_, text, where, key) => {
    const { what } = fails(text);
    expect(what).toContain(`inferscope.yaml${where}: `);
    expect(what).toContain(key);
  });

  test.each([
    ['an open bracket', 'profile: {threads: 1\n'],
    ['a tab', 'profile:\n\tthreads: 1\n'],
    ['a key twice', 'profile: {}\nprofile: {}\n'],
  ])('bad YAML: %s', (_, text) => {
    expect(fails(text).what).toMatch(/inferscope\.yaml:\d+:\d+: /);
  });

  test('a list, and a file that is a folder', () => {
    expect(fails('- profile\n').what).toContain('inferscope.yaml');
    const folder = testFolder();
    mkdirSync(join(folder, 'inferscope.yaml'));
    expectFailure(inferscope(setup, ['profile', '--json'], {}, folder), 5, 'E_CONFIG_FILE');
  });

  test('a value that only the command can check has its own error code', () => {
    const folder = createProject(`profile: {dtype: nonsense, model: ${setup.tiny}}\n`);
    expectFailure(inferscope(setup, ['profile', '--json'], {}, folder), 2, 'E_DTYPE');
  });
});

test('an empty file has no effect', () => {
  const folder = createProject('# nothing yet\n');
  expect(inferscope(setup, ['session', 'list'], {}, folder).status).toBe(0);
});
