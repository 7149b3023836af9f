import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { processesBelowProfiler } from './below-profiler.js';
import { runProgram, type ProgramOptions } from './run-program.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-program-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const onLinux = test.skipIf(process.platform !== 'linux');

/** A shell that reports a received signal (nsys stops recording at one), around a shell that exits by itself. */
const inner = 'trap "echo program interrupted; exit 5" INT; echo ready; while :; do sleep 0.05; done';
const outer = `trap 'echo recording ended; exit 3' INT TERM; sh -c '${inner}'; echo its exit code: $?`;

function program(change: Partial<ProgramOptions>): ProgramOptions {
  return {
    file: 'sh',
    args: ['-c', outer],
    env: process.env,
    stdoutPath: join(folder, 'stdout.log'),
    stderrPath: join(folder, 'stderr.log'),
    stdout: null,
    stderr: null,
    secrets: [],
    tool: 'nsys',
    timeoutMs: null,
    graceMs: 5_000,
    signal: new AbortController().signal,
    kill: new AbortController().signal,
    onStart: () => {},
    ...change,
  };
}

onLinux('Ctrl-C reaches the program below nsys and not nsys, which records to its end', async () => {
  const stop = new AbortController();
  const out = new PassThrough();
  out.on('data', () => stop.abort('SIGINT'));
  const sessions: number[] = [];
  const end = await runProgram(
    program({ signal: stop.signal, stdout: out, onStart: (pid) => sessions.push(pid, sessionOf(pid)) }),
  );
  expect(end.stdoutTail).toBe('ready\nprogram interrupted\nits exit code: 5\n');
  expect(end.exit_code).toBe(0);
  // Signals of a terminal to its foreground group do not reach another session.
  expect(sessions[1]).toBe(sessions[0]);
});

onLinux('a timeout reaches the program below nsys and not nsys', async () => {
  const end = await runProgram(program({ timeoutMs: 300 }));
  expect(end).toMatchObject({ exit_code: 0, timedOut: true });
  expect(end.stdoutTail).toContain('program interrupted\nits exit code: 5\n');
});

onLinux(
  'nsys has time to write its report after a program that ignores other signals is killed',
  async () => {
    const ignoresSignals = outer.replace('"echo program interrupted; exit 5" INT', '"" INT TERM');
    const end = await runProgram(program({ args: ['-c', ignoresSignals], timeoutMs: 200, graceMs: 200 }));
    expect(end).toMatchObject({ exit_code: 0, timedOut: true });
    expect(end.stdoutTail).toContain(`its exit code: ${128 + 9}\n`);
  },
);

onLinux('tools other than nsys receive the signal directly', async () => {
  const stop = new AbortController();
  const out = new PassThrough();
  out.on('data', () => stop.abort('SIGTERM'));
  // With `&` the shell does not wait for the program before it runs its trap.
  const args = [
    '-c',
    `trap 'echo recording ended; exit 3' TERM; sleep 2 > /dev/null 2>&1 & echo ready; wait`,
  ];
  const end = await runProgram(program({ args, tool: 'ncu', signal: stop.signal, stdout: out }));
  expect(end.stdoutTail).toBe('ready\nrecording ended\n');
  expect(end.exit_code).toBe(3);
});

onLinux(
  'the program excludes processes of nsys, and `first` excludes children of a program that is not a shell',
  async () => {
    const launcher = join(mkdtempSync(join(tmpdir(), 'inferscope-launcher-')), 'nsys-launcher');
    copyFileSync(realpathSync('/bin/sh'), launcher);
    const node = `"${process.execPath}" -e 'require("node:child_process").spawnSync("sleep", ["30"])'`;
    const child = spawn(
      launcher,
      ['-c', `"${launcher}" -c '"$0" -c "$1"; wait' sh "$1"; wait`, launcher, node],
      {
        detached: true,
      },
    );
    try {
      const namesOf = (pids: readonly number[]) =>
        pids.map((pid) => basename(readlinkSync(`/proc/${pid}/exe`)).replace(/^(dash|bash|busybox)$/, 'sh'));
      // A process has its parent's name between fork and exec: wait for the names, not for the count.
      await vi.waitFor(
        () => {
          const below = processesBelowProfiler(child.pid!);
          expect(namesOf(below.all)).toEqual(['sh', 'node', 'sleep']);
          expect(namesOf(below.first)).toEqual(['sh', 'node']);
        },
        { timeout: 30_000 },
      );
    } finally {
      process.kill(-child.pid!, 'SIGKILL');
      rmSync(join(launcher, '..'), { recursive: true });
    }
  },
);

/** "pid (name) state ppid pgrp session …" */
function sessionOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')[3]);
}
