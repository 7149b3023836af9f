import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { runProgram, type ProgramEnd } from '../run/run-program.js';

/** Time for a run to save its results after Ctrl-C or its timeout, before it is killed. */
const graceMs = 20_000;

interface RunRequest {
  /** Arguments after `inferscope`. */
  arguments: readonly string[];
  /** Folder and file name prefix of its stdout and stderr. */
  logs: { folder: string; name: string };
  timeoutMs: number | null;
  secrets: string[];
  signal: AbortSignal;
  kill: AbortSignal;
  onStart: (pid: number) => void;
}

export interface RunEnd extends ProgramEnd {
  stdoutPath: string;
  stderrPath: string;
}

/** Executes one run and returns how it ended; never rejects. The only place that knows where runs execute. */
export type ExecuteRun = (request: RunRequest) => Promise<RunEnd>;

/** Runs in its own process on this machine: a crash, its memory and its GPU context end with it. */
export const executeHere: ExecuteRun = async (request) => {
  const { folder, name } = request.logs;
  mkdirSync(folder, { recursive: true });
  const paths = {
    stdoutPath: join(folder, `${name}.stdout.log`),
    stderrPath: join(folder, `${name}.stderr.log`),
  };
  const end = await runProgram({
    file: process.execPath,
    args: [process.argv[1]!, ...request.arguments],
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
    onStart: request.onStart,
  });
  return { ...end, ...paths };
};
