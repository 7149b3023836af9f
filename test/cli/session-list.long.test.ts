import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { digestOf } from '../../src/session/digest.js';
import { testFolder, testHome } from '../../src/session/test-folder.js';
import { saveSession } from '../../src/session/test-session.js';
import { cli } from './run-cli.js';

// bench/cli-start measures the speed of this command.
test('lists 1,000 sessions, one line each', async () => {
  const root = join(testFolder(), 'thousand');
  const { folder: source } = await saveSession(testHome(), { label: 'run' });
  mkdirSync(join(root, 'sessions'), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(source, 'session.json'), 'utf8'));
  for (let i = 0; i < 1000; i++) {
    const id = `${new Date(Date.UTC(2026, 0, 1) + i * 61_000).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}-run`;
    const folder = join(root, 'sessions', id);
    cpSync(source, folder, { recursive: true });
    const text = JSON.stringify({ ...manifest, data: { ...manifest.data, id } }, null, 2);
    writeFileSync(join(folder, 'session.json'), text);
    writeFileSync(join(folder, 'session.json.sha256'), `${digestOf(text).sha256}  session.json\n`);
  }
  const { stdout, status } = spawnSync(process.execPath, [cli, 'session', 'list'], {
    encoding: 'utf8',
    env: { ...process.env, INFERSCOPE_HOME: root },
  });
  expect(status).toBe(0);
  // 1000 sessions and the column heads.
  expect(stdout.trimEnd().split('\n')).toHaveLength(1001);
});

test('a tag or kind that no session has is named, with those that there are', async () => {
  const home = testHome();
  await saveSession(home, { label: 'run' });
  const list = (...flags: string[]) =>
    spawnSync(process.execPath, [cli, 'session', 'list', ...flags], {
      encoding: 'utf8',
      env: { ...process.env, INFERSCOPE_HOME: home.root },
    }).stderr.trim();
  expect(list('--tag', 'x')).toBe(`no session in ${home.sessions} has the tag x (there: none)`);
  expect(list('--kind', 'x')).toMatch(/ has the kind x \(there: \w.*\)$/);
  expect(list('--kind', 'x')).not.toContain('tag');
});
