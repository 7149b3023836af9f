import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import { childEntry } from '../../model/installation.js';
import { runProgram, type ProgramEnd } from '../run/run-program.js';

/** Time for a run to save its results after Ctrl-C or its timeout, before it is killed. */
const graceMs = 20_000;

export interface RunRequest {
  /** Arguments after `inferscope`. */
  arguments: readonly string[];
  /** Folder and file name prefix of its stdout and stderr. */
  logs: { folder: string; name: string };
  timeoutMs: number | null;
  secrets: string[];
  signal: AbortSignal;
  kill: AbortSignal;
  onStart: (started: Pick<SweepRun, 'pid' | 'job'>) => void;
}

export interface RunEnd extends ProgramEnd {
  startedAt: string;
  stdoutPath: string;
  stderrPath: string;
  /** Why the run has no end: it was lost, e.g. canceled in Slurm. */
  lost: SweepFailure | null;
}

/** The files for a run's output; creates their folder. */
export function logsOf({ logs: { folder, name } }: Pick<RunRequest, 'logs'>) {
  mkdirSync(folder, { recursive: true });
  return {
    stdoutPath: join(folder, `${name}.stdout.log`),
    stderrPath: join(folder, `${name}.stderr.log`),
  };
}

/** Executes one run and returns how it ended; rejects only if no run can be executed. Nothing else knows where runs execute. */
export type ExecuteRun = (request: RunRequest) => Promise<RunEnd>;

/** Runs in its own process on this machine, which contains crashes and frees its memory and GPU context. */
export const executeHere: ExecuteRun = async (request) => {
  const paths = logsOf(request);
  const startedAt = new Date().toISOString();
  const end = await runProgram({
    file: process.execPath,
    args: [childEntry('cli'), ...request.arguments],
    env: process.env,
    ...paths,
    stdout: null,
    stderr: null,
    secrets: request.secrets,
    tool: null,
    timeoutMs: request.timeoutMs,
    graceMs,
    signal: request.signal,
    kill: request.kill,
    onStart: (pid) => request.onStart({ pid, job: null }),
  });
  return { ...end, ...paths, startedAt, lost: null };
};
