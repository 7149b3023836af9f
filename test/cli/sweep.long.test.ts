import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { memoryCompareDocumentSchema } from '../../src/model/documents/memory-compare.js';
import { memoryProfileSchema } from '../../src/model/documents/memory-profile.js';
import { sweepDocumentSchema, type SweepResult } from '../../src/model/documents/sweep.js';
import { expectFailure, inferscope, createSetup, startCli, waitForExit } from './run-cli.js';

const setup = createSetup();

const resultsFolder = (folder = 'results') => join(setup.scratch, folder);

function parseSweep(stdout: string): SweepResult {
  return sweepDocumentSchema.parse(JSON.parse(stdout)).data;
}

/** The newest journal in a folder of results. */
function readJournal(folder: string): SweepResult {
  const name = readdirSync(resultsFolder(folder)).findLast((file) => /^sweep-.*\.json$/.test(file))!;
  return parseSweep(readFileSync(join(resultsFolder(folder), name), 'utf8'));
}

test('a memory sweep from YAML writes a profile per run, and CSV, text and page; --resume runs nothing again', () => {
  const file = join(setup.scratch, 'models.yaml');
  writeFileSync(
    file,
    `engine: onnx\nmodels:\n  - model_id: ${setup.tiny}\n    input_lengths: 8\n    output_lengths: 4\n    batch_sizes: [1, 2]\n`,
  );
  const dryRun = inferscope(setup, ['sweep', '--config', file, '--dry-run']);
  expect(dryRun.status, dryRun.stderr).toBe(0);
  expect(dryRun.stdout).toMatch(/^ +2 runs, estimated time 6 s$/m);
  expect(
    dryRun.stdout.match(
      /^ +node .*cli\.js memory --model .*--output "results\/memory-profiles\/tiny-profile_\$\(date -u \+%Y%m%d-%H%M%S\)\.json"$/gm,
    ),
  ).toHaveLength(2);
  expect(dryRun.stdout).toMatch(/^ +2 +2 +3\.0 s .* fits$/m);
  expect(existsSync(resultsFolder())).toBe(false);

  const result = inferscope(setup, ['sweep', '--config', file, '--json']);
  expect(result.status, result.stderr).toBe(0);
  const sweep = parseSweep(result.stdout);
  expect(sweep).toMatchObject({ status: 'complete', varied: ['batch_size'] });
  expect(sweep.runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
    ['measured', 1],
    ['measured', 1],
  ]);
  for (const run of sweep.runs) {
    const profile = memoryProfileSchema.parse(
      JSON.parse(readFileSync(join(resultsFolder(), run.output!), 'utf8')),
    );
    expect(profile.metadata.session_id).toBe(run.session_id);
    expect(run.figures[0]!.values['peak_gb']).toBe(profile.memory_measurements.peak.total_gb);
  }

  const files = readdirSync(resultsFolder('results/memory-profiles')).filter((name) =>
    name.startsWith('batch-bench'),
  );
  expect(files.toSorted()).toEqual([
    `batch-bench-report-${sweep.stamp}.html`,
    `batch-bench-report-${sweep.stamp}.txt`,
    `batch-bench-results-${sweep.stamp}.csv`,
  ]);
  const [head = '', ...lines] = readFileSync(
    join(
      resultsFolder('results/memory-profiles'),
      files.find((name) => name.endsWith('.csv'))!,
    ),
    'utf8',
  )
    .trim()
    .split('\n');
  expect(lines).toHaveLength(2);
  const cells = Object.fromEntries(head.split(',').map((name, i) => [name, lines[1]!.split(',')[i]]));
  expect(cells).toMatchObject({
    run: '2',
    batch_size: '2',
    input_length: '8',
    dtype: 'float32',
    outcome: 'measured',
  });
  expect(Number(cells['peak_gb'])).toBeCloseTo(sweep.runs[1]!.figures[0]!.values['peak_gb']!, 9);
  const page = readFileSync(
    join(resultsFolder('results/memory-profiles'), `batch-bench-report-${sweep.stamp}.html`),
    'utf8',
  );
  expect(page.match(/data-chart="heat"/g)).toHaveLength(3);
  expect(page).not.toMatch(/(?:src|href)="https?:/);
  expect(
    readFileSync(
      join(resultsFolder('results/memory-profiles'), `batch-bench-report-${sweep.stamp}.txt`),
      'utf8',
    ),
  ).toContain('2 measured');

  // Compares the two profiles, one as a file and one as a session.
  const [base, now] = [sweep.runs[0]!.output!, sweep.runs[1]!.session_id!];
  const htmlOption = ['--html', 'compared.html'];
  const compared = inferscope(setup, ['memory', 'compare', `results/${base}`, now, '--json', ...htmlOption]);
  expect(compared.status, compared.stderr).toBe(0);
  const { data } = memoryCompareDocumentSchema.parse(JSON.parse(compared.stdout));
  expect(data.differences).toEqual([{ label: 'batch size', base: '1', now: '2' }]);
  const cache = data.components.find(({ name }) => name === 'kv_cache')!;
  // 2 layers × 2 × 2 KV heads × 16 × 4 bytes × 12 tokens.
  expect([cache.base_gb, cache.change_gb]).toEqual([6144 / 1e9, 6144 / 1e9]);
  expect(readFileSync(join(setup.scratch, 'compared.html'), 'utf8')).toContain('<h2 id="components-title">');
  const markdown = inferscope(setup, ['memory', 'compare', `results/${base}`, now, '--format', 'md']).stdout;
  expect(markdown).toMatch(/^\| KV cache \| 6\.144 kB \| 12\.29 kB \| \+6\.14 kB \| \+100 % \| medium \|$/m);

  const again = inferscope(setup, ['sweep', '--config', file, '--resume', '--json']);
  expect(again.status, again.stderr).toBe(0);
  expect(parseSweep(again.stdout).runs).toEqual(sweep.runs);
}, 120_000);

