// Public traces read by `import` and `explain`. The numbers of kernels and of marked steps were counted in the files with another program;
// main classes and false findings were noted from reading the output.
// npm run build, then: INFERSCOPE_TRACES=FOLDER npm run test:traces   (--fetch first downloads the files into the folder)
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const say = (line) => process.stdout.write(`${line}\n`);

const { traces } = JSON.parse(readFileSync(new URL('traces.json', import.meta.url), 'utf8'));
const folder = process.env.INFERSCOPE_TRACES;
if (!folder) {
  say(
    'SKIPPED: test:traces checked no trace. INFERSCOPE_TRACES names the folder for its files; --fetch loads them.',
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

/** Files of a trace: those of all ranks of a job, or the file itself. */
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

/** Minimum share of a stage from which an incorrect finding counts as a false alarm. */
const claimed = 0.05;

function problems(trace) {
  const { file, ranks, kernels, steps, main_class: main, false_findings: untrue } = trace;
  const name = file.replace(/\..*/, '');
  const paths = filesOf(trace).map((one) => join(folder, one.file));
  command('import', ...paths, ...(ranks ? ['--ranks'] : []), '--name', name, '--quiet');
  const { data } = JSON.parse(command('explain', name, '--json'));
  const failures = [];
  for (const [kind, n] of Object.entries(steps)) {
    const stage = data.stages.find((one) => one.kind === kind && one.name === null);
    if (stage?.instances !== n) failures.push(`${kind}: ${stage?.instances ?? 'no'} steps, not ${n}`);
    if (stage && main !== null) {
      const bars = stage.bars.filter(({ id }) => /^(kernels|inefficiency|nonessential)\./.test(id));
      const [top] = bars.toSorted((a, b) => b.ms - a.ms);
      if (top?.id.split('.')[1] !== main) failures.push(`most kernel time in ${top?.id}, not ${main}`);
    }
  }
  const others = data.stages.filter(
    ({ kind, name: own }) => own === null && !(kind in steps) && kind !== 'request',
  );
  if (others.length > 0)
    failures.push(`stages that are not there: ${others.map(({ kind }) => kind).join(', ')}`);
  const { rows } = JSON.parse(
    command('sql', name, 'SELECT count(*) AS n, count(DISTINCT rank) AS ranks FROM kernels', '--json'),
  ).data;
  const [read, ranksRead] = rows[0];
  if (ranks && ranksRead !== ranks.length) failures.push(`${ranksRead} ranks, not ${ranks.length}`);
  if (Math.abs(read - kernels) > 0.01 * kernels) failures.push(`${read} kernels, not ${kernels}`);
  for (const { rule, title, at_stake_share: share } of data.findings)
    if (untrue.includes(rule) && share >= claimed) failures.push(`false: ${title}`);
  return failures;
}

const hashOf = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

let failed = 0;
let missing = 0;
for (const trace of traces) {
  const absent = filesOf(trace).find(({ file }) => !existsSync(join(folder, file)));
  if (absent) {
    missing++;
    say(`SKIPPED ${trace.file}: ${absent.file} is not in ${folder}`);
    continue;
  }
  let found = filesOf(trace)
    .filter(({ file, sha256 }) => hashOf(join(folder, file)) !== sha256)
    .map(({ file }) => `${file} is another file: its SHA-256 differs`);
  try {
    if (found.length === 0) found = problems(trace);
  } catch (error) {
    found = [String(error.message).split('\n')[0]];
  }
  if (found.length > 0) failed++;
  say(`${found.length > 0 ? 'FAILED' : 'ok'} ${trace.file}: ${trace.what}`);
  for (const problem of found) say(`  ${problem}`);
}
rmSync(home, { recursive: true });
say(`${traces.length} traces: ${failed} failed, ${missing} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
