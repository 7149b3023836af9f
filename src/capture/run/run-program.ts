import { spawn, type ChildProcess } from 'node:child_process';
import { constants as system } from 'node:os';
import process from 'node:process';
import { endWithParent } from '../../model/end-with-parent.js';
import { systemErrorCode } from '../../model/errors.js';
import { processTree } from '../process-tree.js';
import { monotonicNs } from '../../model/clock.js';
import { processesBelowProfiler } from './below-profiler.js';
import { teeOutput } from './tee-output.js';

export interface ProgramOptions {
  file: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  stdoutPath: string;
  stderrPath: string;
  stdout: NodeJS.WritableStream | null;
  stderr: NodeJS.WritableStream | null;
  /** Values replaced in the stored copies of stdout and stderr. */
  secrets: string[];
  /** The profiler around the program, with its own messages hidden; null: none. */
  tool: string | null;
  timeoutMs: number | null;
  /** After a timeout: grace period after each of SIGINT and SIGTERM before the next signal. */
  graceMs: number;
  signal: AbortSignal;
  kill: AbortSignal;
  /** Called with the pid once it runs. */
  onStart: (pid: number) => void;
}

export interface ProgramEnd {
  exit_code: number | null;
  /** Signal that ended it, e.g. SIGKILL. */
  signal: string | null;
  timedOut: boolean;
  /** ENOENT, EACCES, … if it could not be started. */
  startError: string | null;
  start_ns: number;
  end_ns: number;
  /** The last 64 KiB of each, secrets replaced. */
  stdoutTail: string;
  stderrTail: string;
}

/**
 * nsys stops recording at a signal before the processes below it have flushed their kernels: with `vllm serve` all were lost (2025.3.2 on
 * an H200), and none when only the program's first process was interrupted. Signals are therefore sent to that process, and nsys runs in
 * its own session, which a terminal's Ctrl-C does not reach.
 */
const toolInOwnSession = 'nsys';
const stopSignals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
const programPollMs = 200;
/**
 * Time for the first process of a program to stop the others. vLLM's front end stops its engine core by SIGTERM, which kills
 * one that is already exiting: its kernels, flushed last, are lost (observed with SIGINT to all processes at once).
 */
const forwardingMs = 30_000;

/** Grace periods for nsys after the program is killed: it writes large reports for minutes, and without one nothing is recorded. */
const reportGraces = 10;

/** A background process may keep the pipes open after the program has exited. */
const pipeGraceMs = 2_000;

/**
 * Runs a program with this process's stdin, shows its output live and stores a copy. Never throws.
 */
export async function runProgram(options: ProgramOptions): Promise<ProgramEnd> {
  const { file, args, env } = options;
  const start_ns = monotonicNs();
  const hasOwnSession = options.tool === toolInOwnSession && process.platform === 'linux';
  const child = endWithParent((mark) =>
    spawn(file, args, {
      env: { ...env, ...mark },
      stdio: ['inherit', 'pipe', 'pipe'],
      detached: hasOwnSession,
    }),
  );
  const outputs = [
    teeOutput(child.stdout, options.stdoutPath, options.stdout, options.secrets, options.tool),
    teeOutput(child.stderr, options.stderrPath, options.stderr, options.secrets, options.tool),
  ] as const;
  const stopping = stopOnRequest(child, options, hasOwnSession);
  if (child.pid !== undefined) options.onStart(child.pid);
  const ended = await waitForEnd(child);
  const timedOut = stopping.end();
  const [stdoutTail, stderrTail] = await Promise.all(outputs.map((output) => output.end(pipeGraceMs)));
  return { ...ended, timedOut, start_ns, stdoutTail: stdoutTail!, stderrTail: stderrTail! };
}

/**
 * Stops the program when the user asks for it, or after the timeout.
 * @returns `end`, to call after the program has exited, returns whether the timeout stopped it
 */
