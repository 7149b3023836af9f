import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { claimFolder } from './claim.js';
import { findProcess } from './running.js';

/** A process with these words on its command line that lives until it is killed. */
function spawnIdleProcess(...words: string[]) {
  return spawn(process.execPath, ['-e', 'process.stdout.write("up"); setInterval(() => {}, 1e6)', ...words], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

test('only one sweep at a time can use a folder; the lock of a killed one is taken over', async () => {
  const folder = join(testFolder(), 'results');
  const lock = join(folder, `.sweep-${hostname()}.lock`);
  claimFolder(folder)();
  expect(readdirSync(folder)).toEqual([]);

  const otherSweep = spawnIdleProcess('sweep');
  await once(otherSweep.stdout, 'data');
  writeFileSync(lock, String(otherSweep.pid));
  expect(() => claimFolder(folder)).toThrow(
    new RegExp(`another sweep is running in .* \\(process ${otherSweep.pid}\\)`),
  );
  otherSweep.kill('SIGKILL');
  await once(otherSweep, 'exit');

  const release = claimFolder(folder);
  expect(existsSync(lock)).toBe(true);
  release();
  expect(existsSync(lock)).toBe(false);
});

test.runIf(process.platform === 'linux')(
  'finds a run by its command line if its process id was not recorded',
  async () => {
    const words = ['memory', '--output', `results/of-${process.pid}.json`];
    expect(findProcess(words)).toBeNull();
    const run = spawnIdleProcess(...words);
    await once(run.stdout, 'data');
    expect(findProcess(words)).toBe(run.pid);
    expect(findProcess(words.slice(1))).toBe(run.pid);
    expect(findProcess(['--output', 'results/of-.json'])).toBeNull();
    run.kill('SIGKILL');
    await once(run, 'exit');
    expect(findProcess(words)).toBeNull();
  },
);
