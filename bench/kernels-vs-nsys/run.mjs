// Per-kernel times of `inferscope kernels` beside those of nsys around the same loop. See README.md.
// node bench/kernels-vs-nsys/run.mjs [--python python3] [--cli dist/cli.js]; needs a GPU and nsys; ends with 1 when over 2 %.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    python: { type: 'string', default: process.env.INFERSCOPE_PYTHON ?? 'python3' },
    cli: { type: 'string', default: join(here, '..', '..', 'dist', 'cli.js') },
  },
});
const goal = 0.02;
const cli = resolve(values.cli);
const scratch = mkdtempSync(join(tmpdir(), 'inferscope-bench-kernels-nsys-'));
const env = { ...process.env, INFERSCOPE_HOME: join(scratch, 'home'), INFERSCOPE_PYTHON: values.python };

function inferscope(args, more = {}) {
  const ran = spawnSync(process.execPath, [cli, ...args], {
    cwd: scratch,
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...more,
  });
  if (ran.status !== 0) throw new Error(`inferscope ${args[0]} ended with ${ran.status}\n${ran.stdout}`);
  return ran.stdout;
}

/** Rows with times in ns of the wall clock: both sessions were made on this machine. */
function rows(session, sql) {
  const shown = JSON.parse(inferscope(['session', 'show', session, '--json']));
  const zero = Date.parse(shown.data.manifest.started_at) * 1e6;
  const { columns, rows: found } = JSON.parse(
    inferscope(['sql', sql, '--session', session, '--json', '--max-rows', '100000000', '--timeout-s', '120']),
  ).data;
  return found.map((row) => ({ zero, ...Object.fromEntries(columns.map(({ name }, i) => [name, row[i]])) }));
}

/** Long kernels: the time between two of them, which events hold and kernels do not, is below the goal. */
const sizes = ['--batch-size', '8', '--seq-len', '2048', '--hidden-size', '4096'];
const kernels = ['gemm', 'linear', 'attention', 'softmax', 'rmsnorm', 'layernorm-gelu', 'swiglu'];

try {
  const inner = [
    process.execPath,
    cli,
    'kernels',
    ...kernels,
    ...sizes,
    '--no-graph',
    '--no-check',
    '--runs',
    '50',
  ];
  const around = ['run', '--name', 'around', '--evaluator', 'nsys', '--no-analyze', '--'];
  inferscope([
    ...around,
    ...inner,
    '--max-seconds',
    '1',
    '--name',
    'timed',
    '--output',
    join(scratch, 'results'),
    '--quiet',
  ]);
  const cases = rows(
    'timed',
    "SELECT case_id, start_ns, end_ns, mean_ns, median_ns, runs, per_sample FROM microbenchmarks WHERE outcome = 'measured' ORDER BY start_ns",
  );
  const launched = rows('around', 'SELECT short_name, start_ns, dur_ns FROM kernels ORDER BY start_ns');
  let worst = 0;
  console.log(
    '| case | kernels a run | inferscope, µs | nsys, µs | apart |\n| --- | --- | --- | --- | --- |',
  );
  for (const one of cases) {
    const [from, to] = [one.start_ns + one.zero, one.end_ns + one.zero];
    const own = launched.filter((k) => k.start_ns + k.zero >= from - 1e6 && k.start_ns + k.zero <= to + 1e6);
    // Warm-up runs and the batches that time themselves are the same kernels: a run is what divides them evenly.
    const names = groupBy(own);
    const counts = [...names.values()].map((list) => list.length);
    const most = Math.max(...counts);
    const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
    let perRun = 0;
    let each = 0;
    for (const list of names.values()) {
      if (list.length < most / 2) continue;
      const times = Math.round(list.length / Math.min(...counts.filter((n) => n >= most / 2)));
      each += times * median(list.map((k) => k.dur_ns));
      perRun += times;
    }
    const apart = one.median_ns / each - 1;
    worst = Math.max(worst, Math.abs(apart));
    console.log(
      `| ${one.case_id} | ${perRun} | ${(one.median_ns / 1e3).toFixed(2)} | ${(each / 1e3).toFixed(2)} | ${(100 * apart).toFixed(2)} % |`,
    );
  }
  console.log(`\nworst ${(100 * worst).toFixed(2)} %, goal ${100 * goal} %`);
  process.exitCode = cases.length > 0 && worst <= goal ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function groupBy(list) {
  const found = new Map();
  for (const one of list) found.set(one.short_name, [...(found.get(one.short_name) ?? []), one]);
  return found;
}
