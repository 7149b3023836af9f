// Measures the import of a large nsys capture with attribution and its kernel and stage summaries, and compares it with lower limits
// measured in the same run: the time of only the joins in DuckDB. Generate first: node bench/nsys-import/generate.mjs FOLDER
// node bench/nsys-import/run.mjs FOLDER [--cli dist/cli.js] [--nsys-ai PATH]   (PATH: command of another analyzer)
import { DuckDBInstance } from '@duckdb/node-api';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { cli: { type: 'string', default: 'dist/cli.js' }, 'nsys-ai': { type: 'string' } },
});
const [folder] = positionals;
if (!folder) throw new Error('give the folder that generate.mjs wrote');
const parquetdir = join(folder, 'synthetic.parquetdir');
const table = (name) => `'${join(parquetdir, name)}.parquet'`;

/** Resident bytes of a process and its descendants. */
function treeBytes(root) {
  const parents = new Map();
  const resident = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      parents.set(Number(pid), Number(/^PPid:\s+(\d+)/m.exec(status)[1]));
      resident.set(Number(pid), Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024);
    } catch {
      // The process has exited.
    }
  }
  const isDescendant = (pid) => {
    for (let ancestor = pid; ancestor > 1; ancestor = parents.get(ancestor) ?? 0)
      if (ancestor === root) return true;
    return false;
  };
  return [...resident].filter(([pid]) => isDescendant(pid)).reduce((sum, [, bytes]) => sum + bytes, 0);
}

async function runTimed(command, args) {
  const home = mkdtempSync(join(tmpdir(), 'inferscope-bench-'));
  const start = performance.now();
  const child = spawn(command, args, {
    env: { ...process.env, INFERSCOPE_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // The summaries are printed before the explanation and the page are written.
  let summarySeconds = null;
  child.stdout.on('data', () => (summarySeconds = (performance.now() - start) / 1000));
  let stderrText = '';
  child.stderr.on('data', (text) => (stderrText += text));
  let peak = 0;
  const sampler = setInterval(() => (peak = Math.max(peak, treeBytes(child.pid))), 25);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampler);
  const seconds = (performance.now() - start) / 1000;
  rmSync(home, { recursive: true, force: true });
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}: ${stderrText.slice(-2000)}`);
  return { seconds, summarySeconds, peak };
}

async function querySeconds(sql) {
  const instance = await DuckDBInstance.create(':memory:');
  const db = await instance.connect();
  const start = performance.now();
  await db.run(sql);
  const seconds = (performance.now() - start) / 1000;
  db.closeSync();
  return seconds;
}

const connection = await (await DuckDBInstance.create(':memory:')).connect();
const count = async (name) =>
  Number((await (await connection.run(`SELECT count(*) FROM ${table(name)}`)).getRowsJS())[0][0]);
const rows =
  (await count('CUPTI_ACTIVITY_KIND_KERNEL')) +
  (await count('CUPTI_ACTIVITY_KIND_RUNTIME')) +
  (await count('NVTX_EVENTS'));

const out = join(mkdtempSync(join(tmpdir(), 'inferscope-bench-')), 'join.parquet');
console.log(`load average ${loadavg()[0].toFixed(2)}, ${rows} rows, node ${process.version}`);
console.log(
  'limit: equi-join of kernels and calls, written     ',
  (
    await querySeconds(`COPY (SELECT k.*, r.start AS api_start, r."end" AS api_end, r.globalTid FROM ${table('CUPTI_ACTIVITY_KIND_KERNEL')} k
    JOIN ${table('CUPTI_ACTIVITY_KIND_RUNTIME')} r USING (correlationId)) TO '${out}' (FORMAT parquet, COMPRESSION zstd)`)
  ).toFixed(2),
  's',
);
console.log(
  'limit: flat ASOF join of calls and ranges, counted ',
  (
    await querySeconds(`SELECT count(n.text) FROM ${table('CUPTI_ACTIVITY_KIND_RUNTIME')} r
    ASOF JOIN (SELECT * FROM ${table('NVTX_EVENTS')} WHERE text IS NOT NULL) n ON r.globalTid = n.globalTid AND r.start >= n.start`)
  ).toFixed(2),
  's',
);
rmSync(join(out, '..'), { recursive: true, force: true });

for (const [name, goal] of [
  ['synthetic.parquetdir', 6],
  ['synthetic.sqlite', 20],
]) {
  const path = join(folder, name);
  if (!existsSync(path)) continue;
  const { seconds, summarySeconds, peak } = await runTimed(process.execPath, [
    values.cli,
    'import',
    path,
    '--no-raw',
    '--json',
  ]);
  const size = statSync(path).isFile()
    ? statSync(path).size
    : readdirSync(path).reduce((sum, file) => sum + statSync(join(path, file)).size, 0);
  console.log(
    `import ${name.padEnd(22)} ${(size / 1e6).toFixed(0).padStart(4)} MB  summaries after ${summarySeconds.toFixed(2)} s (goal ${goal})  ` +
      `${(rows / summarySeconds / 1e6).toFixed(2)} M rows/s  with explanation and page ${seconds.toFixed(2)} s  ` +
      `peak ${(peak / 1e9).toFixed(2)} GB (goal 1.5), load average ${loadavg()[0].toFixed(2)}`,
  );
}

const sqlite = join(folder, 'synthetic.sqlite');
if (values['nsys-ai'] && existsSync(sqlite)) {
  // In a separate folder, because it writes caches next to the file.
  const separate = mkdtempSync(join(tmpdir(), 'inferscope-bench-'));
  const link = join(separate, 'synthetic.sqlite');
  symlinkSync(resolve(sqlite), link);
  const { seconds, peak } = await runTimed(values['nsys-ai'], ['summary', link]);
  rmSync(separate, { recursive: true, force: true });
  console.log(
    `nsys-ai summary synthetic.sqlite (kernels by time and streams)  ${seconds.toFixed(2)} s  ` +
      `${(rows / seconds / 1e6).toFixed(2)} M rows/s  peak ${(peak / 1e9).toFixed(2)} GB, load average ${loadavg()[0].toFixed(2)}`,
  );
}
