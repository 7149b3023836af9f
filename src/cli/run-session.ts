import { readHotKernels } from '../facts/trace/hot-kernels.js';
import { kernelFunction } from '../vocabulary/kernel-label.js';
import { withRows } from '../session/select.js';
import { openSession } from '../session/open.js';
import { basename } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import { defaultEvaluators, parseEvaluators } from '../capture/run/choose-evaluators.js';
import { runEvaluators } from '../capture/run/run-evaluators.js';
import type { KernelChoice, RunCapture, RunOptions, RunProgress } from '../capture/run/run-options.js';
import { shellExitCode } from '../capture/run/run-program.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { nestedSession } from '../model/outer-run.js';
import { redactCommand } from '../model/redaction.js';
import { attachGpuRoofline } from './attach-roofline.js';
import { workloadOf } from './import-run.js';
import { reportError, notify, warn } from './output.js';
import type { ImportedCaptures } from './import-captures.js';
import { startProgress } from './progress.js';
import { interruptibleRun, type RunInterrupts } from './interrupt.js';
import { saveRun } from './run-save.js';
import { storePart, type Job, jobOfLauncher } from './ranks/job.js';
import { joinJob } from './ranks/join-job.js';
import { partHome } from '../record/ranks/part.js';
import { type ContextOptions, saveContext, readContext } from './context-options.js';
import { showSession } from './session-summary.js';
import { refuseUnused } from './unused-options.js';
import { type Recorded, type Recording, recordSession } from '../record/record-session.js';
import { cutEnd } from '../vocabulary/cut.js';
import { formatNs } from '../vocabulary/format.js';

export type RunCommandRange = { kind: 'cudaProfilerApi' } | { kind: 'nvtx'; name: string } | null;

export interface RunCommandOptions extends ContextOptions {
  name?: string;
  tag: string[];
  evaluator: string[];
  analyze: boolean;
  gemmLog?: boolean;
  hooks: boolean;
  job?: string;
  ranks: boolean;
  captureRange: RunCommandRange;
  nsysTrace: string[];
  nsysArg: string[];
  ncuSet: 'full' | 'basic' | 'detailed' | 'roofline';
  ncuKernel?: string;
  ncuNvtx: string[];
  ncuLaunchCount: number;
  ncuSession?: string;
  ncuArg: string[];
  torchShapes: boolean;
  torchMemory?: boolean;
  torchStack?: boolean;
  torchFlops?: boolean;
  timeout?: number;
  exitCode: 'own' | 'child';
  json?: boolean;
  quiet?: boolean;
}

const evaluatorOptions: Readonly<Record<string, readonly string[]>> = {
  nsys: ['captureRange', 'nsysTrace', 'nsysArg'],
  ncu: ['ncuSet', 'ncuKernel', 'ncuNvtx', 'ncuLaunchCount', 'ncuSession', 'ncuArg'],
  torch: ['torchShapes', 'torchMemory', 'torchStack', 'torchFlops'],
};

/** Rejects options of an evaluator that is not selected. */
function refuseUnselectedOptions(command: Command, evaluators: readonly string[]): void {
  const running = evaluators.length === 0 ? 'none' : evaluators.join(',');
  for (const [evaluator, names] of Object.entries(evaluatorOptions))
    if (!evaluators.includes(evaluator))
      refuseUnused(command, names, {
        why: `It is an option of the evaluator ${evaluator}; this command runs: ${running}.`,
        fix: `Add it: --evaluator ${[...evaluators.filter((name) => name !== 'none'), evaluator].join(',')}`,
      });
}

