import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { runEvaluators } from './run-evaluators.js';
import type { RunOptions } from './run-options.js';

const folders: string[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'inferscope-run-'));
  folders.push(path);
  return path;
}

function options(command: string[], change: Partial<RunOptions> = {}): RunOptions {
  return {
    command,
    evaluators: ['none'],
    gemmLog: false,
    hooks: true,
    nsys: { trace: [], captureRange: null, args: [] },
    ncu: { set: 'full', launchCount: 1, kernel: null, nvtx: [], profilerApi: false, args: [] },
    torch: { shapes: true, memory: false, stack: false, flops: false },
    timeoutMs: null,
    scratch: folder(),
    secrets: [],
    stdout: null,
    stderr: null,
    signal: new AbortController().signal,
    kill: new AbortController().signal,
    kernels: null,
    job: null,
    onProgress: () => {},
    ...change,
  };
}

const read = (files: { path: string; kind: string }[], kind: string) =>
  readFileSync(files.find((file) => file.kind === kind)!.path, 'utf8');

test('records arguments, output, exit code and record of a real program', async () => {
  const script =
    'const fs = require("fs"); console.log(JSON.stringify(process.argv.slice(1))); console.error("to stderr");' +
    'fs.appendFileSync(process.env.INFERSCOPE_RECORD, "{}\\n"); process.exitCode = 7';
  const live = new PassThrough();
  const arguments_ = ['--evaluator', 'x y', '--', '-h', '$HOME', "'"];
  const { executions } = await runEvaluators(
    options([process.execPath, '-e', script, '--', ...arguments_], { stdout: live }),
  );
  const [clean] = executions;
  expect(clean).toMatchObject({ execution_id: 'clean', purpose: 'clean', exit_code: 7, signal: null });
  expect(JSON.parse(read(clean!.files, 'stdout'))).toEqual(arguments_);
  expect(live.read()?.toString()).toBe(read(clean!.files, 'stdout'));
  expect(read(clean!.files, 'stderr')).toBe('to stderr\n');
  expect(read(clean!.files, 'record')).toBe('{}\n');
  expect(clean!.failure?.parts.why).toBe('Last output: to stderr');
  expect(clean!.end_ns).toBeGreaterThan(clean!.start_ns);
  expect(clean!.telemetry.length).toBeGreaterThan(0);
});

test("passes the evaluator's name to the program; a limited trace is an issue, without secrets", async () => {
  vi.stubEnv('INFERSCOPE_TORCH_OPTIONS', '{"max_seconds":600,"shapes":false}');
  const script =
    'echo $INFERSCOPE_EVALUATOR; test -z "$INFERSCOPE_TORCH_TRACE" && exit; echo $INFERSCOPE_TORCH_OPTIONS;' +
    'for n in 1 2; do echo "the torch trace of hidden-word ends here" >> $INFERSCOPE_TORCH_TRACE/notes.txt; done;' +
    'echo {} > $INFERSCOPE_TORCH_TRACE/kineto-0-1.json';
  const { executions } = await runEvaluators(
    options(['sh', '-c', script], { evaluators: ['none', 'torch'], secrets: ['hidden-word'] }),
  );
  const [clean, torch] = executions;
  expect(read(clean!.files, 'stdout')).toBe('none\n');
  const [evaluator, optionsLine] = read(torch!.files, 'stdout').split('\n');
  expect(evaluator).toBe('torch');
  // Typed options override those in the environment.
  expect(JSON.parse(optionsLine!)).toMatchObject({ max_seconds: 600, shapes: true });
  const traceIssues = (runExecution: typeof clean) =>
    runExecution!.issues.filter(({ code }) => code === 'torch_trace');
  expect(traceIssues(clean)).toEqual([]);
  expect(traceIssues(torch).map(({ text }) => text)).toEqual(['The torch trace of *** ends here']);
  vi.stubEnv('INFERSCOPE_TORCH_OPTIONS', 'cpu');
  const started: string[] = [];
  const bad = runEvaluators(
    options(['true'], { evaluators: ['none', 'torch'], onProgress: ({ type }) => started.push(type) }),
  );
  await expect(bad).rejects.toMatchObject({ code: 'E_USAGE' });
  expect(started).toEqual([]);
});

test('secrets of the environment and the command line are in no stored log, command or message', async () => {
  const secret = 'planted-value-1234';
  vi.stubEnv('MY_TOKEN', secret);
  const command = ['sh', '-c', `echo "got $MY_TOKEN"; echo "bad $1" >&2; exit 1`, 'sh', `--token=${secret}`];
  const shown = new PassThrough();
  const { executions } = await runEvaluators(options(command, { secrets: [secret], stdout: shown }));
  const [{ files, ...rest }] = executions as [(typeof executions)[0]];
  expect(JSON.stringify([rest, rest.failure?.parts])).not.toContain(secret);
  expect(read(files, 'stdout')).toBe('got ***\n');
  expect(read(files, 'stderr')).toBe('bad --token=***\n');
  // The terminal shows the program's original output.
  expect(shown.read()?.toString()).toBe(`got ${secret}\n`);
});

test('Ctrl-C lets the program exit by itself and stores its output', async () => {
  const stop = new AbortController();
  const script = 'trap "echo cleaned up; exit 5" INT; echo ready; while :; do sleep 0.05; done';
  const out = new PassThrough();
  out.on('data', () => stop.abort('SIGINT'));
  const { executions, stopped } = await runEvaluators(
    options(['sh', '-c', script], { signal: stop.signal, stdout: out, evaluators: ['none'], gemmLog: true }),
  );
  expect(stopped).toBe(true);
  expect(executions).toHaveLength(1);
  expect(executions[0]!.exit_code).toBe(5);
  expect(read(executions[0]!.files, 'stdout')).toBe('ready\ncleaned up\n');
});

