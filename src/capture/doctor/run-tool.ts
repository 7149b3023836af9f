import { endWithParent } from '../../model/end-with-parent.js';
import { noTelemetry } from '../../model/no-telemetry.js';

export interface ToolRun {
  ok: boolean;
  stdout: string;
  stderr: string;
  /** Null when it was not started or was killed. */
  exitCode: number | null;
  timedOut: boolean;
  /** The signal that ended it, e.g. SIGSEGV. */
  signal: string | null;
  /** Whether the executable was not found. */
  notFound: boolean;
}

/** Runs a program until it exits or `timeoutMs` passes; never throws, never waits for a terminal. */
export async function runTool(
  file: string,
  args: string[],
  options: { timeoutMs: number; cwd?: string },
): Promise<ToolRun> {
  // Most commands start no tool, and execa has a hundred modules.
  const { execa } = await import('execa');
  const child = endWithParent((mark) =>
    execa(file, args, {
      reject: false,
      stdin: 'ignore',
      timeout: options.timeoutMs,
      forceKillAfterDelay: 500,
      maxBuffer: 4 * 2 ** 20,
      env: { ...noTelemetry, ...mark },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    }),
  );
  const result = await child;
  return {
    ok: !result.failed,
    stdout: result.stdout,
    stderr: result.stderr,
    exitCode: result.exitCode ?? null,
    timedOut: result.timedOut,
    signal: result.signal ?? null,
    notFound: result.code === 'ENOENT',
  };
}

/** The most informative line of a failing program's output: Node's `Error:` line, else the last one. */
export function failureLine(run: ToolRun): string {
  if (run.timedOut) return 'it timed out';
  if (run.signal) return `it was killed by ${run.signal}`;
  const lines = run.stderr
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  const errorLine = lines.find((line) => /^(\w*Error|error)\b.*:/.test(line)) ?? lines.at(-1);
  return errorLine ?? `exit code ${run.exitCode ?? 'unknown'}`;
}
