import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import type { BenchOrder } from '../../model/bench.js';
import type { EngineLaunch, LaunchControl } from '../../model/engine.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';
import { processFailure, recordedError } from './process-failure.js';
import { parseProgress } from './progress.js';

export interface PythonLaunch {
  command: string;
  script: string;
  /** Written as the process's order file. */
  order: BenchOrder & Record<string, unknown>;
  env?: Record<string, string>;
  /** Processes under torchrun; one process without it unless told. */
  ranks?: number;
}

/** Time to finish the iteration at work and write what was measured. */
const graceMs = 30_000;
const keptLog = 256 * 1024;

/**
 * Starts an engine of the probe on its order. On abort the process is asked to end after its iteration (SIGINT), and
 * ended after a grace.
 */
export function launchPython(
  { command, script, order, env, ranks = 1 }: PythonLaunch,
  control: LaunchControl,
): EngineLaunch {
  const orderPath = join(control.scratch, 'order.json');
  writeFileSync(orderPath, JSON.stringify(order));
  const torchrun = ['-m', 'torch.distributed.run', '--standalone', '--nnodes=1', `--nproc-per-node=${ranks}`];
  const child = execa(command, ['-B', '-u', ...(ranks > 1 ? torchrun : []), script, orderPath], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
    env: {
      ...env,
      ...(ranks > 1 ? { PYTHONDONTWRITEBYTECODE: '1' } : {}),
      INFERSCOPE_RECORD: control.recordPath,
      INFERSCOPE_EXECUTION_ID: order.execution_id,
    },
  });
  const { signal } = control;
  let kill: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGINT');
    // torchrun gives its ranks 30 s of its own, and ends them then: it must outlive them.
    kill = setTimeout(() => child.kill('SIGKILL'), ranks > 1 ? 1.5 * graceMs : graceMs);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });

  const log = keepTail(child.stderr);
  const lines = createInterface({ input: child.stdout, crlfDelay: Infinity });
  const told = readProgress(lines, control.onProgress);
  const pid = child.pid ?? null;
  return { pid, ended: end() };

  async function end(): Promise<{ failure: unknown; log: string | null }> {
    const exit = await child;
    await told;
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
    const words = redactText(log.text(), secretsOfEnvironment(process.env));
    const failure = processFailure(
      {
        command,
        exitCode: exit.exitCode ?? null,
        signal: exit.signal ?? null,
        startError: pid === null ? (exit.code ?? 'unknown') : null,
        stopping: signal.aborted,
        words,
      },
      await recordedError(control.recordPath, ranks > 1 ? 'any' : pid),
    );
    return { failure, log: words === '' ? null : words };
  }
}

async function readProgress(
  lines: AsyncIterable<string>,
  onProgress: LaunchControl['onProgress'],
): Promise<void> {
  for await (const line of lines) {
    const progress = parseProgress(line);
    if (progress) onProgress(progress);
  }
}

function keepTail(stream: NodeJS.ReadableStream): { text(): string } {
  let tail = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    tail = (tail + chunk).slice(-keptLog);
  });
  return { text: () => tail };
}
