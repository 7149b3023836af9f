// usage: node bench/kineto-import/run.mjs TRACE [attribute] [--hta PYTHON]   (make TRACE with generate.mjs)
// PYTHON has HolisticTraceAnalysis, e.g. in a virtual environment; it reads the same file after inferscope.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'tsdown';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { hta: { type: 'string' } } });
const [path, attributeArgument = ''] = positionals;
if (!path) throw new Error('give the file that generate.mjs wrote');

const htaProgram = `
import json, resource, sys, time
from hta.trace_analysis import TraceAnalysis
begin = time.perf_counter()
rows = len(TraceAnalysis(trace_files={0: sys.argv[1]}).t.get_trace(0))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"load_s": time.perf_counter() - begin, "cpu_s": used.ru_utime + used.ru_stime,
  "peak_rss_mb": used.ru_maxrss // 1024, "rows": rows}))
`;
/** HolisticTraceAnalysis only reads the trace into its table. */
function hta(python) {
  const talk = ['ignore', 'pipe', 'ignore'];
  const out = execFileSync(python, ['-c', htaProgram, path], { encoding: 'utf8', stdio: talk });
  return JSON.parse(out.trim().split('\n').at(-1));
}
// In node_modules, so that the bundle finds DuckDB.
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
  const show = (who, result) =>
    console.log(
      `${who}: ${Math.round(megabytes)} MB, ${Math.round(megabytes / result.load_s)} MB/s, ` +
        `load average ${loadavg()[0].toFixed(1)}:`,
      JSON.stringify(result),
    );
  for (const threads of [1, 2]) {
    const args = [
      join(outDir, 'load.mjs'),
      path,
      String(threads),
      join(process.cwd(), outDir, 'worker.mjs'),
      ...(attributeArgument ? [attributeArgument] : []),
    ];
    show('inferscope', JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })));
  }
  if (values.hta) show('HolisticTraceAnalysis', hta(values.hta));
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