/** `inferscope run`: the command under each evaluator → session → summary. Sets the exit code. */
export async function runCommand(
  command: string[],
  options: RunCommandOptions,
  invoked: Command,
): Promise<void> {
  const chosenEvaluators = parseEvaluators(options.evaluator);
  const chosen =
    chosenEvaluators.length > 0
      ? { evaluators: chosenEvaluators, because: null }
      : await defaultEvaluators(command);
  if (chosen.because && !options.quiet)
    notify(`evaluator ${chosen.evaluators.join(', ')}: ${chosen.because} (--evaluator chooses)`);
  refuseUnselectedOptions(invoked, chosen.evaluators);
  const context = await readContext(options);
  const kernels = options.ncuSession === undefined ? null : await kernelsOfSession(options.ncuSession);
  const job = options.ranks ? jobOfLauncher(options.job) : null;
  // All ranks of a job do the same, so only rank 0 prints.
  const quiet = options.quiet === true || (job !== null && job.rank > 0);
  const saved = await interruptibleRun((interrupts) =>
    recordRun(command, { ...options, quiet }, { ...chosen, kernels, job }, interrupts),
  );
  const id = job === null ? saved.id : await jobSession(job, saved, options);
  if (id !== null) {
    if (!options.quiet) startProgress(false).done('session saved', id);
    await saveContext(id, context);
  }
  // A launcher stops all ranks if one fails, so a failure of inferscope itself must not stop the others.
  const exitCode =
    job !== null && invoked.getOptionValueSource('exitCode') !== 'cli' ? 'child' : options.exitCode;
  await reportOutcome(
    saved,
    { id, place: id === null ? job!.folder : `Session ${id}` },
    { ...options, exitCode },
  );
}

/** @returns the session of all ranks if this was the last one, else null */
async function jobSession(
  job: Job,
  { id, calls }: RecordedRun,
  options: RunCommandOptions,
): Promise<string | null> {
  if (!(await storePart(job, id, calls!))) return null;
  const progress = startProgress(options.quiet === true);
  progress.update('joining', `${job.worldSize} ranks`);
  try {
    return (await joinJob(job.folder, { name: options.name, tags: options.tag })).id;
  } finally {
    progress.end();
  }
}

interface Prepared {
  evaluators: RunOptions['evaluators'];
  kernels: RunOptions['kernels'];
  job: Job | null;
}

interface RecordedRun {
  id: string;
  capture: RunCapture;
  /** A signal arrived while the program ran or its captures were read. */
  interrupted: boolean;
  /** Collectives, if this is a rank of a job. */
  calls: ImportedCaptures['calls'];
}

/** Kernels for ncu from a session with their times. @throws E_SESSION_NOT_FOUND, E_NO_KERNELS */
async function kernelsOfSession(selector: string): Promise<KernelChoice> {
  const session = await openSession(selector, undefined, withRows('kernels', 'kernels'));
  const { names, stages } = await readHotKernels(session);
  return {
    names: [...new Set(names.map(kernelFunction))],
    source: `from session ${session.id}: ${stages.join(', ')}`,
  };
}

async function recordRun(
  command: string[],
  options: RunCommandOptions,
  { evaluators, kernels, job }: Prepared,
  interrupts: RunInterrupts,
): Promise<RecordedRun> {
  const plan = {
    label: options.name ?? programName(command),
    kind: 'run',
    doing: 'save the session',
    ...(job === null ? { name: options.name ?? null, tags: options.tag } : { home: partHome(job.recording) }),
  };
  return recordSession(plan, async (recording) => {
    const capture = await runEvaluators({
      command,
      evaluators,
      gemmLog: options.gemmLog === true,
      hooks: options.hooks,
      nsys: { trace: options.nsysTrace, captureRange: options.captureRange, args: options.nsysArg },
      ncu: ncuOptions(options),
      torch: {
        shapes: options.torchShapes,
        memory: options.torchMemory === true,
        stack: options.torchStack === true,
        flops: options.torchFlops === true,
      },
      timeoutMs: options.timeout ?? null,
      scratch: recording.scratch,
      secrets: [...recording.secrets],
      stdout: options.json ? process.stderr : process.stdout,
      stderr: process.stderr,
      signal: interrupts.signal,
      kill: interrupts.kill,
      kernels,
      job,
      onProgress: (progress) => {
        interrupts.enter('program');
        if (!options.quiet) showProgress(progress);
      },
    });
    interrupts.enter('reading');
    const { calls, ...recorded } = await importRun(recording, capture, options, {
      unread: interrupts.unread,
      part: job !== null,
    });
    const title = cutEnd(redactCommand(command, [...recording.secrets]).join(' '), 120);
    return { ...recorded, title, result: { capture, calls, interrupted: interrupts.signal.aborted } };
  });
}

