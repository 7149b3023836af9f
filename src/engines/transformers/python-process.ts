import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { endWithParent } from '../../model/end-with-parent.js';
import type { EngineLaunch, LaunchControl } from '../../model/engine.js';
import { noTelemetry } from '../../model/no-telemetry.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';
import { processFailure, recordedError } from './process-failure.js';

interface PythonProcess {
  command: string;
  /** Arguments after Python's own options: the script, or its launcher. The path of the order file follows. */
  args: readonly string[];
  /** Written as the process's order file. */
  order: { execution_id: string };
  env?: Record<string, string>;
  /** Time after SIGINT to write measurements; then SIGKILL. */
  graceMs: number;
  /** Starts a separate process group, which SIGKILL ends as a whole, for a process that spawns ranks itself. */
  ownGroup?: boolean;
  /** Number of processes that append to the record; with several, the first failure of any is reported. */
  ranks?: number;
}

const savedLog = 256 * 1024;

/**
 * Starts a script of the probe with its order. `onLine` gets its stdout lines; the end of its stderr is the log. On
 * abort it gets SIGINT, and SIGKILL after the grace period.
 */
export function startPython(
  { command, args, order, env, graceMs, ownGroup = false, ranks = 1 }: PythonProcess,
  { recordPath, scratch, signal }: Pick<LaunchControl, 'recordPath' | 'scratch' | 'signal'>,
  onLine: (line: string) => void,
): EngineLaunch {
  const orderPath = join(scratch, 'order.json');
  writeFileSync(orderPath, JSON.stringify(order));
  const child = endWithParent((mark) =>
    execa(command, ['-B', '-u', ...args, orderPath], {
      reject: false,
      buffer: false,
      stdin: 'ignore',
      detached: ownGroup && process.platform !== 'win32',
      env: {
        ...env,
        ...noTelemetry,
        ...mark,
        INFERSCOPE_RECORD: recordPath,
        INFERSCOPE_EXECUTION_ID: order.execution_id,
      },
    }),
  );
  const pid = child.pid ?? null;
  const end = () => (ownGroup ? killGroup(pid) : child.kill('SIGKILL'));
  let kill: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGINT');
    kill = setTimeout(end, graceMs);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });

  let log = '';
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (chunk: string) => {
    log = (log + chunk).slice(-savedLog);
  });
  const lines = createInterface({ input: child.stdout, crlfDelay: Infinity });
  const allLines = (async () => {
    for await (const line of lines) onLine(line);
  })();
  return { pid, ended: ended() };

  async function ended(): Promise<{ failure: unknown; log: string | null }> {
    const exit = await child;
    await allLines;
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
    const words = redactText(log, secretsOfEnvironment(process.env));
    const failure = processFailure(
      {
        command,
        exitCode: exit.exitCode ?? null,
        signal: exit.signal ?? null,
        startError: pid === null ? (exit.code ?? 'unknown') : null,
        stopping: signal.aborted,
        words,
      },
      await recordedError(recordPath, ranks > 1 ? 'any' : pid),
    );
    return { failure, log: words === '' ? null : words };
  }
}

function killGroup(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // The process has exited.
  }
}
