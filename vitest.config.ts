import { availableParallelism } from 'node:os';
import process from 'node:process';
import { defineConfig } from 'vitest/config';

// What is asserted of printed text is that of a pipe without COLUMNS: 80 columns.
delete process.env['COLUMNS'];

// These tests start processes, servers, signals and a browser, on CI's two cores several at a time: a clash of clocks
// there may be tried once more (vitest says so). What is wrong fails twice. Tests in one process get no second try.
const retry = process.env['CI'] ? 1 : 0;

/** Tests in one process. */
const inOneProcess = {
  // Files of a worker share their modules: importing them anew for each took half of the time. Tests restore what they
  // change (environment, clocks, spies), which --isolate can show where one fails only among others.
  isolate: false,
  env: { INFERSCOPE_DUCKDB_THREADS: '1' },
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    globalSetup: ['test/temporary-folder.mjs'],
    // vitest's own choice is cores - 1: on two cores everything would run one after the other.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'src/**/*.test.tsx'],
          exclude: ['src/**/*.{score,long,slurm}.test.ts'],
          ...inOneProcess,
        },
      },
      // Whole analyses of sessions, ten seconds and more a file (npm run test:long; test:unit -- FOLDER has them too).
      {
        test: {
          name: 'unit-long',
          include: ['src/**/*.long.test.ts'],
          ...inOneProcess,
          retry,
          testTimeout: 120_000,
        },
      },
      // What the findings make of every planted fault: five minutes (npm run test:score).
      {
        test: {
          name: 'score',
          include: ['src/**/*.score.test.ts'],
          env: { INFERSCOPE_DUCKDB_THREADS: '1' },
          testTimeout: 600_000,
          hookTimeout: 60_000,
        },
      },
      // These run the built binary: `npm run build` first (npm test does).
      {
        test: {
          name: 'cli',
          retry,
          include: ['test/cli/**/*.test.ts'],
          exclude: ['test/cli/**/*.long.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      // Ten seconds and more of one matter: interrupts, loads, sweeps, secrets, hostile names, whole captures (npm run test:long).
      {
        test: {
          name: 'long',
          retry,
          include: ['test/{cli,browser}/**/*.long.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      // Perfetto's own UI opens exports (npm run test:perfetto downloads it).
      {
        test: {
          name: 'perfetto',
          include: ['test/perfetto/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      // Sessions read by other engines (npm run test:engines installs them).
      {
        test: {
          name: 'engines',
          include: ['test/engines/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 180_000,
        },
      },
      // Jobs of a Slurm that npm run test:slurm starts; one file after the other, for all see one queue.
      {
        test: {
          name: 'slurm',
          include: ['src/**/*.slurm.test.ts'],
          retry,
          fileParallelism: false,
          testTimeout: 180_000,
        },
      },
      // The pictures of README and docs (npm run picture).
      { test: { name: 'picture', include: ['test/browser/**/*.picture.ts'], testTimeout: 120_000 } },
      {
        test: {
          name: 'browser',
          retry,
          include: ['test/browser/**/*.test.ts'],
          exclude: ['test/browser/**/*.long.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
