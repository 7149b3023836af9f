// Compares inferscope ui with Perfetto's UI on the same capture in Chromium. Generate and import it first (README.md).
// node bench/ui/run.mjs SESSION… [--cli dist/cli.js] [--limit 300]      (limit: seconds in which Perfetto must open a trace)
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { build } from 'tsdown';
import { perfettoFolder } from '../../test/perfetto/download.mjs';

const { values, positionals: sessions } = parseArgs({
  allowPositionals: true,
  options: {
    cli: { type: 'string', default: 'dist/cli.js' },
    limit: { type: 'string', default: '300' },
    traces: { type: 'string' },
  },
});
if (sessions.length === 0) throw new Error('give a session');
console.log(
  `${cpus()[0].model}, ${cpus().length} cores, ${(totalmem() / 1e9).toFixed(0)} GB, load average ${loadavg()[0].toFixed(2)}, node ${process.version}`,
);
// In node_modules, so that the bundle finds playwright.
const outDir = mkdtempSync(join('node_modules', '.ui-bench-'));
const scratch = mkdtempSync(join(tmpdir(), 'inferscope-ui-bench-'));
try {
  await build({
    config: false,
    entry: { drive: 'bench/ui/drive.ts' },
    outDir,
    format: 'esm',
    platform: 'node',
    dts: false,
    logLevel: 'error',
    outExtensions: () => ({ js: '.mjs' }),
    external: ['playwright-core'],
  });
  for (const session of sessions) {
    const trace = join(values.traces ?? scratch, `${session}.trace.json`);
    const start = performance.now();
    if (!existsSync(trace)) {
      const { status } = spawnSync(
        process.execPath,
        [values.cli, 'export', session, '--format', 'perfetto', '--output', trace],
        { stdio: ['ignore', 'ignore', 'inherit'] },
      );
      if (status !== 0) throw new Error('inferscope export failed');
    }
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(
      `\n${session}: chrome trace of ${(statSync(trace).size / 1e6).toFixed(0)} MB, written in ${seconds} s`,
    );
    const measurement = spawnSync(
      process.execPath,
      [join(outDir, 'drive.mjs'), session, trace, perfettoFolder(), values.cli, values.limit],
      { stdio: 'inherit' },
    );
    if (measurement.status !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(outDir, { recursive: true, force: true });
  rmSync(scratch, { recursive: true, force: true });
}
