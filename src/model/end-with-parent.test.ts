import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, test } from 'vitest';
import { watcherScript } from './end-with-parent.js';

const folder = mkdtempSync(join(tmpdir(), 'end-with-parent-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The watcher's shell; to end its stdin is what happens when the process that it watches is killed. */
function watcher() {
  const shell = spawn('/bin/sh', ['-c', watcherScript], { stdio: ['pipe', 'ignore', 'ignore'] });
  return { shell, ended: new Promise((resolve) => shell.once('exit', resolve)) };
}

const sleeper = (script: string, env: NodeJS.ProcessEnv = {}) =>
  spawn('/bin/sh', ['-c', script], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
const exitOf = (child: ChildProcess) =>
  new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)));
const firstLine = (child: ChildProcess) =>
  new Promise<string>((resolve) => child.stdout!.once('data', (data) => resolve(String(data).trim())));

test.runIf(process.platform !== 'win32')(
  'when the pipe closes, listed processes and their descendants end, even if they ignore SIGTERM, and no others',
  async () => {
    const stubborn = sleeper('trap "" TERM; sleep 300 & echo $!; wait; sleep 300');
    const unlisted = sleeper('echo up; sleep 300');
    const [descendant] = await Promise.all([firstLine(stubborn), firstLine(unlisted)]);
    const { shell, ended } = watcher();
    const file = join(folder, "it's done");
    shell.stdin.end(
      `+ ${stubborn.pid}\n+ ${unlisted.pid}\n- ${unlisted.pid}\n! 'touch' '${file.replaceAll("'", `'\\''`)}'\n`,
    );
    expect(await exitOf(stubborn)).toBe('SIGKILL');
    await ended;
    await expect.poll(() => isRunning(Number(descendant)), { timeout: 20_000 }).toBe(false);
    await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(true);
    expect(isRunning(unlisted.pid!)).toBe(true);
    const gone = exitOf(unlisted);
    unlisted.kill('SIGKILL');
    await gone;
  },
);

test.runIf(process.platform === 'linux')(
  'when the pipe closes before the pid of a started child is known, the child and what it starts at SIGTERM end',
  async () => {
    const mark = randomUUID();
    const child = sleeper('trap "sleep 300 & exit" TERM; echo up; sleep 300 & wait', {
      INFERSCOPE_STARTED: mark,
    });
    const otherChild = sleeper('echo up; sleep 300', { INFERSCOPE_STARTED: randomUUID() });
    await Promise.all([firstLine(child), firstLine(otherChild)]);
    const { shell, ended } = watcher();
    // A separate pipe that closes when every process that holds it has exited.
    const closed = once(child.stdout!, 'close');
    shell.stdin.end(`= ${mark}\n`);
    await ended;
    await closed;
    expect(isRunning(otherChild.pid!)).toBe(true);
    const gone = exitOf(otherChild);
    otherChild.kill('SIGKILL');
    await gone;
  },
);

test.runIf(process.platform !== 'win32')('a mark is not searched after its pid is known', async () => {
  const mark = randomUUID();
  const child = sleeper('echo up; sleep 300', { INFERSCOPE_STARTED: mark });
  await firstLine(child);
  const { shell, ended } = watcher();
  shell.stdin.end(`= ${mark}\n+ ${child.pid}\n- ${child.pid}\n= ${mark}\n= \n`);
  await ended;
  expect(isRunning(child.pid!)).toBe(true);
  const gone = exitOf(child);
  child.kill('SIGKILL');
  await gone;
});

test.runIf(process.platform !== 'win32')('a canceled command is not run', async () => {
  const { shell, ended } = watcher();
  const file = join(folder, 'not done');
  shell.stdin.end(`! touch '${file}'\n! \n`);
  await ended;
  expect(existsSync(file)).toBe(false);
});

/** A zombie that nobody has waited for counts as exited. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync(`/proc/${pid}/stat`) || !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
