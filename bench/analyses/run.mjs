// Measures the time of every analysis of an imported GPU session, of its report, and until the page is open. First: inferscope import CAPTURE
// node bench/analyses/run.mjs SESSION-FOLDER [CLI.js]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { build } from 'tsdown';

const folder = resolve(process.argv[2] ?? '');
const cli = process.argv[3] ?? 'dist/cli.js';
// In node_modules, so that the bundle finds DuckDB.
const outDir = mkdtempSync(join('node_modules', '.analyses-bench-'));
try {
  await build({
    config: false,
    entry: { time: 'bench/analyses/time.ts', open: 'bench/analyses/open.ts' },
    outDir,
    format: 'esm',
    platform: 'node',
    dts: false,
    logLevel: 'error',
    outExtensions: () => ({ js: '.mjs' }),
    external: ['playwright-core'],
  });
  const analyses = spawnSync(process.execPath, [join(outDir, 'time.mjs'), folder], { stdio: 'inherit' });
  const page = join(outDir, 'report.html');
  const start = performance.now();
  const { status } = spawnSync(
    process.execPath,
    [cli, 'report', '--session', basename(folder), '--output', page],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, INFERSCOPE_HOME: dirname(dirname(folder)) },
    },
  );
  if (status !== 0) throw new Error('inferscope report failed');
  const seconds = (performance.now() - start) / 1000;
  console.log(`inferscope report    ${seconds.toFixed(2)} s, ${(statSync(page).size / 1e6).toFixed(2)} MB`);
  const opening = spawnSync(process.execPath, [join(outDir, 'open.mjs'), page], { stdio: 'inherit' });
  process.exitCode = analyses.status || opening.status || 0;
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
