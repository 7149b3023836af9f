// usage: node bench/kineto-import/run.mjs TRACE [attribute] [--hta PYTHON]   (make TRACE with generate.mjs)
// Measures the import of a Kineto trace. PYTHON has HolisticTraceAnalysis, which then reads the same file.
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
start = time.perf_counter()
rows = len(TraceAnalysis(trace_files={0: sys.argv[1]}).t.get_trace(0))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"load_s": time.perf_counter() - start, "cpu_s": used.ru_utime + used.ru_stime,
  "peak_rss_mb": used.ru_maxrss // 1024, "rows": rows}))
`;
/** Reads the trace into the table of HolisticTraceAnalysis, without analyses. */
function loadWithHta(python) {
  const stdio = ['ignore', 'pipe', 'ignore'];
  const stdout = execFileSync(python, ['-c', htaProgram, path], { encoding: 'utf8', stdio });
  return JSON.parse(stdout.trim().split('\n').at(-1));
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
  const printResult = (tool, result) =>
    console.log(
      `${tool}: ${Math.round(megabytes)} MB, ${Math.round(megabytes / result.load_s)} MB/s, ` +
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
    printResult('inferscope', JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })));
  }
  if (values.hta) printResult('HolisticTraceAnalysis', loadWithHta(values.hta));
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
