import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { build } from 'tsdown';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';
import { saveSession } from '../../src/session/test-session.js';
import { homeFolders, type Home } from '../../src/session/home.js';
import { canMountDisks, cli } from './run-cli.js';

// In node_modules, so that the built script finds packages that are not bundled.
const buildFolder = join(packageRoot(), 'node_modules', '.cache', `inferscope-test-${process.pid}`);
const writer = join(buildFolder, 'session-writer.js');
let home: Home;

beforeAll(async () => {
  await build({
    config: false,
    entry: { 'session-writer': join(import.meta.dirname, 'session-writer.ts') },
    cwd: packageRoot(),
    outDir: buildFolder,
    format: 'esm',
    platform: 'node',
    dts: false,
    logLevel: 'error',
    outExtensions: () => ({ js: '.js' }),
  });
});
afterAll(() => rmSync(buildFolder, { recursive: true, force: true }));
beforeEach(() => {
  home = homeFolders({ INFERSCOPE_HOME: testFolder() });
});

function env(): NodeJS.ProcessEnv {
  return { ...process.env, INFERSCOPE_HOME: home.root };
}

function inferscope(...args: string[]) {
  return spawnSync(process.execPath, [cli, ...args], { encoding: 'utf8', env: env() });
}

/** Waits for the first output of a child process. */
async function waitForOutput(child: ChildProcess): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', () => reject(new Error('the writer stopped early')));
  });
}

test('after kill -9 while writing the session is not listed, saved ones are intact, and the next writer cleans up', async () => {
  const saved = await saveSession(home);
  const child = spawn(process.execPath, [writer, 'forever'], {
    env: env(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await waitForOutput(child);
  const during = readdirSync(home.sessions);
  expect(during).toHaveLength(2);
  // A writer does not remove the folder of another running writer.
  const second = await saveSession(home, { label: 'second' });
  expect(readdirSync(home.sessions)).toEqual(expect.arrayContaining(during));
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));

  const listed = JSON.parse(inferscope('session', 'list', '--json').stdout);
  expect(listed.data.sessions.map(({ id }: { id: string }) => id)).toEqual([saved.id, second.id]);
  expect(listed.data.sessions.every(({ broken }: { broken: unknown }) => broken === null)).toBe(true);
  expect(inferscope('session', 'verify', '--all').status).toBe(0);
  expect(inferscope('session', 'show', '.tmp').status).toBe(2);
  // Only writing removes abandoned folders; reading does not.
  expect(readdirSync(home.sessions)).toHaveLength(3);
  const third = await saveSession(home, { label: 'third' });
  expect(readdirSync(home.sessions).sort()).toEqual([saved.id, second.id, third.id].sort());
});

test('processes that save a session with the same id at once all succeed', async () => {
  const time = '2026-11-20T22:15:03Z';
  const ids = await Promise.all(
    [1, 2, 3].map(
      () =>
        new Promise<string>((resolve, reject) => {
          const child = spawn(process.execPath, [writer, 'keep', time], {
            env: env(),
            stdio: ['ignore', 'pipe', 'inherit'],
          });
          let text = '';
          child.stdout.on('data', (chunk) => (text += String(chunk)));
          child.once('exit', (code) => (code === 0 ? resolve(text.trim()) : reject(new Error(text))));
        }),
    ),
  );
  const stem = '20261120-221503-writer';
  expect(ids.sort()).toEqual([stem, `${stem}-2`, `${stem}-3`]);
  expect(inferscope('session', 'verify', '--all').status).toBe(0);
});

const canMount = canMountDisks();

/** Runs a shell script with a separate file system of `sizeMiB` mounted at the home. */
function runOnSmallDisk(
  sizeMiB: number,
  script: string,
): { status: number | null; stdout: string; stderr: string } {
  mkdirSync(home.root, { recursive: true });
  const text = `mount -t tmpfs -o size=${sizeMiB}m tmpfs "$INFERSCOPE_HOME" && ${script}`;
  return spawnSync('unshare', ['-Urm', 'sh', '-c', text], { encoding: 'utf8', env: env() });
}

test.skipIf(!canMount)(
  'a disk that fills up while tables are written gives E_DISK_FULL, and leaves no files and other sessions intact',
  () => {
    const script = `"${process.execPath}" "${writer}" keep 2026-11-20T22:15:03Z && "${process.execPath}" "${writer}" fill 600000;
    echo "exit $?"; ls -A "$INFERSCOPE_HOME/sessions"; "${process.execPath}" "${cli}" session verify --all`;
    const { stdout, status } = runOnSmallDisk(3, script);
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toBe('20261120-221503-writer');
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({
      code: 'E_DISK_FULL',
      what: expect.stringContaining(home.root),
      why: expect.stringMatching(/free there/),
      fix: expect.stringContaining('INFERSCOPE_HOME'),
    });
    expect(lines.slice(2, 4)).toEqual(['exit 3', '20261120-221503-writer']);
    expect(lines.at(-1)).toMatch(/^ *20261120-221503-writer +ok, \d+ files/);
    expect(status).toBe(0);
  },
);

test.skipIf(!canMount)('an import on a full disk reports E_DISK_FULL before it writes', async () => {
  const saved = await saveSession(home);
  const archive = join(testFolder(), 'a.tar.gz');
  expect(inferscope('session', 'export', saved.id, '-o', archive).status).toBe(0);
  const script = `head -c 1048576 /dev/zero > "$INFERSCOPE_HOME/ballast"; "${process.execPath}" "${cli}" session import "${archive}" --json`;
  const { stdout, status } = runOnSmallDisk(1, script);
  expect(status).toBe(3);
  expect(JSON.parse(stdout).data.code).toBe('E_DISK_FULL');
});

test.skipIf(!canMount)(
  'on a read-only home commands that write fail at once, and commands that read work, also for root',
  async () => {
    const saved = await saveSession(home, { name: 'base' });
    const command = (args: string) => `"${process.execPath}" "${cli}" session ${args}; echo "exit $?"`;
    const script = [
      `mount --bind "$INFERSCOPE_HOME" "$INFERSCOPE_HOME"`,
      `mount -o remount,bind,ro "$INFERSCOPE_HOME"`,
      `{ ${command('list')}; ${command('verify base')}; ${command('note base hello')}; ${command(`delete base --yes`)}; }`,
      `"${process.execPath}" "${writer}" keep 2026-11-20T22:15:03Z`,
    ].join(' && ');
    const { stdout, stderr } = spawnSync('unshare', ['-Urm', 'sh', '-c', script], {
      encoding: 'utf8',
      env: env(),
    });
    expect(stdout.match(/exit \d+/g)).toEqual(['exit 0', 'exit 0', 'exit 3', 'exit 3']);
    expect(stderr.match(/E_HOME_UNWRITABLE/g)).toHaveLength(2);
    expect(stderr).toContain('EROFS');
    expect(stdout.trim().split('\n').at(-1)).toContain('"E_HOME_UNWRITABLE"');
    expect(readdirSync(home.sessions)).toEqual([saved.id]);
  },
);

test('a home below a regular file fails at once, also for root', () => {
  const file = join(home.root, 'file');
  mkdirSync(home.root, { recursive: true });
  writeFileSync(file, '');
  const run = spawnSync(process.execPath, [cli, 'session', 'import', cli], {
    encoding: 'utf8',
    env: { ...env(), INFERSCOPE_HOME: join(file, 'home') },
  });
  expect(run.status).toBe(3);
  expect(run.stderr).toContain('E_HOME_UNWRITABLE');
});
