// Compares the times per kernel of `inferscope kernels` with those of nsys around the same loop. See README.md.
// node bench/kernels-vs-nsys/run.mjs [--python python3] [--cli dist/cli.js]; needs a GPU and nsys; exits with 1 if they differ by more than 2 %.
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
  if (ran.status !== 0) throw new Error(`inferscope ${args[0]} exited with ${ran.status}\n${ran.stdout}`);
  return ran.stdout;
}

/** Rows of a query, with the session's start on the wall clock in ns as `zero`, because both sessions were recorded on this machine. */
function queryRows(session, sql) {
  const document = JSON.parse(inferscope(['session', 'show', session, '--json']));
  const zero = Date.parse(document.data.manifest.started_at) * 1e6;
  const { columns, rows: rowValues } = JSON.parse(
    inferscope(['sql', sql, '--session', session, '--json', '--max-rows', '100000000', '--timeout-s', '120']),
  ).data;
  return rowValues.map((row) => ({
    zero,
    ...Object.fromEntries(columns.map(({ name }, i) => [name, row[i]])),
  }));
}

/** Sizes with long kernels only, because events include the time between two kernels, which must be short compared with the goal. */
const sizes = ['--batch-size', '8', '--seq-len', '8192', '--hidden-size', '4096'];
const kernels = ['gemm', 'linear', 'softmax', 'rmsnorm', 'layernorm-gelu', 'swiglu', 'embedding'];

try {
  const kernelsRun = [
    'kernels',
    ...kernels,
    ...sizes,
    '--no-graph',
    '--no-check',
    '--output',
    join(scratch, 'results'),
  ];
  const nsysRun = [
    'run',
    '--name',
    'nsys',
    '--evaluator',
    'nsys',
    '--no-analyze',
    '--',
    process.execPath,
    cli,
  ];
  inferscope([...nsysRun, ...kernelsRun, '--runs', '50', '--max-seconds', '1', '--name', 'timed', '--quiet']);
  // Two profilers cannot share a process, so PyTorch's profiler counts the kernels per run in a separate process.
  const traced = JSON.parse(
    inferscope([...kernelsRun, '--runs', '3', '--max-seconds', '0.1', '--trace', '--json', '--quiet']),
  );
  const kernelsPerRun = new Map(
    traced.data.cases.map((benchCase) => [
      benchCase.case,
      (benchCase.behind ?? [])
        .filter(({ what }) => what === 'kernel')
        .reduce((sum, { count }) => sum + count, 0),
    ]),
  );
  const cases = queryRows(
    'timed',
    "SELECT case_id, start_ns, end_ns, mean_ns FROM microbenchmarks WHERE outcome = 'measured' ORDER BY start_ns",
  );
  // Between runs the cache is overwritten, and the device waits until they are queued.
  const launches = queryRows(
    'nsys',
    "SELECT start_ns, dur_ns FROM kernels WHERE name NOT LIKE '%FillFunctor%' AND name NOT LIKE '%spin_kernel%' ORDER BY start_ns",
  );
  let worst = 0;
  console.log(
    '| case | kernels per run | runs seen | inferscope, µs | nsys, µs | difference |\n| --- | --- | --- | --- | --- | --- |',
  );
  for (const benchCase of cases) {
    const [from, to] = [benchCase.start_ns + benchCase.zero, benchCase.end_ns + benchCase.zero];
    // The edges are known only to a millisecond; the middle of the timed part certainly belongs to this case.
    const margin = Math.max(2e6, 0.1 * (to - from));
    const kernels = launches.filter(
      ({ start_ns, zero }) => start_ns + zero >= from + margin && start_ns + zero <= to - margin,
    );
    const perRun = kernelsPerRun.get(benchCase.case_id);
    const runs = kernels.length / perRun;
    const nsys_ns = kernels.reduce((sum, { dur_ns }) => sum + dur_ns, 0) / runs;
    const difference = benchCase.mean_ns / nsys_ns - 1;
    worst = Math.max(worst, Number.isFinite(difference) ? Math.abs(difference) : 1);
    console.log(
      `| ${benchCase.case_id} | ${perRun} | ${Math.round(runs)} | ${(benchCase.mean_ns / 1e3).toFixed(2)} | ${(nsys_ns / 1e3).toFixed(2)} | ${(100 * difference).toFixed(2)} % |`,
    );
  }
  console.log(`\nworst ${(100 * worst).toFixed(2)} %, goal ${100 * goal} %`);
  process.exitCode = cases.length > 0 && worst <= goal ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
