// Golden documents: writes every document that the built binary prints for the fixtures as lines `path = value`, so that two commits can be
// compared. Prose, times and paths are masked, so that only changed numbers, ids and names differ.
//
//   node test/golden/documents.mjs make DIR [--cli dist/cli.js] [--archives DIR] [--only TEXT]
//   node test/golden/documents.mjs compare BEFORE AFTER
//   node test/golden/documents.mjs core FILE
//
// core writes the parts of four sessions that changes of rules and words must not affect: sums of table columns, and the bars of the
// waterfalls. test/cli/golden.test.ts compares them with test/golden/core.txt; write that file again after a deliberate change.
//
// To compare with another commit: check it out in a second folder, `npm ci && npm run build` there, and pass its dist/cli.js as --cli.
// --archives adds exported sessions (.tgz), for example those of an older version; a profile of the embedded engine has no fixture.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';

const fixtures = resolve(import.meta.dirname, '../fixtures');
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    cli: { type: 'string', default: resolve(import.meta.dirname, '../../dist/cli.js') },
    archives: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});

/** Commands that print a document about a session. */
const sessionCommands = [['report'], ['explain'], ['session', 'show'], ['session', 'utilization'], ['gemm']];

const [action, ...paths] = positionals;
if (action === 'make' && paths.length === 1) await make(paths[0]);
else if (action === 'compare' && paths.length === 2) compare(paths[0], paths[1]);
else if (action === 'core' && paths.length === 1) await writeCore(paths[0]);
else {
  process.stderr.write(
    'usage: documents.mjs make DIR [--cli FILE] [--archives DIR] [--only TEXT] | compare BEFORE AFTER | core FILE\n',
  );
  process.exitCode = 2;
}

