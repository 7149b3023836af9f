import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { ensureWritable, homeFolders } from './home.js';
import { createSession } from './create.js';
import { probePath, removeStaleFolders } from './temporary-folder.js';
import { testHome, testFolder } from './test-folder.js';

test("the home is INFERSCOPE_HOME, else the XDG data directory, else below the user's home", () => {
  expect(homeFolders({ INFERSCOPE_HOME: '/a/b', XDG_DATA_HOME: '/x' }).root).toBe('/a/b');
  expect(homeFolders({ XDG_DATA_HOME: '/x' }).sessions).toBe('/x/inferscope/sessions');
  // Relative values are invalid by the XDG specification.
  expect(homeFolders({ XDG_DATA_HOME: 'x' }).root).toBe(join(homedir(), '.local/share/inferscope'));
  expect(homeFolders({}).cache).toBe(join(homedir(), '.local/share/inferscope/cache'));
});

test('a URL is rejected instead of becoming a folder of that name', () => {
  expect(() => homeFolders({ INFERSCOPE_HOME: 's3://bucket/prefix' })).toThrow(
    expect.objectContaining({ code: 'E_USAGE', message: expect.stringContaining('s3://bucket/prefix') }),
  );
});

test('creates a writable home and leaves it empty', () => {
  const home = ensureWritable(testHome());
  expect(readdirSync(home.root).sort()).toEqual(['cache', 'sessions']);
  expect(readdirSync(home.sessions)).toEqual([]);
});

test('the next writer removes the test file of a killed process', () => {
  const home = ensureWritable(testHome());
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  const [ownProbe, deadProbe] = [probePath(home), probePath(home).replace(String(process.pid), String(pid))];
  for (const path of [ownProbe, deadProbe]) writeFileSync(path, 'x');
  removeStaleFolders(home);
  expect(readdirSync(home.sessions)).toEqual([basename(ownProbe)]);
});

test.each([
  ['below a regular file', 'ENOTDIR', () => join(file(), 'home')],
  ['a regular file itself', 'EEXIST', () => file()],
  ['in a file system that takes no files', 'ENOENT', () => '/proc/inferscope'],
])(
  'a home that cannot be written fails before anything is measured, also for root: %s',
  async (_, code, makePath) => {
    const home = homeFolders({ INFERSCOPE_HOME: makePath() });
    const failure = await createSession({ label: 'x', kind: 'run', home }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'E_HOME_UNWRITABLE', exitCode: 3 });
    const { why } = (failure as { parts: { why: string } }).parts;
    expect(why.match(/\bE[A-Z]{3,}\b/g)).toEqual([expect.stringMatching(`${code}|ENOTDIR|EACCES|EROFS`)]);
    expect((failure as { parts: { fix: string } }).parts.fix).toContain('INFERSCOPE_HOME=');
  },
);

function file(): string {
  const path = join(testFolder(), 'file');
  writeFileSync(path, '');
  return path;
}

test('a disk that fills up during an artifact gives E_DISK_FULL with the needed size and the path', async () => {
  const home = testHome();
  const writer = await createSession({ label: 'x', kind: 'run', home });
  const place = { kind: 'log', captureId: null };
  await writer.addArtifact(Buffer.from('x'), { ...place, name: 'first.log' });
  // Writing through this link is like writing to a full disk.
  symlinkSync('/dev/full', join(writer.scratch, '../artifacts/session/run.log'));
  const failure = writer.addArtifact(Buffer.alloc(3 * 2 ** 20), { ...place, name: 'run.log' });
  await expect(failure).rejects.toMatchObject({
    code: 'E_DISK_FULL',
    parts: {
      what: expect.stringContaining('run.log'),
      why: expect.stringMatching(/needs 3\.00 MiB; .* free there/),
    },
  });
  await writer.abandon();
  expect(readdirSync(home.sessions)).toEqual([]);
});
