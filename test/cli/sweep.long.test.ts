import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { memoryCompareDocumentSchema } from '../../src/model/documents/memory-compare.js';
import { memoryProfileSchema } from '../../src/model/documents/memory-profile.js';
import { sweepDocumentSchema, type SweepResult } from '../../src/model/documents/sweep.js';
import { expectFailure, inferscope, place, start, untilDead } from './profile-cli.js';

const setup = place();

const results = (folder = 'results') => join(setup.scratch, folder);

function sweepOf(stdout: string): SweepResult {
  return sweepDocumentSchema.parse(JSON.parse(stdout)).data;
}

/** The newest journal in a folder of results. */
function journal(folder: string): SweepResult {
  const name = readdirSync(results(folder)).findLast((file) => /^sweep-.*\.json$/.test(file))!;
  return sweepOf(readFileSync(join(results(folder), name), 'utf8'));
}

test('memory of a tiny model from YAML: one profile per run, one CSV, text and page; resumed, it runs nothing again', () => {
  const file = join(setup.scratch, 'models.yaml');
  writeFileSync(
    file,
    `engine: onnx\nmodels:\n  - model_id: ${setup.tiny}\n    input_lengths: 8\n    output_lengths: 4\n    batch_sizes: [1, 2]\n`,
  );
  const dry = inferscope(setup, ['sweep', '--config', file, '--dry-run']);
  expect(dry.status, dry.stderr).toBe(0);
  expect(dry.stdout).toMatch(/^ +2 runs, about 6 s$/m);
  expect(
    dry.stdout.match(
      /^ +node .*cli\.js memory --model .*--output "results\/memory-profiles\/tiny-profile_\$\(date -u \+%Y%m%d-%H%M%S\)\.json"$/gm,
    ),
  ).toHaveLength(2);
  expect(dry.stdout).toMatch(/^ +2 +2 +3 s .* fits$/m);
  expect(existsSync(results())).toBe(false);

  const ran = inferscope(setup, ['sweep', '--config', file, '--json']);
  expect(ran.status, ran.stderr).toBe(0);
  const sweep = sweepOf(ran.stdout);
  expect(sweep).toMatchObject({ status: 'complete', varied: ['batch_size'] });
  expect(sweep.runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
    ['measured', 1],
    ['measured', 1],
  ]);
  for (const run of sweep.runs) {
    const profile = memoryProfileSchema.parse(JSON.parse(readFileSync(join(results(), run.output!), 'utf8')));
    expect(profile.metadata.session_id).toBe(run.session_id);
    expect(run.figures[0]!.values['peak_gb']).toBe(profile.memory_measurements.peak.total_gb);
  }

  const files = readdirSync(results('results/memory-profiles')).filter((name) =>
    name.startsWith('batch-bench'),
  );
  expect(files.toSorted()).toEqual([
    `batch-bench-report-${sweep.stamp}.html`,
    `batch-bench-report-${sweep.stamp}.txt`,
    `batch-bench-results-${sweep.stamp}.csv`,
  ]);
  const [head = '', ...lines] = readFileSync(
    join(
      results('results/memory-profiles'),
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
    join(results('results/memory-profiles'), `batch-bench-report-${sweep.stamp}.html`),
    'utf8',
  );
  expect(page.match(/data-chart="heat"/g)).toHaveLength(3);
  expect(page).not.toMatch(/(?:src|href)="https?:/);
  expect(
    readFileSync(join(results('results/memory-profiles'), `batch-bench-report-${sweep.stamp}.txt`), 'utf8'),
  ).toContain('2 measured');

  // Compares the two profiles, one as a file and one as a session.
  const [base, now] = [sweep.runs[0]!.output!, sweep.runs[1]!.session_id!];
  const htmlToo = ['--html', 'compared.html'];
  const compared = inferscope(setup, ['memory', 'compare', `results/${base}`, now, '--json', ...htmlToo]);
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
  expect(sweepOf(again.stdout).runs).toEqual(sweep.runs);
}, 120_000);

const program = (script: string) => ['--', 'run', '--', 'sh', '-c', script];

test('a failed run does not stop the rest; machine failures are retried; the reasons are in the report', () => {
  // `flaky` fails at its first try like a network error, then works; `no` fails like a program error.
  const script =
    'case {n} in no) echo broken >&2; exit 3;; *) test -e {n} || { touch {n}; echo "Connection reset by peer" >&2; exit 1; };; esac';
  const ran = inferscope(setup, [
    'sweep',
    '--grid',
    'n=no,flaky',
    '--output',
    'failing',
    ...program(script),
    '--token',
    'hunter2hunter2',
  ]);
  expect(ran.status).toBe(4);
  // Only the journal has the whole command, which it needs to resume, and only the user can read it.
  for (const name of readdirSync(results('failing')).filter((file) => file.includes('.'))) {
    const path = join(results('failing'), name);
    const isJournal = name.startsWith('sweep-');
    expect(readFileSync(path, 'utf8').includes('hunter2'), name).toBe(isJournal);
    if (isJournal) expect(statSync(path).mode & 0o077).toBe(0);
  }
  const { runs } = journal('failing');
  expect(runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
    ['failed', 1],
    ['measured', 2],
  ]);
  expect(runs[0]!.failure).toMatchObject({ code: 'E_WORKLOAD_FAILED', infrastructure: false });
  expect(runs[0]!.failure!.why).toContain('broken');
  expect(ran.stderr).toMatch(/2\/2 n flaky: .*retrying/);
  expect(ran.stderr).toContain('--retry-failed');
  expect(ran.stdout).toMatch(/Failures\n +1 +n no: sh exited with code 3 \(E_WORKLOAD_FAILED\)/);
  expect(readFileSync(join(results('failing'), runs[0]!.log!), 'utf8')).toContain('broken');
}, 120_000);

