import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import process from 'node:process';
import type { Issue } from '../../model/document.js';
import { redactCommand, redactText } from '../../model/redaction.js';
import { recordVariable } from '../record-writer.js';
import { startHostSampler } from '../telemetry.js';
import { gpuFacts, openGpus, type Gpus } from '../telemetry-gpus.js';
import { startDeviceSampler } from './device-sampler.js';
import { downloadIssue } from './first-download.js';
import { recognizeFailure } from './failures.js';
import { emptyCaptureError, cpuFallbackIssue } from './empty-capture.js';
import { waitForFreedMemory, readUsedMemory } from './memory-cleared.js';
import { planExecutions, type PlannedExecution } from './plan-executions.js';
import type { FileKind, RunCapture, RunExecution, RunOptions } from './run-options.js';
import { runProgram, type ProgramEnd } from './run-program.js';
import { engineProcesses } from './unseen-kernels.js';

/**
 * Runs the command once for each evaluator, in sequence, and stores the files of each. Never throws for a
 * program that failed or was stopped: its execution has a `failure`, and the others still run.
 * @throws the errors of planExecutions before anything is run
 */
export async function runEvaluators(options: RunOptions): Promise<RunCapture> {
  const planned = await planExecutions(options);
  const { gpus } = await openGpus();
  const capture: RunCapture = {
    executions: [],
    issues: [],
    facts: gpuFacts(gpus),
    stopped: false,
  };
  const before = gpus ? readUsedMemory(gpus) : null;
  try {
    for (const plan of planned) {
      const rankVariables =
        capture.executions.length > 0
          ? await options.job?.waitForRanks(plan.execution_id, options.signal)
          : {};
      if (options.signal.aborted) break;
      const issue =
        capture.executions.length > 0 ? await waitForFreedMemory(gpus, before, options.signal) : null;
      if (issue) capture.issues.push(issue);
      const execution = await execute(plan, capture.executions, { gpus, rankVariables }, options);
      capture.executions.push(execution);
      options.onProgress({ type: 'end', execution });
      // A program that could not be started will not start for the next evaluator either.
      if (execution.exit_code === null && execution.signal === null && !execution.timedOut) break;
    }
  } finally {
    gpus?.close();
  }
  capture.stopped = options.signal.aborted;
  return capture;
}

/** Runs the command under one evaluator. */
async function execute(
  plan: PlannedExecution,
  earlier: readonly RunExecution[],
  { gpus, rankVariables }: { gpus: Gpus | null; rankVariables: Record<string, string> | undefined },
  options: RunOptions,
): Promise<RunExecution> {
  const folder = join(options.scratch, plan.execution_id);
  await mkdir(folder, { recursive: true });
  const prepared = await plan.prepare(folder, earlier);
  const command = redactCommand(options.command, options.secrets);
  options.onProgress({
    type: 'start',
    execution_id: plan.execution_id,
    words: [plan.execution_id, prepared.bounds].filter(Boolean).join(' · '),
  });

  const paths = { stdout: join(folder, 'stdout.log'), stderr: join(folder, 'stderr.log') };
  const environment = {
    ...process.env,
    ...rankVariables,
    ...prepared.environment,
    [recordVariable]: join(folder, 'record.jsonl'),
  };
  const words = [...prepared.prefix, ...options.command];
  const { end, sampled } = await runSampled({ plan, words, environment, paths, gpus }, options);
  const files = await listSavedFiles(folder, plan.kinds);
  const log = `artifacts/${plan.execution_id}/${await failureLogName(paths)} in the session's folder`;
  const ended = endedFacts(plan, end, options, log);
  // Being stopped by Ctrl-C is not a failure of the program.
  const failure = options.signal.aborted
    ? null
    : (recognizeFailure(ended) ?? emptyCaptureError(plan, files, log));
  const { bounds } = prepared;
  const issues: (Issue | null)[] = [
    ...sampled.flatMap((rows) => rows.issues),
    cpuFallbackIssue(ended.output),
    downloadIssue(ended.output),
    ...(await readProbeNotes(folder, options.secrets)),
    bounds ? { code: 'profiling_bounded', severity: 'info', text: bounds } : null,
  ];
  return {
    execution_id: plan.execution_id,
    purpose: plan.purpose,
    command,
    exit_code: end.exit_code,
    signal: end.signal,
    start_ns: end.start_ns,
    end_ns: end.end_ns,
    tool: plan.tool
      ? {
          name: plan.tool.name,
          version: plan.tool.version,
          command: redactCommand(prepared.prefix, options.secrets).map((word) =>
            word.replace(`${folder}/`, ''),
          ),
        }
      : null,
    bounds,
    files,
    telemetry: sampled.flatMap((rows) => rows.telemetry),
    memory: sampled.flatMap((rows) => rows.memory),
    issues: issues.filter((issue) => issue !== null),
    engineProcesses: engineProcesses(ended.output),
    timedOut: end.timedOut,
    failure,
  };
}

