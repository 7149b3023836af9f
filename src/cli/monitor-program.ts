import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { recogniseFailure } from '../capture/run/failures.js';
import { runProgram, shellExitCode, type ProgramEnd } from '../capture/run/run-program.js';
import { exitCodeOf, type InferscopeError } from '../model/errors.js';
import { redactCommand, redactText, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';
import { startRecording, type Recording } from './monitor-recording.js';
import { talk, warn } from './output.js';
import { interruptibleTwice } from './run-interrupt.js';
import type { MonitorCommandOptions } from './monitor-session.js';

/** Time to sample the machine before the program starts, as a baseline. */
const beforeMs = 250;

/** `inferscope monitor --while -- command…`. Output, signals and exit code as in `inferscope run`. */
export async function monitorProgram(command: string[], options: MonitorCommandOptions): Promise<void> {
  const secrets = [...secretsOfEnvironment(process.env), ...secretsOfCommand(command)];
  let recording: Recording | null = null;
  let end: ProgramEnd;
  let stopped = false;
  try {
    const watched = await interruptibleTwice(async (signal, kill) => {
      recording = await startRecording(options.name ?? 'monitor', options, false);
      await sleep(beforeMs);
      const ended = run(recording, command, options, secrets, signal, kill);
      await recording.untilEnd(ended);
      stopped = signal.aborted;
      return { recording, end: await ended };
    });
    end = watched.end;
    await keepLogs(watched.recording, secrets);
    const failed = end.exit_code !== 0 || end.startError !== null;
    await watched.recording.conclude({
      title: redactCommand(command, secrets).join(' '),
      status: stopped ? 'interrupted' : failed ? 'failed' : 'complete',
      program: {
        command: redactCommand(command, secrets),
        exit_code: end.exit_code,
        signal: end.signal,
        start_ns: end.start_ns,
        end_ns: end.end_ns,
      },
    });
  } catch (error) {
    await abandon(recording);
    throw error;
  }
  conclude(end, stopped, failureOf(command, end, secrets), options);
}

/** Assigned in a closure, which the type checker does not track. */
async function abandon(recording: Recording | null): Promise<void> {
  await recording?.abandon();
}

function run(
  recording: Recording,
  [file, ...args]: string[],
  options: MonitorCommandOptions,
  secrets: string[],
  signal: AbortSignal,
  kill: AbortSignal,
): Promise<ProgramEnd> {
  const { scratch } = recording.session.recording;
  return runProgram({
    file: file!,
    args,
    env: process.env,
    stdoutPath: join(scratch, 'stdout.log'),
    stderrPath: join(scratch, 'stderr.log'),
    stdout: options.json ? process.stderr : process.stdout,
    stderr: process.stderr,
    secrets,
    tool: null,
    timeoutMs: options.duration ?? null,
    graceMs: 5_000,
    signal,
    kill,
    onStart: (pid) => recording.append(recording.watch.follow(pid)),
  });
}

async function keepLogs({ session }: Recording, secrets: string[]): Promise<void> {
  for (const kind of ['stdout', 'stderr']) {
    const path = join(session.recording.scratch, `${kind}.log`);
    await session.recording.files.addArtifact(path, {
      kind,
      captureId: null,
      name: redactText(`${kind}.log`, secrets),
    });
  }
}

function failureOf(command: string[], end: ProgramEnd, secrets: string[]): InferscopeError | null {
  return recogniseFailure({
    execution_id: 'monitor',
    command: redactCommand(command, secrets),
    exit_code: end.exit_code,
    signal: end.signal,
    startError: end.startError,
    timedOut: false,
    timeoutMs: null,
    output: redactText(`${end.stdoutTail}\n${end.stderrTail}`, secrets),
    tool: null,
    log: end.stderrTail === '' ? 'stdout above' : 'stderr above',
  });
}

function conclude(
  end: ProgramEnd,
  stopped: boolean,
  failure: InferscopeError | null,
  options: MonitorCommandOptions,
): void {
  // Stopping after --duration is a normal exit.
  if (failure && !stopped && !end.timedOut) {
    warn(`${failure.parts.what} (${failure.code})`);
    for (const line of `${failure.parts.why}\n${failure.parts.fix}`.split('\n')) talk(`  ${line}`);
    process.exitCode = exitCodeOf[failure.code];
  }
  if (stopped) {
    warn('interrupted: the summary covers what was recorded so far');
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
  if (options.exitCode === 'child') process.exitCode = shellExitCode(end) ?? reportedStart(end);
}

/** Exit code of a shell for a program that cannot be started. */
function reportedStart({ startError }: ProgramEnd): number {
  return startError === 'ENOENT' ? 127 : 126;
}