/** Creates a file when it starts. */
const sleeper = program('touch begun-{s}; exec sleep {s}');

/** Waits until the sleeping program of a sweep has started. */
async function untilBegun(folder: string, seconds: number): Promise<SweepResult> {
  const mark = join(setup.scratch, `begun-${seconds}`);
  for (let tries = 0; tries < 1200 && !existsSync(mark); tries++) await sleep(25);
  return journal(folder);
}

test('a killed sweep stops its run and resumes where it was; a run over its time limit is stopped', async () => {
  const args = ['--output', 'killed', ...sleeper];
  const running = start(setup, ['sweep', '--grid', 's=0,20', ...args]);
  const before = await untilBegun('killed', 20);
  running.child.kill('SIGKILL');
  await running.ended;
  expect(before.runs.map(({ outcome }) => outcome)).toEqual(['measured', 'running']);

  await untilDead(before.runs[1]!.pid!);

  const more = ['--resume', '--timeout', '5s', '--retries', '0', '--json', ...args];
  const resumed = inferscope(setup, ['sweep', '--grid', 's=0,20,0.1', ...more]);
  expect(resumed.status, resumed.stderr).toBe(4);
  expect(resumed.stderr).toContain(
    'configuration changed since this sweep started: 2 runs unchanged, 1 added, 0 removed',
  );
  const { runs, stamp } = sweepOf(resumed.stdout);
  expect(stamp).toBe(before.stamp);
  expect(runs.map(({ label }) => label)).toEqual(['s 0', 's 20', 's 0.1']);
  expect(runs[0]).toEqual(before.runs[0]);
  expect(runs[1]).toMatchObject({ outcome: 'timed_out', failure: { what: 'it took longer than 5 s' } });
}, 120_000);

test('Ctrl-C saves what was measured and says how to continue', async () => {
  const running = start(setup, ['sweep', '--grid', 's=21,0', '--output', 'stopped', ...sleeper]);
  await untilBegun('stopped', 21);
  process.kill(running.child.pid!, 'SIGINT');
  const ended = await running.ended;
  expect(ended.status, ended.stderr).toBe(130);
  expect(ended.stderr).toMatch(/Resume with: inferscope sweep --resume stopped\/sweep-.*\.json/);
  const { runs, status, stamp } = journal('stopped');
  expect([status, ...runs.map(({ outcome }) => outcome)]).toEqual(['interrupted', 'interrupted', 'pending']);
  expect(existsSync(join(results('stopped/memory-profiles'), `batch-bench-results-${stamp}.csv`))).toBe(true);
}, 120_000);

