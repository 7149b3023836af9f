import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { z } from 'zod';
import { processFailure, recordedError } from '../../engines/transformers/process-failure.js';
import type { EngineLaunch } from '../../model/engine.js';
import type { KernelControl, KernelOrder } from '../../model/kernels.js';
import { redactText, secretsOfEnvironment } from '../../model/redaction.js';

const toldSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('case'), case: z.string(), done: z.number(), total: z.number() }),
  z.object({
    type: z.literal('device'),
    device: z.object({
      name: z.string(),
      device: z.string(),
      framework: z.string(),
      sm_count: z.number().nullable(),
      l2_bytes: z.number().nullable(),
      memory_bytes: z.number().nullable(),
      compute_capability: z.string().nullable(),
      driver: z.string().nullable(),
    }),
  }),
]);

/** Time to notice SIGINT between two batches of runs and to record what is open; a hung kernel never does. */
const graceMs = 10_000;
const keptLog = 256 * 1024;

/** Starts a script of the probe on its order; ends it (SIGINT, then SIGKILL with its children) on abort. */
export function launchProbe(
  { command, script, order }: { command: string; script: string; order: KernelOrder },
  control: KernelControl,
): EngineLaunch {
  const orderPath = join(control.scratch, 'order.json');
  writeFileSync(orderPath, JSON.stringify(order));
  // A group of its own: ranks of a collective must not outlive the process that spawned them.
  const child = execa(command, ['-B', '-u', script, orderPath], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
    detached: process.platform !== 'win32',
    env: { INFERSCOPE_RECORD: control.recordPath, INFERSCOPE_EXECUTION_ID: order.execution_id },
  });
  const pid = child.pid ?? null;
  let kill: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGINT');
    kill = setTimeout(() => killGroup(pid), graceMs);
  };
  const { signal } = control;
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  // Out of the terminal's group, so it would outlive us.
  const orphan = () => killGroup(pid);
  process.once('exit', orphan);

  let log = '';
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (chunk: string) => {
    log = (log + chunk).slice(-keptLog);
  });
  const told = readProgress(createInterface({ input: child.stdout, crlfDelay: Infinity }), control);
  return { pid, ended: end() };

  async function end(): Promise<{ failure: unknown; log: string | null }> {
    const exit = await child;
    await told;
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
    process.removeListener('exit', orphan);
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
      await recordedError(control.recordPath, pid),
    );
    return { failure, log: words === '' ? null : words };
  }
}

function killGroup(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}

async function readProgress(lines: AsyncIterable<string>, control: KernelControl): Promise<void> {
  for await (const line of lines) {
    if (!line.startsWith('{')) continue;
    let told: z.infer<typeof toldSchema> | undefined;
    try {
      told = toldSchema.safeParse(JSON.parse(line)).data;
    } catch {
      continue;
    }
    if (told?.type === 'case') control.onProgress(told);
    else if (told) control.onDevice(told.device);
  }
}