function stopOnRequest(
  child: ChildProcess,
  { signal, kill, timeoutMs, graceMs }: ProgramOptions,
  hasOwnSession: boolean,
): { end(): boolean } {
  let timedOut = false;
  const timers: NodeJS.Timeout[] = [];
  const schedule = (ms: number, work: () => void) => timers.push(setTimeout(work, ms));
  const signalProgram = (name: NodeJS.Signals, processes: 'first' | 'all'): void => {
    const program = child.pid === undefined ? [] : processesBelowProfiler(child.pid)[processes];
    // Not started yet, or exited: then the profiler writes its report and exits by itself.
    if (program.length === 0) schedule(programPollMs, () => signalProgram(name, processes));
    else signalEach(program, name);
  };
  const interrupt = () => {
    const name = signalOf(signal.reason);
    if (!hasOwnSession) {
      forwardSignal(child, name);
      return;
    }
    signalProgram(name, 'first');
    schedule(forwardingMs, () => signalProgram(name, 'all'));
  };
  const killAll = () => killTree(child);
  if (timeoutMs !== null) {
    schedule(timeoutMs, () => {
      timedOut = true;
      // SIGINT first: Python and profilers then write their data.
      const steps: (() => void)[] = hasOwnSession
        ? [
            () => signalProgram('SIGINT', 'first'),
            () => signalProgram('SIGTERM', 'all'),
            () => signalProgram('SIGKILL', 'all'),
          ]
        : stopSignals.map((name) => () => signalTree(child, name));
      for (const [index, step] of steps.entries()) schedule(index * graceMs, step);
      schedule((steps.length - 1 + (hasOwnSession ? reportGraces : 1)) * graceMs, killAll);
    });
  }
  signal.addEventListener('abort', interrupt, { once: true });
  kill.addEventListener('abort', killAll, { once: true });
  return {
    end() {
      for (const timer of timers) clearTimeout(timer);
      signal.removeEventListener('abort', interrupt);
      kill.removeEventListener('abort', killAll);
      return timedOut;
    },
  };
}

/** How and when the program ended, or why it could not be started. */
const waitForEnd = (
  child: ChildProcess,
): Promise<Pick<ProgramEnd, 'exit_code' | 'signal' | 'startError' | 'end_ns'>> =>
  new Promise((resolve) => {
    child.once('error', (error) => {
      const startError = systemErrorCode(error) ?? 'unknown';
      if (child.pid === undefined)
        resolve({ exit_code: null, signal: null, startError, end_ns: monotonicNs() });
    });
    child.once('exit', (exit_code, signal) =>
      resolve({ exit_code, signal, startError: null, end_ns: monotonicNs() }),
    );
  });

function signalOf(reason: unknown): NodeJS.Signals {
  return reason === 'SIGTERM' ? 'SIGTERM' : 'SIGINT';
}

/**
 * A terminal sends Ctrl-C to the whole foreground group, so the program has it already: a second SIGINT would cut its
 * clean-up short. A signal sent only to this process is forwarded.
 */
function forwardSignal(child: ChildProcess, name: NodeJS.Signals): void {
  const fromTerminal = name === 'SIGINT' && process.stdin.isTTY === true;
  if (!fromTerminal) child.kill(name);
}

/** A profiler may not forward a signal, so the program below it gets it too. */
function signalTree(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  signalEach(descendants(child.pid), name);
}

function signalEach(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has exited since the processes were listed.
    }
  }
}

function killTree(child: ChildProcess): void {
  signalTree(child, 'SIGKILL');
}

function descendants(pid: number): number[] {
  return process.platform === 'linux' ? processTree(pid).reverse() : [pid];
}

/** Exit code that a shell would report: 128 + the signal's number. */
export function shellExitCode({
  exit_code,
  signal,
}: Pick<ProgramEnd, 'exit_code' | 'signal'>): number | null {
  if (exit_code !== null) return exit_code;
  const number = signal === null ? undefined : system.signals[signal as NodeJS.Signals];
  return number === undefined ? null : 128 + number;
}
