// Makes sessions from the captures of capture.sh: node bench/diagnosis/sessions.mjs CAPTURES --out FOLDER [--cli dist/cli.js] [--jobs 6]
//   [--roofline FILE] [--kineto] [--only fault,…]
// Writes one archive per program, with its nsys capture (--kineto: its trace of PyTorch's profiler), its stages without a profiler and its
// counters. Run it on the machine of the captures after `inferscope roofline`, so that the sessions have the GPU's roofline. Exits with 1 if an
// archive cannot be made.
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string' },
    cli: { type: 'string', default: join(here, '..', '..', 'dist', 'cli.js') },
    jobs: { type: 'string', default: '6' },
    only: { type: 'string' },
    roofline: { type: 'string' },
    kineto: { type: 'boolean', default: false },
  },
});
const captures = resolve(positionals[0] ?? '.');
const out = resolve(values.out ?? join(captures, 'sessions'));
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), 'inferscope-diagnosis-'));
cpSync(join(here, 'stages.yaml'), join(work, 'inferscope.yaml'));

const lines = (path) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : [];

/**
 * Writes the rows of one program into a separate file, and returns its path. ncu's raw page has the kernels of all programs, with ids from 0 in
 * the order of the captures.
 */
const writeCounters = (() => {
  const path = join(captures, 'ncu', 'raw.csv');
  if (!existsSync(path)) return () => null;
  const rows = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('"'));
  const head = rows.slice(0, 2);
  const ids = new Map();
  let next = 0;
  for (const { fault, variant, kernels, failed } of lines(join(captures, 'ncu', 'order.jsonl'))) {
    if (failed !== undefined || kernels === undefined) continue;
    ids.set(`${fault}-${variant}`, [next, next + kernels]);
    next += kernels;
  }
  return (name) => {
    const range = ids.get(name);
    if (!range) return null;
    const programRows = rows.slice(2).filter((row) => {
      const id = Number(/^"(\d+)"/.exec(row)?.[1]);
      return id >= range[0] && id < range[1];
    });
    if (programRows.length === 0) return null;
    const file = join(work, `${name}.ncu.csv`);
    writeFileSync(file, [...head, ...programRows, ''].join('\n'));
    return file;
  };
})();

/** Links a file under the name of its program, because a session stores the import command, which must have no path of this machine. */
function linkIntoWork(path, name) {
  const link = path.endsWith('.parquetdir') ? `${name}.parquetdir` : basename(path);
  if (!existsSync(join(work, link))) symlinkSync(path, join(work, link));
  return link;
}

function run(args) {
  return new Promise((done) => {
    const child = spawn(process.execPath, [resolve(values.cli), ...args], {
      cwd: work,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (output += data));
    child.on('close', (code) => done({ code, output }));
  });
}

const only = values.only?.split(',');
const parseTraceName = (name) =>
  /^(?<fault>.*)-(?<variant>fault|fixed)\.kineto\.json\.gz$/.exec(name)?.groups;
const programs = values.kineto
  ? readdirSync(join(captures, 'time')).flatMap((name) => parseTraceName(name) ?? [])
  : lines(join(captures, 'nsys', 'order.jsonl')).filter(({ report }) => report !== undefined);
const todo = programs.filter(({ fault }) => !only || only.includes(fault));
// Needed on any machine other than that of the captures.
const roofline = values.roofline ? ['--roofline', 'roofline.json'] : [];
if (values.roofline) cpSync(values.roofline, join(work, 'roofline.json'));
let failed = 0;
async function makeArchive({ fault, variant, report }) {
  const name = `${fault}-${variant}`;
  const files = [
    values.kineto
      ? join(captures, 'time', `${name}.kineto.json.gz`)
      : join(captures, 'nsys', `r.${report}.parquetdir`),
    // Programs without timings have only their model and sizes.
    ['time', 'nsys'].map((mode) => join(captures, mode, `${name}.jsonl`)).find((path) => existsSync(path)) ??
      null,
    join(captures, 'time', `${name}-delay.jsonl`),
    writeCounters(name),
  ]
    .filter((path) => path !== null && existsSync(path))
    .map((path) => linkIntoWork(path, name));
  const imported = await run([
    'import',
    ...files,
    '--no-raw',
    '--no-analyze',
    '--quiet',
    '--name',
    name,
    ...roofline,
  ]);
  const exported =
    imported.code === 0
      ? await run(['session', 'export', name, '--output', join(out, `${name}.tgz`), '--overwrite'])
      : imported;
  if (exported.code === 0) return;
  failed++;
  console.error(`${name}: ${exported.output.slice(0, 600)}`);
}
await Promise.all(
  Array.from({ length: Number(values.jobs) }, async () => {
    for (let next = todo.shift(); next; next = todo.shift()) await makeArchive(next);
  }),
);
rmSync(work, { recursive: true, force: true });
process.exitCode = failed > 0 ? 1 : 0;
