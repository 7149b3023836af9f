import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import type { RunEnd, RunRequest } from './execute-run.js';
import { executorOnSlurm } from './execute-on-slurm.js';

afterEach(() => vi.unstubAllEnvs());

/** A cluster with two tasks, one running and one waiting, until scancel; sweep-on-slurm.slurm.test.ts uses a real one. */
function twoTasks(): { folder: string; isCanceled: () => boolean } {
  const folder = testFolder();
  const bin = join(folder, 'bin');
  const queue = join(folder, 'queue');
  mkdirSync(bin);
  writeFileSync(queue, '7_0|RUNNING|None\n7_1|PENDING|Resources\n');
  const program = (name: string, line: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  program('sbatch', 'echo 7');
  program('squeue', `cat '${queue}'`);
  program('scancel', `: > '${queue}'`);
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  return { folder, isCanceled: () => readFileSync(queue, 'utf8') === '' };
}

/** Both runs of `twoTasks`, interrupted after they were submitted. */
function interruptedRuns(folder: string): { ends: Promise<RunEnd>[]; kill: AbortController } {
  const [interrupt, kill] = [new AbortController(), new AbortController()];
  const execute = executorOnSlurm({ folder, options: [], maxTasks: null, onQueue: () => {} });
  const ends = ['run-001', 'run-002'].map((name): Promise<RunEnd> => {
    const request: RunRequest = {
      arguments: ['estimate'],
      logs: { folder, name },
      timeoutMs: null,
      secrets: [],
      signal: interrupt.signal,
      kill: kill.signal,
      onStart: () => interrupt.abort(),
    };
    return execute(request);
  });
  return { ends, kill };
}

test('after Ctrl-C, a result that becomes visible late is read, and none is awaited of a task that never started', async () => {
  const { folder, isCanceled } = twoTasks();
  const { ends } = interruptedRuns(folder);
  while (!isCanceled()) await sleep(50);
  await sleep(1000);
  writeFileSync(join(folder, 'run-001.end.json'), JSON.stringify({ exit_code: 130, lost: null }));
  const startedMs = performance.now();
  const [first, second] = await Promise.all(ends);
  expect(first).toEqual({ exit_code: 130, lost: null });
  expect(second!.lost!.what).toBe('task 7_1 of Slurm ended without a result');
  expect(performance.now() - startedMs).toBeLessThan(5000);
});

test('a second Ctrl-C does not wait for results', async () => {
  const { folder, isCanceled } = twoTasks();
  const { ends, kill } = interruptedRuns(folder);
  while (!isCanceled()) await sleep(50);
  kill.abort();
  const startedMs = performance.now();
  const [first] = await Promise.all(ends);
  expect(first!.lost!.what).toBe('task 7_0 of Slurm ended without a result');
  expect(performance.now() - startedMs).toBeLessThan(5000);
});