/** Writes sums of the columns of imported tables, and the times of bars to 9 digits, because sums of floats may differ in later ones. */
async function writeCore(file) {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-golden-core-'));
  const names = new Set(['nsys-tiny', 'kineto-gpu', 'ncu-tiny', 'diagnosis.launch_bound_decode-fault']);
  try {
    await make(folder, {
      isIncluded: (name) => names.has(name),
      commands: [['explain']],
      importOptions: ['--no-analyze'],
    });
    const bar = /^(data\.stages\[[^\]]*\]\.bars\[[^\]]*\]\.ms) = (.*)$/;
    const lines = readdirSync(folder)
      // The tables of an archive do not depend on this version's importers.
      .filter((name) => !/^diagnosis.*\.tables\.txt$/.test(name))
      .sort()
      .flatMap((name) =>
        readFileSync(join(folder, name), 'utf8')
          .split('\n')
          .flatMap((line) => {
            if (name.endsWith('.tables.txt')) return line === '' ? [] : [`${name}: ${line}`];
            const [, path, ms] = bar.exec(line) ?? [];
            return path === undefined ? [] : [`${name}: ${path} = ${Number(Number(ms).toPrecision(9))}`];
          }),
      );
    writeFileSync(file, `${lines.join('\n')}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes one `.txt` per document into `folder`. */
async function make(
  folder,
  { isIncluded = (name) => name.includes(values.only), commands = sessionCommands, importOptions = [] } = {},
) {
  mkdirSync(folder, { recursive: true });
  const home = mkdtempSync(join(tmpdir(), 'inferscope-golden-'));
  const cli = (...args) =>
    spawnSync(process.execPath, [resolve(values.cli), ...args], {
      encoding: 'utf8',
      maxBuffer: 2 ** 30,
      cwd: home,
      env: { ...process.env, INFERSCOPE_HOME: home, NO_COLOR: '1', TZ: 'UTC', COLUMNS: '80' },
    });
  const write = (name, text) =>
    writeFileSync(join(folder, `${name.replaceAll(/[^A-Za-z0-9._-]+/g, '-')}.txt`), text);
  const writeDocument = (name, ...args) => {
    const { status, stdout, stderr } = cli(...args);
    let lines;
    try {
      lines = flatten(JSON.parse(stdout));
    } catch {
      lines = [`not JSON: ${mask(stdout.trim().slice(0, 200))}`];
    }
    write(name, [`exit = ${status}`, ...(status === 70 ? [stderr] : []), ...lines.sort(), ''].join('\n'));
  };
  try {
    for (const session of sessions()) {
      if (!isIncluded(session.name)) continue;
      process.stderr.write(`${session.name}\n`);
      const before = new Set(sessionFolders(home));
      const more = session.make[0] === 'import' ? importOptions : [];
      const made = cli(...session.make, ...more);
      const id = sessionFolders(home).find((name) => !before.has(name));
      if (id === undefined) {
        write(session.name, `exit = ${made.status}\nno session was made\n`);
        continue;
      }
      cli('session', 'rename', id, session.name);
      write(`${session.name}.tables`, await tableSums(join(home, 'sessions', id)));
      for (const command of commands)
        writeDocument(`${session.name}.${command.join('-')}`, ...command, id, '--json');
    }
    for (const [name, ...args] of comparisons()) if (isIncluded(name)) writeDocument(name, ...args);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The sessions to make: one per fixture to import and per archive. */
function sessions() {
  const file = (path) => join(fixtures, path);
  const imports = [
    ['nsys-tiny', 'nsys-2025.3.1-h200/tiny-nsys.sqlite'],
    ['nsys-graph', 'nsys-2025.3.1-h200/tiny-graph.sqlite'],
    ['nsys-graph-opaque', 'nsys-2025.3.1-h200/tiny-graph-opaque.sqlite'],
    ['nsys-whole', 'nsys-2025.3.1-h200/tiny-whole.sqlite'],
    ['nsys-parquet', 'nsys-2025.3.1-h200/tiny-nsys.parquetdir'],
    ['nsys-llm', 'nsys-2025.3.1-h200/tiny-llm-b1.parquetdir'],
    ['kineto-cpu', 'kineto-torch2.11-cpu/layer.json.gz'],
    ['kineto-gpu', 'kineto-torch2.11-h200/kineto-tiny.json.gz'],
    ['kineto-stack', 'kineto-torch2.11-h200/kineto-tiny-stack.json.gz'],
    ['ncu-tiny', 'ncu-2025.3.1-h200/ncu-tiny.raw.csv'],
    ['ncu-kernels', 'ncu-2025.3.1-h200/ncu-kernels.raw.csv'],
    ['cublas', 'cublas-cuda13.0-h200/cublas.log'],
    ['cublaslt', 'cublas-cuda13.0-h200/cublaslt-tiny-llm.log'],
    [
      'joined',
      'nsys-2025.3.1-h200/tiny-nsys.sqlite',
      'ncu-2025.3.1-h200/ncu-tiny.raw.csv',
      'cublas-cuda13.0-h200/cublaslt.log',
    ],
  ].map(([name, ...paths]) => ({ name, make: ['import', ...paths.map(file), '--quiet'] }));
  const results = [
    'benchmark-results-recorded',
    'benchmark-results-from-schema',
    'nvidia-smi-580-h200',
  ].flatMap((folder) =>
    readdirSync(file(folder))
      .filter((name) => !name.endsWith('.md') || name.startsWith('llama-bench'))
      .map((name) => ({ name: `${folder}.${name}`, make: ['import', file(join(folder, name)), '--quiet'] })),
  );
  return [
    ...imports,
    ...results,
    ...archives().map((path) => ({ name: archiveName(path), make: ['session', 'import', path] })),
  ];
}

function archives() {
  const folders = [
    'diagnosis',
    'kineto-torch2.11-h200',
    'memory-torch2.11-h200',
    'monitor-0.1-h200',
    'vllm-0.26-h200',
  ].map((name) => join(fixtures, name));
  if (values.archives !== undefined) folders.push(resolve(values.archives));
  return folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(tgz|tar\.gz)$/.test(name))
      .map((name) => join(folder, name)),
  );
}

function archiveName(path) {
  return `${basename(join(path, '..'))}.${basename(path).replace(/\.(tgz|tar\.gz)$/, '')}`;
}

/** Commands about two sessions, and commands without a session: [name of the document, ...arguments]. */
function comparisons() {
  const faults = readdirSync(join(fixtures, 'diagnosis'))
    .filter((name) => name.endsWith('-fault.tgz'))
    .map((name) => name.replace('-fault.tgz', ''));
  const models = [
    'llama-3.1-8b',
    'qwen2.5-7b',
    'mixtral-8x7b',
    'deepseek-v3',
    'gemma-3-27b',
    'tinyllama-1.1b',
  ];
  return [
    ...faults.flatMap((name) => {
      const [fault, fixed] = [`diagnosis.${name}-fault`, `diagnosis.${name}-fixed`];
      return [
        [`compare.${name}`, 'session', 'compare', fault, fixed, '--json'],
        [`verify.${name}`, 'explain', fault, '--verify', fixed, '--json'],
      ];
    }),
    ['compare.nsys', 'session', 'compare', 'nsys-tiny', 'nsys-graph', '--json'],
    ['what-if.vllm', 'explain', 'vllm-0.26-h200.run-in-process', '--what-if', 'int4,batch-size=32', '--json'],
    ['validate', 'validate', join(fixtures, 'memory-profiles-h200'), '--json'],
    ...models.flatMap((model) => [
      [`estimate.${model}`, 'estimate', '--model', model, '--json'],
      [`predict.${model}`, 'predict', '--model', model, '--gpu', 'H200', '--json'],
    ]),
  ];
}

function sessionFolders(home) {
  try {
    return readdirSync(join(home, 'sessions'));
  } catch {
    return [];
  }
}

/** Lines about every Parquet file of a session: its number of rows, and for each column the sum of the hashes of its values. */
async function tableSums(folder) {
  const files = readdirSync(join(folder, 'tables'), { recursive: true })
    .filter((name) => name.endsWith('.parquet'))
    .sort();
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const lines = [];
  for (const file of files) {
    const from = `read_parquet('${join(folder, 'tables', file).replaceAll("'", "''")}')`;
    const columns = (await connection.runAndReadAll(`DESCRIBE SELECT * FROM ${from}`))
      .getRows()
      .map(([name]) => name);
    const sums = columns.map((name) => `sum(hash("${name}")::HUGEINT)::VARCHAR`);
    const [row] = (
      await connection.runAndReadAll(`SELECT count(*)::VARCHAR, ${sums.join(', ')} FROM ${from}`)
    ).getRows();
    lines.push(
      `${file} rows = ${row[0]}`,
      ...columns.map((name, index) => `${file} ${name} = ${row[index + 1]}`),
    );
  }
  connection.closeSync();
  instance.closeSync();
  return `${lines.join('\n')}\n`;
}

