import type { ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { execaNode } from 'execa';
import { endWithParent } from '../../model/end-with-parent.js';
import { exitCodeOf, InferscopeError, type ErrorCode } from '../../model/errors.js';
import { childEntry } from '../../model/installation.js';
import { recordVariable } from '../../model/outer-run.js';
import { asStorageFailure } from '../../vocabulary/storage-failure.js';
import { type FailedStart, startError } from '../../model/process-start.js';

/**
 * The embedded engine always runs in its own process: the profiler's memory and timers are not measured with it, a crash of
 * the runtime is contained, and `session.run`, which blocks the event loop, does not stop the sampler. Orders go through
 * Node's IPC channel, progress and the outcome come back the same way.
 */

type Failure = { code: string; what: string; why: string; fix: string } | { stack: string };
type Order<Plan> = { type: 'plan'; plan: Plan } | { type: 'stop' };
type Message<Progress, Result> =
  | { type: 'ready' }
  | { type: 'progress'; progress: Progress }
  | { type: 'done'; result: Result }
  | { type: 'failed'; error: Failure };

export interface EngineProcess<Result> {
  pid: number;
  result: Promise<Result>;
}

/**
 * Parent's side: starts a built entry with its plan.
 * @param what names the work in the error of a process that died
 * @returns `result` rejects with the engine's own error, E_OUT_OF_MEMORY, E_WORKLOAD_FAILED, E_PROCESS_START or E_INTERRUPTED
 */
export function startEngineProcess<Plan, Progress, Result>(
  entry: string,
  plan: Plan,
  options: {
    what: string;
    /** Added to this process's environment. */
    env?: Record<string, string>;
    signal: AbortSignal;
    onProgress: (progress: Progress) => void;
  },
): EngineProcess<Result> {
  const subprocess = endWithParent((mark) =>
    execaNode(childEntry(entry), [], {
      ipc: true,
      env: { ...options.env, ...mark },
      stdio: ['ignore', 'pipe', 'pipe'],
      reject: false,
      maxBuffer: 1 << 20,
    }),
  );
  const child = subprocess as unknown as ChildProcess;
  const send = (order: Order<Plan>) => child.connected && child.send(order, () => {});
  const stop = () => send({ type: 'stop' });
  options.signal.addEventListener('abort', stop);

  const result = new Promise<Result>((resolve, reject) => {
    let ready = false;
    let ended = false;
    child.on('message', (message: Message<Progress, Result>) => {
      if (message.type === 'ready') {
        ready = true;
        send({ type: 'plan', plan });
        if (options.signal.aborted) stop();
      } else if (message.type === 'progress') options.onProgress(message.progress);
      else {
        ended = true;
        if (message.type === 'done') resolve(message.result);
        else reject(engineError(message.error));
      }
    });
    void (async () => {
      const exit = await subprocess;
      options.signal.removeEventListener('abort', stop);
      if (ended) return;
      const unstarted = !ready && exit.signal === undefined;
      reject(
        unstarted
          ? startError('runs the embedded engine', childEntry(entry), failedStart(exit))
          : processDied(options.what, exit, options.signal.aborted),
      );
    })();
  });
  // Settles only after the process has exited, so that nobody reads files it is still writing.
  return { pid: child.pid!, result: Promise.allSettled([result, subprocess]).then(() => result) };
}

/** Child's side: waits for the plan, runs it, reports the outcome and exits. */
export function serveEngineProcess<Plan, Progress, Result>(
  run: (
    plan: Plan,
    context: { stopped: () => boolean; report: (progress: Progress) => void },
  ) => Promise<Result>,
): void {
  let stopped = false;
  const sendMessage = (message: Message<Progress, Result>, then: () => void = () => {}) =>
    process.send!(message, then);
  // The terminal sends SIGINT and SIGHUP to both processes; the parent decides and asks us to stop.
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});
  process.on('message', (order: Order<Plan>) => {
    if (order.type === 'stop') {
      stopped = true;
      return;
    }
    run(order.plan, {
      stopped: () => stopped,
      report: (progress) => sendMessage({ type: 'progress', progress }),
    }).then(
      (result) => sendMessage({ type: 'done', result }, () => process.exit(0)),
      (error: unknown) => sendMessage({ type: 'failed', error: failureOf(error) }, () => process.exit(0)),
    );
  });
  sendMessage({ type: 'ready' });
}

function failureOf(error: unknown): Failure {
  const path = process.env[recordVariable] ?? tmpdir();
  const known = asStorageFailure(error, { path, doing: 'record the run of the engine', home: true });
  if (known instanceof InferscopeError) return { code: known.code, ...known.parts };
  return { stack: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

function engineError(error: Failure): InferscopeError {
  if ('stack' in error) {
    return new InferscopeError('E_WORKLOAD_FAILED', {
      what: `the embedded engine failed: ${error.stack.split('\n')[0]}`,
      why: error.stack,
      fix: 'Try --model llama-24m with the defaults; if that works, the model or the sizes are the cause.',
    });
  }
  const { code, ...parts } = error;
  return new InferscopeError(code in exitCodeOf ? (code as ErrorCode) : 'E_WORKLOAD_FAILED', parts);
}

interface EngineExit {
  exitCode?: number | undefined;
  signal?: string | undefined;
  stderr?: unknown;
  /** The exception of spawn. */
  cause?: unknown;
}

const failedStart = ({ exitCode, stderr, cause }: EngineExit): FailedStart =>
  exitCode === undefined ? { thrown: cause } : { exitCode, stderr: String(stderr ?? '') };

function processDied(what: string, exit: EngineExit, stopping: boolean): InferscopeError {
  // Ctrl-C reaches the whole process group, including a process that is still starting and has no handler yet.
  if (stopping && ['SIGINT', 'SIGTERM', 'SIGHUP'].includes(exit.signal ?? '')) {
    return new InferscopeError('E_INTERRUPTED', {
      what: `stopped during ${what}`,
      why: `The engine process was killed by ${exit.signal}.`,
      fix: 'Run it again to measure the rest.',
    });
  }
  // The kernel's out-of-memory killer sends SIGKILL; other senders are unlikely.
  if (exit.signal === 'SIGKILL') {
    return new InferscopeError('E_OUT_OF_MEMORY', {
      what: `the engine process was killed during ${what}`,
      why: 'It was killed by SIGKILL, which the kernel sends when memory runs out.',
      fix: 'Use a smaller --batch-size, --input-len or model, or --dtype int4.',
    });
  }
  const stderr = String(exit.stderr ?? '')
    .trim()
    .split('\n')
    .slice(-3)
    .join('\n');
  return new InferscopeError('E_WORKLOAD_FAILED', {
    what: `the engine process died during ${what} (${exit.signal ?? `exit code ${exit.exitCode}`})`,
    why: stderr || 'It printed nothing to stderr.',
    fix: 'Run it again; if it dies again, try --model llama-24m to see whether the engine works here.',
  });
}