type Samples = Pick<RunExecution, 'telemetry' | 'memory' | 'issues'>;

/** Runs the program while host and GPUs are sampled. @param words the command, with the profiler before it */
async function runSampled(
  {
    plan,
    words,
    environment,
    paths,
    gpus,
  }: {
    plan: PlannedExecution;
    words: readonly string[];
    environment: NodeJS.ProcessEnv;
    paths: { stdout: string; stderr: string };
    gpus: Gpus | null;
  },
  options: RunOptions,
): Promise<{ end: ProgramEnd; sampled: Samples[] }> {
  const keys = { execution_id: plan.execution_id, host: 'localhost' };
  const samplers: { stop(): Samples }[] = [];
  const [file, ...args] = words as [string, ...string[]];
  const end = await runProgram({
    file,
    args,
    env: environment,
    stdoutPath: paths.stdout,
    stderrPath: paths.stderr,
    stdout: options.stdout,
    stderr: options.stderr,
    secrets: options.secrets,
    tool: plan.tool?.name ?? null,
    timeoutMs: options.timeoutMs,
    graceMs: plan.graceMs,
    signal: options.signal,
    kill: options.kill,
    onStart: (pid) => {
      samplers.push(startHostSampler({ pid, keys: { ...keys, capture_id: `${plan.execution_id}-host` } }));
      if (gpus && options.job?.samplesGpus !== false)
        samplers.push(startDeviceSampler(gpus, { ...keys, capture_id: `${plan.execution_id}-gpus` }));
    },
  });
  return { end, sampled: samplers.map((sampler) => sampler.stop()) };
}

function endedFacts(plan: PlannedExecution, end: ProgramEnd, options: RunOptions, log: string) {
  return {
    execution_id: plan.execution_id,
    command: redactCommand(options.command, options.secrets),
    exit_code: end.exit_code,
    signal: end.signal,
    startError: end.startError,
    timedOut: end.timedOut,
    timeoutMs: options.timeoutMs,
    output: redactText(`${end.stdoutTail}\n${end.stderrTail}`, options.secrets),
    tool: plan.tool,
    log,
  };
}

/** Name of the log to read after a failure: stderr.log, or stdout.log if the program wrote nothing to stderr. */
async function failureLogName(paths: { stdout: string; stderr: string }): Promise<string> {
  const errors = await stat(paths.stderr).catch(() => null);
  return basename(errors && errors.size > 0 ? paths.stderr : paths.stdout);
}

/** Non-empty files in an execution's folder, by the kinds its tool writes. */
async function listSavedFiles(
  folder: string,
  kinds: readonly [RegExp, FileKind][],
): Promise<{ path: string; kind: FileKind }[]> {
  const files: { path: string; kind: FileKind }[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const kind = kinds.find(([pattern]) => pattern.test(name))?.[1];
    const path = join(folder, name);
    if (kind && existsSync(path) && (await stat(path)).size > 0) files.push({ path, kind });
  }
  return files;
}

/** The probe's notes about missing parts of a trace (inferscope_after_import.py), one line each, from any process. */
async function readProbeNotes(folder: string, secrets: readonly string[]): Promise<Issue[]> {
  const text = await readFile(join(folder, 'notes.txt'), 'utf8').catch(() => '');
  const lines = [...new Set(text.split('\n').filter(Boolean))];
  return lines.map((line) => ({
    code: 'torch_trace',
    severity: 'warning',
    text: `${line.charAt(0).toUpperCase()}${redactText(line.slice(1), secrets)}`,
  }));
}