const program = (script: string) => ['--', 'run', '--', 'sh', '-c', script];

test('a failed run does not stop the others; failures of the machine are retried; the report has the reasons', () => {
  // `flaky` fails at its first try like a network error, then works; `no` fails like a program error.
  const script =
    'case {n} in no) echo broken >&2; exit 3;; *) test -e {n} || { touch {n}; echo "Connection reset by peer" >&2; exit 1; };; esac';
  const result = inferscope(setup, [
    'sweep',
    '--grid',
    'n=no,flaky',
    '--output',
    'failing',
    ...program(script),
    '--token',
    'hunter2hunter2',
  ]);
  expect(result.status).toBe(4);
  // Only the journal has the whole command, because --resume needs it, and only the user can read the journal.
  for (const name of readdirSync(resultsFolder('failing')).filter((file) => file.includes('.'))) {
    const path = join(resultsFolder('failing'), name);
    const isJournal = name.startsWith('sweep-');
    expect(readFileSync(path, 'utf8').includes('hunter2'), name).toBe(isJournal);
    if (isJournal) expect(statSync(path).mode & 0o077).toBe(0);
  }
  const { runs } = readJournal('failing');
  expect(runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
    ['failed', 1],
    ['measured', 2],
  ]);
  expect(runs[0]!.failure).toMatchObject({ code: 'E_WORKLOAD_FAILED', infrastructure: false });
  expect(runs[0]!.failure!.why).toContain('broken');
  expect(result.stderr).toMatch(/2\/2 n flaky: .*retrying/);
  expect(result.stderr).toContain('--retry-failed');
  expect(result.stdout).toMatch(/Failures\n +1 +n no: sh exited with code 3 \(E_WORKLOAD_FAILED\)/);
  expect(readFileSync(join(resultsFolder('failing'), runs[0]!.log!), 'utf8')).toContain('broken');
}, 120_000);

/** A program that creates a file and sleeps. */
const sleeper = program('touch started-{s}; exec sleep {s}');

