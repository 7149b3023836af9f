import { availableParallelism } from 'node:os';
import process from 'node:process';
import { defineConfig } from 'vitest/config';

// Tests of printed text expect 80 columns, the width of a pipe when COLUMNS is not set.
delete process.env['COLUMNS'];

// Tests that start processes, servers or a browser run several at a time on CI's two cores and may fail there because
// of timing, so vitest retries them once (and reports it). Tests of the project unit are not retried.
const retry = process.env['CI'] ? 1 : 0;

/** Options shared by the projects unit and unit-long. */
const inOneProcess = {
  // Test files in one worker share their modules: importing them again for each file took half of the time. Tests restore
  // what they change (environment, clocks, spies). If a test fails only together with others, run it with --isolate.
  isolate: false,
  env: { INFERSCOPE_DUCKDB_THREADS: '1' },
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    globalSetup: ['test/temporary-folder.mjs'],
    // The default of vitest is cores - 1, which is a single worker on two cores.
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
      // Tests that analyze whole sessions, ten seconds or more per file (npm run test:long; npm run test:unit -- FOLDER).
      {
        test: {
          name: 'unit-long',
          include: ['src/**/*.long.test.ts'],
          ...inOneProcess,
          retry,
          testTimeout: 120_000,
        },
      },
      // Compares the findings for every planted fault with the expected ones: five minutes (npm run test:score).
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
      // Tests of the binary and of pages that take ten seconds or more per file (npm run test:long).
      {
        test: {
          name: 'long',
          retry,
          include: ['test/{cli,browser}/**/*.long.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      // Exports opened in Perfetto's UI (npm run test:perfetto downloads it).
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
      // Jobs of a Slurm that npm run test:slurm starts; files run in sequence, because they share one queue.
      {
        test: {
          name: 'slurm',
          include: ['src/**/*.slurm.test.ts'],
          retry,
          fileParallelism: false,
          testTimeout: 180_000,
        },
      },
      // Draws the pictures of README and docs (npm run picture).
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
