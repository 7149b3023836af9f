import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { processTree } from '../../src/capture/process-tree.js';
import { watcherScript } from '../../src/model/end-with-parent.js';
import { saveSession } from '../../src/session/test-session.js';
import { homeFolders } from '../../src/session/home.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  cli,
  expectFailure,
  inferscope,
  createSetup,
  startCli,
  tinyProfileArgs,
  waitForExit,
  environmentOf,
} from './run-cli.js';

const hasStrace = spawnSync('strace', ['-V']).status === 0;

/** strace lines of connections to another machine: sockets that are neither Unix nor netlink. */
const outgoing = /connect\(.*AF_INET|sendto\(.*AF_INET/;

/** A user who has never run anything: HOME and TMPDIR are empty. */
function createFreshUser() {
  const setup = createSetup();
  const [user, temporary] = [join(setup.scratch, 'user'), join(setup.scratch, 'tmp')];
  mkdirSync(user);
  mkdirSync(temporary);
  const env = { ...environmentOf(setup), HOME: user, TMPDIR: temporary };
  for (const name of Object.keys(env))
    if (name.startsWith('XDG_') || name === 'ORT_DISABLE_TELEMETRY') delete env[name as keyof typeof env];
  return { setup, env, listWritten: () => [user, temporary].map((folder) => readdirSync(folder)) };
}

test.each([
  ['doctor', () => ['doctor']],
  ['profile', (setup: { tiny: string }) => tinyProfileArgs(setup)],
])('%s writes nothing in HOME and TMPDIR, and connects to nothing', (_, argumentsOf) => {
  const { setup, env, listWritten } = createFreshUser();
  const log = join(setup.scratch, 'strace.log');
  const command = [process.execPath, cli, ...argumentsOf(setup)];
  const strace = ['strace', '-f', '-qq', '--seccomp-bpf', '-e', 'trace=connect,sendto', '-o', log];
  const [file, ...args] = hasStrace ? [...strace, ...command] : command;
  const result = spawnSync(file!, args, { env, cwd: setup.scratch, encoding: 'utf8' });
  expect([0, 1, 3], result.stderr).toContain(result.status);
  expect(listWritten()).toEqual([[], []]);
  if (hasStrace)
    expect(
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => outgoing.test(line)),
    ).toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'killing a command also stops the processes that it started',
  async () => {
    const setup = createSetup();
    await saveSession(homeFolders({ INFERSCOPE_HOME: setup.home }), {});
    const endless = [
      ['sql', 'SELECT count(*) FROM range(100000000000) a, range(1000)'],
      // A program that ignores SIGTERM, with a child process.
      ['run', '--evaluator', 'none', '--', 'sh', '-c', 'trap "" TERM; sleep 600 & wait; sleep 600'],
      [
        'profile',
        '--model',
        setup.slow,
        '--threads',
        '1',
        '--input-len',
        '8',
        '--output-len',
        '100',
        '--repeats',
        '500',
      ],
    ];
    for (const args of endless) {
      const { child, exit } = startCli(setup, args);
      const listDescendants = () =>
        processTree(child.pid!)
          .slice(1)
          .filter((pid) => !isWatcher(pid));
      let pids: number[] = [];
      // Waits until all processes have started: two readings are equal.
      for (let tries = 0; tries < 200; tries++) {
        const before = pids.join();
        pids = listDescendants();
        if (pids.length > 0 && pids.join() === before) break;
        await sleep(500);
      }
      expect(pids.length, `${args[0]}: descendant processes`).toBeGreaterThan(0);
      process.kill(child.pid!, 'SIGKILL');
      for (const pid of pids) await waitForExit(pid);
      await exit;
    }
  },
);

test.runIf(process.platform === 'linux')(
  'a program is killed even if inferscope was killed before it knew the pid',
  async () => {
    const setup = createSetup();
    const file = join(setup.scratch, 'pid');
    const script = `echo $$ >'${file}'; kill -KILL $PPID; sleep 600`;
    const { status } = inferscope(setup, ['run', '--evaluator', 'none', '--', 'sh', '-c', script]);
    expect(status).toBeNull();
    await waitForExit(Number(readFileSync(file, 'utf8')));
  },
);

/** Whether a process is the shell that kills the other processes, which exits two seconds later. */
function isWatcher(pid: number): boolean {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) && readFileSync(path, 'utf8').includes(watcherScript);
}

test('a TMPDIR that does not exist is an error', async () => {
  const setup = createSetup();
  await saveSession(homeFolders({ INFERSCOPE_HOME: setup.home }), {});
  const missing = join(testFolder(), 'none');
  const { what, fix } = expectFailure(
    inferscope(setup, ['sql', 'SELECT 1', '--json'], { TMPDIR: missing }),
    3,
    'E_HOME_UNWRITABLE',
  );
  expect(what).toContain(missing);
  expect(fix).toContain('TMPDIR');
  // The program is not started.
  const program = ['run', '--evaluator', 'none', '--json', '--', 'touch', join(setup.scratch, 'ran')];
  expectFailure(inferscope(setup, program, { TMPDIR: missing }), 3, 'E_HOME_UNWRITABLE');
  expect(existsSync(join(setup.scratch, 'ran'))).toBe(false);
});