/** Waits until the program that sleeps for `seconds` has started. @returns the journal of the sweep */
async function waitForProgram(folder: string, seconds: number): Promise<SweepResult> {
  const startMark = join(setup.scratch, `started-${seconds}`);
  for (let tries = 0; tries < 1200 && !existsSync(startMark); tries++) await sleep(25);
  return readJournal(folder);
}

test('a killed sweep stops its run, and --resume continues with this run; --timeout stops a run', async () => {
  const args = ['--output', 'killed', ...sleeper];
  const running = startCli(setup, ['sweep', '--grid', 's=0,20', ...args]);
  const before = await waitForProgram('killed', 20);
  running.child.kill('SIGKILL');
  await running.exit;
  expect(before.runs.map(({ outcome }) => outcome)).toEqual(['measured', 'running']);

  await waitForExit(before.runs[1]!.pid!);

  const more = ['--resume', '--timeout', '5s', '--retries', '0', '--json', ...args];
  const resumed = inferscope(setup, ['sweep', '--grid', 's=0,20,0.1', ...more]);
  expect(resumed.status, resumed.stderr).toBe(4);
  expect(resumed.stderr).toContain(
    'configuration changed since this sweep started: 2 runs unchanged, 1 added, 0 removed',
  );
  const { runs, stamp } = parseSweep(resumed.stdout);
  expect(stamp).toBe(before.stamp);
  expect(runs.map(({ label }) => label)).toEqual(['s 0', 's 20', 's 0.1']);
  expect(runs[0]).toEqual(before.runs[0]);
  expect(runs[1]).toMatchObject({ outcome: 'timed_out', failure: { what: 'it took longer than 5 s' } });
}, 120_000);

test('Ctrl-C saves the measurements and prints how to continue', async () => {
  const running = startCli(setup, ['sweep', '--grid', 's=21,0', '--output', 'stopped', ...sleeper]);
  await waitForProgram('stopped', 21);
  process.kill(running.child.pid!, 'SIGINT');
  const { status: exitCode, stderr } = await running.exit;
  expect(exitCode, stderr).toBe(130);
  expect(stderr).toMatch(/Resume with: inferscope sweep --resume stopped\/sweep-.*\.json/);
  const { runs, status, stamp } = readJournal('stopped');
  expect([status, ...runs.map(({ outcome }) => outcome)]).toEqual(['interrupted', 'interrupted', 'pending']);
  expect(existsSync(join(resultsFolder('stopped/memory-profiles'), `batch-bench-results-${stamp}.csv`))).toBe(
    true,
  );
}, 120_000);

test('with too little free disk no run starts, and the error says how to continue', () => {
  const result = inferscope(setup, [
    'sweep',
    '--grid',
    's=1',
    '--output',
    'full',
    '--min-free-disk',
    '4000TiB',
    '--',
    'run',
    '--',
    'sleep',
    '{s}',
  ]);
  expect(result.status).toBe(3);
  expect(readJournal('full').runs[0]).toMatchObject({
    outcome: 'not_run',
    attempts: 0,
    failure: { code: 'E_DISK_FULL' },
  });
  expect(result.stderr).toContain('inferscope sweep --resume full/sweep-');
});

/** A docker command that fails as if the daemon were stopped, and counts its calls. */
function createStoppedDocker(): { command: string; countCalls: () => number } {
  const command = join(setup.scratch, 'stopped-docker');
  const log = join(setup.scratch, 'docker-calls');
  const message =
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?';
  writeFileSync(log, '');
  writeFileSync(command, `#!/bin/sh\necho "$*" >> '${log}'\necho '${message}' >&2\nexit 1\n`, {
    mode: 0o755,
  });
  return { command, countCalls: () => readFileSync(log, 'utf8').split('\n').length - 1 };
}

