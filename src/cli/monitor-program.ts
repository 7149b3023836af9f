import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { recognizeFailure } from '../capture/run/failures.js';
import { runProgram, shellExitCode, type ProgramEnd } from '../capture/run/run-program.js';
import { exitCodeOf, type InferscopeError } from '../model/errors.js';
import { redactCommand, redactText } from '../model/redaction.js';
import type { Recording } from '../record/record-session.js';
import { type Machine, recordMachine } from './monitor-recording.js';
import { notify, warn } from './output.js';
import { interruptibleTwice } from './interrupt.js';
import type { MonitorCommandOptions } from './monitor-session.js';

/** Time to sample the machine before the program starts, as a baseline. */
const idleBeforeMs = 250;

/** `inferscope monitor --while -- command…`. Output, signals and exit code as in `inferscope run`. */
export async function monitorProgram(command: string[], options: MonitorCommandOptions): Promise<void> {
  const { end, stopped, failure } = await interruptibleTwice((signal, kill) =>
    recordMachine(options.name ?? 'monitor', options, false, async (machine) => {
      await sleep(idleBeforeMs);
      const ended = runSampledProgram(machine, command, options, signal, kill);
      await machine.untilEnd(ended);
      const { aborted } = signal;
      const end = await ended;
      await saveLogs(machine.recording);
      const secrets = [...machine.recording.secrets];
      const shownCommand = redactCommand(command, secrets);
      const failed = end.exit_code !== 0 || end.startError !== null;
      const { exit_code, signal: endSignal, start_ns, end_ns } = end;
      return {
        title: shownCommand.join(' '),
        status: aborted ? 'interrupted' : failed ? 'failed' : 'complete',
        program: { command: shownCommand, exit_code, signal: endSignal, start_ns, end_ns },
        result: { end, stopped: aborted, failure: failureOf(shownCommand, end, secrets) },
      };
    }),
  );
  reportEnd(end, stopped, failure, options);
}

function runSampledProgram(
  { recording, watch }: Machine,
  [file, ...args]: string[],
  options: MonitorCommandOptions,
  signal: AbortSignal,
  kill: AbortSignal,
): Promise<ProgramEnd> {
  const { scratch, secrets } = recording;
  return runProgram({
    file: file!,
    args,
    env: process.env,
    stdoutPath: join(scratch, 'stdout.log'),
    stderrPath: join(scratch, 'stderr.log'),
    stdout: options.json ? process.stderr : process.stdout,
    stderr: process.stderr,
    secrets: [...secrets],
    tool: null,
    timeoutMs: options.duration ?? null,
    graceMs: 5_000,
    signal,
    kill,
    onStart: (pid) => recording.append(watch.follow(pid)),
  });
}

async function saveLogs({ files, scratch }: Recording): Promise<void> {
  for (const kind of ['stdout', 'stderr'])
    await files.addArtifact(join(scratch, `${kind}.log`), { kind, captureId: null, name: `${kind}.log` });
}

function failureOf(command: string[], end: ProgramEnd, secrets: readonly string[]): InferscopeError | null {
  return recognizeFailure({
    execution_id: 'monitor',
    command,
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

function reportEnd(
  end: ProgramEnd,
  stopped: boolean,
  failure: InferscopeError | null,
  options: MonitorCommandOptions,
): void {
  // Stopping after --duration is a normal exit.
  if (failure && !stopped && !end.timedOut) {
    warn(`${failure.parts.what} (${failure.code})`);
    for (const line of `${failure.parts.why}\n${failure.parts.fix}`.split('\n')) notify(`  ${line}`);
    process.exitCode = exitCodeOf[failure.code];
  }
  if (stopped) {
    warn('interrupted: the summary covers what was recorded so far');
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
  if (options.exitCode === 'child') process.exitCode = shellExitCode(end) ?? startFailureCode(end);
}

/** Exit code of a shell for a program that cannot be started. */
function startFailureCode({ startError }: ProgramEnd): number {
  return startError === 'ENOENT' ? 127 : 126;
}
