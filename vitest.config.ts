import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['src/**/*.test.ts', 'src/**/*.test.tsx'], testTimeout: 60_000 } },
      // These run the built binary: `npm run build` first (npm test does).
      {
        test: { name: 'cli', include: ['test/cli/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 180_000 },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