test('a stopped Docker daemon is called only once in a sweep of containers', () => {
  const { command, countCalls } = createStoppedDocker();
  const shape = ['--model', setup.tiny, '--input-len', '8', '--output-len', '4', '--batch-size', '1,2,4,8'];
  const sweepCommand = ['sweep', ...shape, '--container', 'c', '--retries', '2', '--output', 'stopped'];
  const result = inferscope(setup, sweepCommand, { INFERSCOPE_DOCKER: command });
  expect(result.status, result.stderr).toBe(3);
  expect(countCalls()).toBe(1);
  const { runs } = readJournal('stopped');
  expect(runs.map(({ attempts }) => attempts)).toEqual([1, 0, 0, 0]);
  expect(runs[0]!.failure).toMatchObject({ code: 'E_DOCKER' });
}, 120_000);

test('without Docker a sweep of containers stops at its first run, and can be resumed', () => {
  const noDocker = { INFERSCOPE_DOCKER: join(setup.scratch, 'no-docker') };
  const shape = ['--model', setup.tiny, '--input-len', '8', '--output-len', '4', '--batch-size', '1,2,4'];
  const sweepCommand = ['sweep', ...shape, '--container', 'c', '--output', 'docker'];
  for (const args of [sweepCommand, ['sweep', '--resume', '--output', 'docker']]) {
    const result = inferscope(setup, args, noDocker);
    expect(result.status, result.stderr).toBe(3);
    expect(result.stderr.match(/^error: .* \(E_DOCKER\)$/gm)).toHaveLength(1);
    expect(result.stderr).toMatch(/Then: inferscope sweep --resume docker\/sweep-.*\.json/);
    const { runs, status } = readJournal('docker');
    expect(status).toBe('interrupted');
    expect(runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
      ['not_run', 1],
      ['pending', 0],
      ['pending', 0],
    ]);
  }
}, 120_000);

test('bad input is reported before anything runs, with what to type', () => {
  const fails = (args: string[], exitCode: number, code: string) =>
    expectFailure(inferscope(setup, ['sweep', ...args, '--json']), exitCode, code);
  expect(fails([], 2, 'E_USAGE').fix).toContain('--init');
  expect(fails(['--resume', '--output', 'nothing'], 2, 'E_USAGE').what).toContain(
    'the folder nothing has no sweep to resume',
  );
  expect(fails(['--grid', 'a=1', 'bench'], 2, 'E_USAGE').what).toContain('needs --');
  expect(inferscope(setup, ['sweep', '--init', 'new.yaml']).stdout.trim()).toBe('new.yaml');
  expect(inferscope(setup, ['sweep', '--config', 'new.yaml', '--dry-run', '--json']).status).toBe(0);
  expect(fails(['--init', 'new.yaml'], 2, 'E_USAGE').what).toContain('already exists');
});

test('a grid of estimate has the figures of each run, and a grid of run has the session of each run', () => {
  const command = 'sweep --grid batch-size=1,8 --output estimated --json -- estimate --model gpt2';
  const estimated = inferscope(setup, `${command} --input-len 512 --output-len 128`.split(' '));
  expect(estimated.status, estimated.stderr).toBe(0);
  const [one, eight] = parseSweep(estimated.stdout).runs.map(({ figures }) => figures[0]!.values);
  // 124,439,808 parameters in float32; 12 layers × 2 × 768 × 4 bytes per token.
  expect(one!['model_weights_gb']).toBeCloseTo(0.497759232, 9);
  expect(eight!['kv_cache_gb']! / one!['kv_cache_gb']!).toBeCloseTo(8, 1);
  expect(eight!['largest_gpu_gb']).toBeGreaterThan(one!['largest_gpu_gb']!);

  const grid = 'sweep --grid n=1,2 --output sessions --json -- run -- sh -c'.split(' ');
  const run = inferscope(setup, [...grid, 'exit 0 {n}']);
  expect(run.status, run.stderr).toBe(0);
  const ids = parseSweep(run.stdout).runs.map(({ session_id }) => session_id);
  const { sessions } = JSON.parse(inferscope(setup, ['session', 'list', '--json']).stdout).data;
  expect(sessions.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(ids));
});
