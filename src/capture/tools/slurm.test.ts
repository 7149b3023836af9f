import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, expect, test, vi } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { partitionCores, tasksForShort } from './slurm.js';

afterEach(() => vi.unstubAllEnvs());

/** A cluster with two partitions: 64 cores by default, 2048 with some nodes down. */
function stubSinfo(): void {
  const bin = join(testFolder(), 'bin');
  mkdirSync(bin);
  const lines = [
    '#!/bin/sh',
    String.raw`printf 'cpu*|60/4/16/80\nlarge|0/2000/0/2000\nlarge|48/0/0/48\n' | if [ "$2" = --partition ]; then grep "^$3[*|]"; else cat; fi`,
  ];
  writeFileSync(join(bin, 'sinfo'), `${lines.join('\n')}\n`, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
}

test('counts the cores of the partition that sbatch is given, without those that are down', async () => {
  stubSinfo();
  expect(await partitionCores([])).toBe(64);
  expect(await partitionCores(['--time=5', '--partition=large'])).toBe(2048);
  expect(await partitionCores(['-p', 'large', '--partition', 'cpu'])).toBe(64);
  expect(await partitionCores(['-plarge'])).toBe(2048);
  expect(await partitionCores(['--partition=nowhere'])).toBe(null);
  vi.stubEnv('SBATCH_PARTITION', 'large');
  expect(await partitionCores([])).toBe(2048);
});

test('short orders are tasks of their own where enough can run at a time, and of 16 orders at most', () => {
  expect(tasksForShort(128, 2)).toBe(8);
  expect(tasksForShort(1024, 2)).toBe(64);
  expect(tasksForShort(1024, 64)).toBe(256);
  expect(tasksForShort(100, 64)).toBe(100);
  expect(tasksForShort(100, null)).toBe(100);
  expect(tasksForShort(3, 1)).toBe(3);
});