/** A JSON value as lines; a list item with an id is named by it, so that an insertion does not change other lines. */
function flatten(value, path = '') {
  if (Array.isArray(value)) {
    const ids = value.map((item, index) => idOf(item) ?? String(index));
    const counts = new Map();
    return value.flatMap((item, index) => {
      const nth = counts.get(ids[index]) ?? 0;
      counts.set(ids[index], nth + 1);
      return flatten(item, `${path}[${ids[index]}${nth === 0 ? '' : `#${nth}`}]`);
    });
  }
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, child]) =>
      varies(key) ? [] : flatten(child, path === '' ? key : `${path}.${key}`),
    );
  return [`${path} = ${typeof value === 'string' ? mask(value) : JSON.stringify(value)}`];
}

function idOf(value) {
  if (value === null || typeof value !== 'object') return null;
  for (const key of ['id', 'rule', 'bar', 'kind', 'class', 'metric', 'code', 'short_name', 'name', 'stage'])
    if (typeof value[key] === 'string') return mask(value[key]);
  return null;
}

/** Whether a value differs between two runs of one commit: times, paths, installed versions. */
function varies(key) {
  return /^(started_at|ended_at|created_at|captured_at|imported_at|session|sessions|session_id|path|sha256|command|tool_version|schema)$/.test(
    key,
  );
}

/** Ids, codes and names are compared; prose, paths and dates are masked. */
function mask(text) {
  if (text.length > 120 || /\s/.test(text)) return '<text>';
  if (/^\d{4}-\d\d-\d\d|^\d{8}-\d{6}/.test(text)) return '<time>';
  return text.startsWith('/') ? '<path>' : JSON.stringify(text);
}

/** Prints the differences by document, then their number by field; exits with 1 if there are any. */
function compare(before, after) {
  const fields = new Map();
  const names = [...new Set([...readdirSync(before), ...readdirSync(after)])].sort();
  let changed = 0;
  for (const name of names) {
    const [linesBefore, linesAfter] = [before, after].map((folder) => {
      try {
        return readFileSync(join(folder, name), 'utf8').split('\n');
      } catch {
        return [];
      }
    });
    const removed = linesBefore.filter((line) => !linesAfter.includes(line));
    const added = linesAfter.filter((line) => !linesBefore.includes(line));
    if (removed.length + added.length === 0) continue;
    changed += 1;
    process.stdout.write(`${name}: ${removed.length} lines removed, ${added.length} added\n`);
    for (const line of [...removed.map((text) => `- ${text}`), ...added.map((text) => `+ ${text}`)]) {
      const field = line.replace(/ = .*/s, '').replaceAll(/\[[^\]]*\]/g, '[]');
      fields.set(field, (fields.get(field) ?? 0) + 1);
    }
    for (const line of removed.slice(0, 12)) process.stdout.write(`  - ${line}\n`);
    for (const line of added.slice(0, 12)) process.stdout.write(`  + ${line}\n`);
  }
  for (const [field, lines] of [...fields].sort(([, a], [, b]) => b - a))
    process.stdout.write(`${lines} ${field}\n`);
  process.stdout.write(`${names.length} documents, ${changed} differ\n`);
  if (changed > 0) process.exitCode = 1;
}