test('a second Ctrl-C kills the program and its children', async () => {
  const [stop, kill] = [new AbortController(), new AbortController()];
  const out = new PassThrough();
  const pids: number[] = [];
  out.on('data', (chunk: Buffer) => {
    pids.push(...chunk.toString().trim().split('\n').map(Number));
    stop.abort('SIGINT');
    setTimeout(() => kill.abort('SIGINT'), 100);
  });
  const script = 'trap "" INT; sleep 60 & echo $!; wait; wait; sleep 60';
  const { executions } = await runEvaluators(
    options(['sh', '-c', script], { signal: stop.signal, kill: kill.signal, stdout: out }),
  );
  expect(executions[0]!.signal).toBe('SIGKILL');
  // Gone, or a zombie that its parent has not waited for yet.
  await vi.waitFor(() => expect(processState(pids[0]!)).toMatch(/^[ZX]?$/), { timeout: 30_000 });
});

function processState(pid: number): string {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
}

test('a timeout interrupts the program, reports it, and keeps the output', async () => {
  const { executions } = await runEvaluators(
    options(['sh', '-c', 'echo begun; exec sleep 50'], {
      // Long enough for a busy machine to start the program.
      timeoutMs: 5000,
    }),
  );
  const [clean] = executions;
  expect(clean!.failure?.code).toBe('E_TIMEOUT');
  expect(clean!.timedOut).toBe(true);
  expect(read(clean!.files, 'stdout')).toBe('begun\n');
  // It was stopped: by itself it would take 50 s.
  expect(clean!.end_ns - clean!.start_ns).toBeLessThan(45e9);
});

test('does not wait for a background process that holds the pipes', async () => {
  const startedMs = Date.now();
  const { executions } = await runEvaluators(options(['sh', '-c', 'sleep 100 & echo done']));
  // Before the background process exits.
  expect(Date.now() - startedMs).toBeLessThan(90_000);
  expect(read(executions[0]!.files, 'stdout')).toBe('done\n');
}, 120_000);

test('explains that a program does not exist', async () => {
  const { executions } = await runEvaluators(options(['no-such-program-of-ours'], { gemmLog: true }));
  expect(executions).toHaveLength(1);
  expect(executions[0]!.failure?.parts.what).toBe('the program no-such-program-of-ours was not found');
});

test('explains a real Python failure', async () => {
  const { executions } = await runEvaluators(options(['python3', '-c', 'import no_such_module_of_ours']));
  expect(executions[0]!.failure?.code).toBe('E_ENGINE_MISSING');
});

/** A script named nsys, to check how it is called and that exit codes and files are handled. */
function putFakeNsysOnPath(body: string): string {
  const bin = join(folder(), 'bin');
  mkdirSync(bin);
  const path = join(bin, 'nsys');
  writeFileSync(
    path,
    `#!/bin/sh\nif [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2025.3.1.90"; exit; fi\n${body}\n`,
  );
  chmodSync(path, 0o755);
  vi.stubEnv('PATH', `${bin}${delimiter}${process.env['PATH']}`);
  return bin;
}

test('passes options to nsys, then the program unchanged, and stores its report (fake nsys)', async () => {
  putFakeNsysOnPath(
    'for word; do case "$word" in --output=*) out="${word#--output=}";; esac; echo "$word"; done; echo report > "$out.nsys-rep"; exit 3',
  );
  const { executions } = await runEvaluators(options(['python3', 'x.py', '--a b'], { evaluators: ['nsys'] }));
  const [nsys] = executions;
  expect(nsys).toMatchObject({ execution_id: 'nsys', purpose: 'profiled', exit_code: 3 });
  expect(nsys!.tool).toMatchObject({ name: 'nsys', version: '2025.3.1.90' });
  const words = read(nsys!.files, 'stdout').trim().split('\n');
  expect(words[0]).toBe('profile');
  expect(words.slice(-3)).toEqual(['python3', 'x.py', '--a b']);
  expect(nsys!.files.map(({ kind }) => kind)).toContain('nsys-rep');
});

test('a profiler without output is a failure, and the other executions still run (fake nsys)', async () => {
  putFakeNsysOnPath('exit 0');
  const { executions } = await runEvaluators(options(['true'], { evaluators: ['nsys', 'none'] }));
  expect(executions.map(({ execution_id }) => execution_id)).toEqual(['clean', 'nsys']);
  expect(executions[0]!.failure).toBeNull();
  expect(executions[1]!.failure?.code).toBe('E_NO_KERNELS');
});

test('the GEMM log execution names files for cuBLAS; programs without cuBLAS leave none', async () => {
  const run = options(
    ['sh', '-c', 'echo "$CUBLASLT_LOG_LEVEL $CUBLAS_LOGINFO_DBG"; echo x > "$CUBLASLT_LOG_FILE"'],
    {
      gemmLog: true,
    },
  );
  const { executions } = await runEvaluators(run);
  const gemm = executions.find(({ execution_id }) => execution_id === 'gemm-log')!;
  expect(read(gemm.files, 'stdout')).toBe('5 1\n');
  expect(readdirSync(join(run.scratch, 'gemm-log'))).toContain('cublaslt-%i.log');
  expect(gemm.files.map(({ kind }) => kind)).toContain('cublaslt-log');
});