function ncuOptions(options: RunCommandOptions): RunOptions['ncu'] {
  return {
    set: options.ncuSet,
    launchCount: options.ncuLaunchCount,
    kernel: options.ncuKernel ?? null,
    nvtx: options.ncuNvtx,
    profilerApi: options.captureRange?.kind === 'cudaProfilerApi',
    args: options.ncuArg,
  };
}

function showProgress(progress: RunProgress): void {
  if (progress.type === 'start') notify(`— execution ${progress.words}`);
  else {
    const { execution_id, start_ns, end_ns, exit_code, signal, issues } = progress.execution;
    const time = formatNs(end_ns - start_ns);
    notify(
      exit_code === null && signal === null
        ? `— execution ${execution_id} did not start`
        : `— execution ${execution_id} exited with ${signal ?? `code ${exit_code}`} after ${time}`,
    );
    for (const { severity, text } of issues) if (severity === 'warning') warn(text);
  }
}

async function importRun(
  recording: Recording,
  capture: RunCapture,
  options: RunCommandOptions,
  { unread, part }: { unread: AbortSignal; part: boolean },
): Promise<Omit<Recorded, 'title'> & Pick<RecordedRun, 'calls'>> {
  const progress = startProgress(options.quiet === true);
  const imported = await saveRun(recording, capture, { progress, unread, part });
  progress.end();
  const hardware = { ...capture.facts.hardware, ...imported.hardware };
  const failed = capture.executions.some(({ failure }) => failure !== null);
  for (const { code, text } of imported.issues)
    if (code === nestedSession && !options.quiet) notify(`— ${text}`);
  return {
    calls: imported.calls,
    status: capture.stopped || unread.aborted ? 'interrupted' : failed ? 'failed' : 'complete',
    workload: workloadOf(imported, null),
    hardware,
    software: { ...capture.facts.software, ...imported.software },
    executions: imported.executions,
    captures: imported.captures,
    issues: [...imported.issues, ...(await attachGpuRoofline(recording.files, hardware))],
  };
}

/** Where the recording is: the session's id; null for a rank that is not joined yet. */
interface Place {
  id: string | null;
  place: string;
}

/** Prints a failure, then the summary or document; with --json a failure is the document. Sets the exit code. */
async function reportOutcome(
  { capture, interrupted }: RecordedRun,
  { id, place }: Place,
  options: RunCommandOptions,
): Promise<void> {
  const failure = capture.executions.find((execution) => execution.failure !== null);
  const childExitCode = capture.executions.map(shellExitCode).find((code) => code !== 0);
  if (failure?.failure && options.json) {
    process.exitCode = reportError(withPlace(failure.failure, place, capture), true);
    if (options.exitCode === 'child') process.exitCode = childExitCode ?? process.exitCode;
    return;
  }
  // The failure comes first: a program that ran out of memory recorded little.
  const exitCode = failure?.failure ? reportError(withPlace(failure.failure, place, capture), false) : null;
  const measured = capture.executions.some(({ exit_code, signal }) => exit_code !== null || signal !== null);
  if (measured && id !== null) await showSession(id, options, exitCode !== null);
  if (exitCode !== null) process.exitCode = exitCode;
  if (interrupted) {
    warn(`interrupted: ${place} has what was recorded so far`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
  if (options.exitCode === 'child') process.exitCode = childExitCode ?? 0;
}

function withPlace(failure: InferscopeError, place: string, capture: RunCapture): InferscopeError {
  const codes = capture.executions.map(
    (execution) => `${execution.execution_id} ${shellExitCode(execution) ?? 'not started'}`,
  );
  const fix = `${failure.parts.fix}\n${place} has what was recorded (exit codes: ${codes.join(', ')}).`;
  return new InferscopeError(failure.code, { ...failure.parts, fix }, { cause: failure });
}

/** python decode.py … → decode; otherwise the program's name. */
function programName(command: readonly string[]): string {
  const script = command.find((word) => /\.(py|sh|js|mjs)$/.test(word)) ?? command[0] ?? 'run';
  return basename(script).replace(/\.\w+$/, '');
}
