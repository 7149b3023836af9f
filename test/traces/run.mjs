// Checks what `import` and `explain` report about public traces against traces.json: numbers of kernels and of marked steps, counted in the
// files with another program, steps' times, main classes, and the only findings that were true when the output was read.
// npm run build, then: INFERSCOPE_TRACES=FOLDER npm run test:traces   (--fetch first downloads the files into the folder)
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const printLine = (line) => process.stdout.write(`${line}\n`);

const { traces } = JSON.parse(readFileSync(new URL('traces.json', import.meta.url), 'utf8'));
const folder = process.env.INFERSCOPE_TRACES;
if (!folder) {
  printLine(
    'SKIPPED: test:traces checked no trace. Set INFERSCOPE_TRACES to a folder for its files; --fetch downloads them.',
  );
  process.exit(0);
}
if (process.argv.includes('--fetch')) {
  mkdirSync(folder, { recursive: true });
  for (const { file, url } of traces.flatMap(filesOf)) {
    if (existsSync(join(folder, file))) continue;
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status}`);
    writeFileSync(join(folder, file), Buffer.from(await response.arrayBuffer()));
  }
}

/** The files of a trace: one per rank of a job, or a single file. */
function filesOf(trace) {
  return trace.ranks ?? [trace];
}

const home = mkdtempSync(join(tmpdir(), 'inferscope-traces-'));
const command = (...args) =>
  execFileSync(process.execPath, ['dist/cli.js', ...args], {
    env: { ...process.env, INFERSCOPE_HOME: home },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });

/** A finding that nobody found to be true is a false alarm if it claims at least this share of a stage. */
const minFalseAlarmShare = 0.05;

function findProblems(trace) {
  const { file, ranks, kernels, steps, main_class: mainClass, findings, step_ms: stepMs = {} } = trace;
  const name = file.replace(/\..*/, '');
  const paths = filesOf(trace).map((traceFile) => join(folder, traceFile.file));
  command('import', ...paths, ...(ranks ? ['--ranks'] : []), '--name', name, '--quiet');
  const { data } = JSON.parse(command('explain', name, '--json'));
  const failures = [];
  for (const [kind, n] of Object.entries(steps)) {
    const stage = data.stages.find((candidate) => candidate.kind === kind && candidate.name === null);
    if (stage?.instances !== n) failures.push(`${kind}: ${stage?.instances ?? 'no'} steps, not ${n}`);
    const ms = stage?.measured_ms.value ?? 0;
    if (kind in stepMs && Math.abs(ms - stepMs[kind]) > 0.02 * stepMs[kind])
      failures.push(`${kind}: ${ms} ms, not ${stepMs[kind]}`);
    if (stage && mainClass !== null) {
      const bars = stage.bars.filter(({ id }) => /^(kernels|inefficiency|nonessential)\./.test(id));
      const [top] = bars.toSorted((a, b) => b.ms - a.ms);
      if (top?.id.split('.')[1] !== mainClass)
        failures.push(`most kernel time in ${top?.id}, not ${mainClass}`);
    }
  }
  const unexpected = data.stages.filter(
    (stage) => stage.name === null && !(stage.kind in steps) && stage.kind !== 'request',
  );
  if (unexpected.length > 0)
    failures.push(`unexpected stages: ${unexpected.map(({ kind }) => kind).join(', ')}`);
  const { rows } = JSON.parse(
    command('sql', name, 'SELECT count(*) AS n, count(DISTINCT rank) AS ranks FROM kernels', '--json'),
  ).data;
  const [kernelCount, rankCount] = rows[0];
  if (ranks && rankCount !== ranks.length) failures.push(`${rankCount} ranks, not ${ranks.length}`);
  if (Math.abs(kernelCount - kernels) > 0.01 * kernels)
    failures.push(`${kernelCount} kernels, not ${kernels}`);
  for (const { rule, title, severity, at_stake_share: share } of data.findings)
    if (severity !== 'info' && share >= minFalseAlarmShare && !findings.includes(rule))
      failures.push(`finding that nobody checked: ${title}`);
  return failures;
}

const hashOf = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

let failed = 0;
let missing = 0;
for (const trace of traces) {
  const absent = filesOf(trace).find(({ file }) => !existsSync(join(folder, file)));
  if (absent) {
    missing++;
    printLine(`SKIPPED ${trace.file}: ${absent.file} is not in ${folder}`);
    continue;
  }
  let problems = filesOf(trace)
    .filter(({ file, sha256 }) => hashOf(join(folder, file)) !== sha256)
    .map(({ file }) => `${file}: SHA-256 differs from traces.json`);
  try {
    if (problems.length === 0) problems = findProblems(trace);
  } catch (error) {
    problems = [String(error.message).split('\n')[0]];
  }
  if (problems.length > 0) failed++;
  printLine(`${problems.length > 0 ? 'FAILED' : 'ok'} ${trace.file}: ${trace.what}`);
  for (const problem of problems) printLine(`  ${problem}`);
}
rmSync(home, { recursive: true });
printLine(`${traces.length} traces: ${failed} failed, ${missing} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
