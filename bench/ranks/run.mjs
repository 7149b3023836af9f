// usage: npm run build && node bench/ranks/run.mjs [--ranks 16] [--thousands 100] [--jobs 2] [--single 4] [--folder DIR] [--home DIR]
// Imports one trace per rank; prints CPU time, wall time and memory of the merge compared with the imports,
// and of the imports compared with those of single files (a sample, one after the other, as many as --single). The session stays in --home.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '16' },
    thousands: { type: 'string', default: '100' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    single: { type: 'string', default: '4' },
    folder: { type: 'string' },
    home: { type: 'string' },
  },
});
const options = ['--no-raw', '--no-analyze'];
const scratch = mkdtempSync(join(tmpdir(), 'ranks-bench-'));
const home = resolve(values.home ?? join(scratch, 'home'));
const folder = resolve(values.folder ?? join(scratch, 'traces'));
const outDir = mkdtempSync(join('node_modules', '.ranks-bench-'));
const ticksPerS = 100;

/** Peak resident memory of a process until now, MB; 0 if it has exited. */
function peakMb(pid) {
  try {
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Math.round(Number(peak?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}

/** CPU seconds of a process and its exited children, and its peak memory, MB. */
function readUsage(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ').map(Number);
  return {
    time_s: performance.now() / 1e3,
    own_cpu_s: (fields[11] + fields[12]) / ticksPerS,
    children_cpu_s: (fields[13] + fields[14]) / ticksPerS,
    peak_mb: peakMb(pid),
  };
}

/** Mean CPU and wall seconds of importing one file: `count` files, evenly spread over the ranks, one after the other. */
function measureSingleImports(count) {
  const files = readdirSync(folder).toSorted();
  const before = readUsage(process.pid);
  for (let index = 0; index < count; index += 1)
    execFileSync(
      process.execPath,
      ['dist/cli.js', 'import', join(folder, files[Math.floor((index * files.length) / count)]), ...options],
      { env: { ...process.env, INFERSCOPE_HOME: join(scratch, 'single') }, stdio: 'ignore' },
    );
  const after = readUsage(process.pid);
  return {
    cpu: (after.children_cpu_s - before.children_cpu_s) / count,
    wall: (after.time_s - before.time_s) / count,
  };
}

/** Calls `visit` with the ids of a process's children ten times per second until the returned function is called. */
function watchChildren(pid, visit) {
  const timer = setInterval(() => {
    if (!existsSync(`/proc/${pid}/task/${pid}/children`)) return;
    const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    for (const id of ids === '' ? [] : ids.split(' ')) visit(id);
  }, 100);
  return () => clearInterval(timer);
}

/** The number of ranks with an offset that differs from the planted one (in the middle of the run) by more than the import's error bound. */
function countWrongClocks() {
  const planted = JSON.parse(readFileSync(`${folder}-clocks.json`, 'utf8'));
  const [session] = readdirSync(join(home, 'sessions'));
  const artifacts = join(home, 'sessions', session, 'artifacts', 'session');
  const { clocks } = JSON.parse(readFileSync(join(artifacts, 'ranks.json'), 'utf8'));
  return clocks.filter(
    ({ rank, offset_ns, bound_ns }) =>
      bound_ns === null || Math.abs(offset_ns - planted[rank].middle_offset_ns) > bound_ns,
  ).length;
}

try {
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true });
    const { build } = await import('tsdown');
    const entry = { generate: 'bench/ranks/generate.ts' };
    await build({
      config: false,
      entry,
      outDir,
      format: 'esm',
      platform: 'node',
      dts: false,
      logLevel: 'error',
    });
    const generatorOutput = execFileSync(process.execPath, [
      join(outDir, 'generate.mjs'),
      folder,
      values.ranks,
      values.thousands,
    ]);
    console.log(generatorOutput.toString().trim());
  }
  const child = spawn(
    process.execPath,
    ['dist/cli.js', 'import', folder, '--ranks', ...options, '--jobs', values.jobs],
    { env: { ...process.env, INFERSCOPE_HOME: home }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'exit');
  let taskPeakMb = 0;
  const stopWatching = watchChildren(child.pid, (id) => {
    taskPeakMb = Math.max(taskPeakMb, peakMb(id));
  });
  const start = performance.now() / 1e3;
  const marks = {};
  for await (const line of createInterface(child.stderr))
    for (const mark of ['merging', 'session saved'])
      if (line.includes(mark)) marks[mark] ??= readUsage(child.pid);
  const [code] = await exited;
  stopWatching();
  if (code !== 0) throw new Error(`import exited with ${code}`);
  const { merging, 'session saved': saved } = marks;
  const cpu = { imports: merging.children_cpu_s, merge: saved.own_cpu_s - merging.own_cpu_s };
  const wall = { imports: merging.time_s - start, merge: saved.time_s - merging.time_s };
  const single = measureSingleImports(Number(values.single));
  const slots = Math.min(Number(values.jobs), Number(values.ranks));
  const share = (seconds) => Number((seconds.merge / seconds.imports).toFixed(3));
  console.log(
    JSON.stringify({
      ...values,
      cpu_s: cpu,
      wall_s: wall,
      merge_of_imports: { cpu: share(cpu), wall: share(wall) },
      single_import_s: single,
      imports_of_singles: {
        cpu: Number((cpu.imports / (single.cpu * values.ranks)).toFixed(3)),
        wall: Number((wall.imports / ((single.wall * values.ranks) / slots)).toFixed(3)),
      },
      task_peak_mb: taskPeakMb,
      merge_peak_mb: saved.peak_mb,
      wrong_clocks: countWrongClocks(),
    }),
  );
} finally {
  rmSync(outDir, { recursive: true, force: true });
  rmSync(scratch, { recursive: true, force: true });
}