test('too little disk: no run starts, and it says how to continue', () => {
  const ran = inferscope(setup, [
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
  expect(ran.status).toBe(3);
  expect(journal('full').runs[0]).toMatchObject({
    outcome: 'not_run',
    attempts: 0,
    failure: { code: 'E_DISK_FULL' },
  });
  expect(ran.stderr).toContain('inferscope sweep --resume full/sweep-');
});

/** A docker command that fails as if the daemon were stopped, and counts its calls. */
function stoppedDaemon(): { command: string; calls: () => number } {
  const command = join(setup.scratch, 'stopped-docker');
  const log = join(setup.scratch, 'docker-calls');
  const words =
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?';
  writeFileSync(log, '');
  writeFileSync(command, `#!/bin/sh\necho "$*" >> '${log}'\necho '${words}' >&2\nexit 1\n`, { mode: 0o755 });
  return { command, calls: () => readFileSync(log, 'utf8').split('\n').length - 1 };
}

test('a stopped daemon is queried once for a whole sweep of containers', () => {
  const { command, calls } = stoppedDaemon();
  const shape = ['--model', setup.tiny, '--input-len', '8', '--output-len', '4', '--batch-size', '1,2,4,8'];
  const sweepCommand = ['sweep', ...shape, '--container', 'c', '--retries', '2', '--output', 'stopped'];
  const ran = inferscope(setup, sweepCommand, { INFERSCOPE_DOCKER: command });
  expect(ran.status, ran.stderr).toBe(3);
  expect(calls()).toBe(1);
  const { runs } = journal('stopped');
  expect(runs.map(({ attempts }) => attempts)).toEqual([1, 0, 0, 0]);
  expect(runs[0]!.failure).toMatchObject({ code: 'E_DOCKER' });
}, 120_000);

test('without Docker a sweep of containers stops at its first run, and can be resumed', () => {
  const noDocker = { INFERSCOPE_DOCKER: join(setup.scratch, 'no-docker') };
  const shape = ['--model', setup.tiny, '--input-len', '8', '--output-len', '4', '--batch-size', '1,2,4'];
  const sweepCommand = ['sweep', ...shape, '--container', 'c', '--output', 'docker'];
  for (const args of [sweepCommand, ['sweep', '--resume', '--output', 'docker']]) {
    const ran = inferscope(setup, args, noDocker);
    expect(ran.status, ran.stderr).toBe(3);
    expect(ran.stderr.match(/^error: .* \(E_DOCKER\)$/gm)).toHaveLength(1);
    expect(ran.stderr).toMatch(/Then: inferscope sweep --resume docker\/sweep-.*\.json/);
    const { runs, status } = journal('docker');
    expect(status).toBe('interrupted');
    expect(runs.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
      ['not_run', 1],
      ['pending', 0],
      ['pending', 0],
    ]);
  }
}, 120_000);

test('bad input is reported before anything runs, with what to type', () => {
  const fails = (args: string[], exit: number, code: string) =>
    expectFailure(inferscope(setup, ['sweep', ...args, '--json']), exit, code);
  expect(fails([], 2, 'E_USAGE').fix).toContain('--init');
  expect(fails(['--resume', '--output', 'nothing'], 2, 'E_USAGE').what).toContain(
    'no sweep to resume in nothing',
  );
  expect(fails(['--grid', 'a=1', 'bench'], 2, 'E_USAGE').what).toContain('needs --');
  expect(inferscope(setup, ['sweep', '--init', 'new.yaml']).stdout.trim()).toBe('new.yaml');
  expect(inferscope(setup, ['sweep', '--config', 'new.yaml', '--dry-run', '--json']).status).toBe(0);
  expect(fails(['--init', 'new.yaml'], 2, 'E_USAGE').what).toContain('already exists');
});

test('a grid of estimate has the figures of each run, a grid of run the session of each', () => {
  const words = 'sweep --grid batch-size=1,8 --output estimated --json -- estimate --model gpt2';
  const estimated = inferscope(setup, `${words} --input-len 512 --output-len 128`.split(' '));
  expect(estimated.status, estimated.stderr).toBe(0);
  const [one, eight] = sweepOf(estimated.stdout).runs.map(({ figures }) => figures[0]!.values);
  // 124,439,808 parameters in float32; 12 layers × 2 × 768 × 4 bytes per token.
  expect(one!['model_weights_gb']).toBeCloseTo(0.497759232, 9);
  expect(eight!['kv_cache_gb']! / one!['kv_cache_gb']!).toBeCloseTo(8, 1);
  expect(eight!['largest_gpu_gb']).toBeGreaterThan(one!['largest_gpu_gb']!);

  const grid = 'sweep --grid n=1,2 --output ran --json -- run -- sh -c'.split(' ');
  const run = inferscope(setup, [...grid, 'exit 0 {n}']);
  expect(run.status, run.stderr).toBe(0);
  const ids = sweepOf(run.stdout).runs.map(({ session_id }) => session_id);
  const { sessions } = JSON.parse(inferscope(setup, ['session', 'list', '--json']).stdout).data;
  expect(sessions.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(ids));
});
