// usage: node bench/kineto-import/run.mjs TRACE [attribute]   (make TRACE with generate.mjs)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsdown';

const [path, also = ''] = process.argv.slice(2);
// Below node_modules, so that the bundle finds DuckDB.
const outDir = mkdtempSync(join('node_modules', '.kineto-bench-'));
try {
  const entry = { load: 'bench/kineto-import/load.ts', worker: 'src/import/kineto/worker.ts' };
  await build({
    config: false,
    entry,
    outDir,
    format: 'esm',
    platform: 'node',
    dts: false,
    logLevel: 'error',
    outExtensions: () => ({ js: '.mjs' }),
  });
  const megabytes = statSync(path).size / 1e6;
  for (const threads of [1, 2]) {
    const args = [
      join(outDir, 'load.mjs'),
      path,
      String(threads),
      join(process.cwd(), outDir, 'worker.mjs'),
      ...(also ? [also] : []),
    ];
    const result = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    console.log(
      `${Math.round(megabytes)} MB, ${Math.round(megabytes / result.load_s)} MB/s:`,
      JSON.stringify(result),
    );
  }
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
