import { z } from 'zod';
import { startPython } from '../../engines/transformers/python-process.js';
import { kernelDeviceSchema } from '../../model/documents/kernels.js';
import type { EngineLaunch } from '../../model/engine.js';
import type { KernelControl, KernelOrder } from '../../model/kernels.js';

const reportedSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('case'), case: z.string(), done: z.number(), total: z.number() }),
  z.object({ type: z.literal('device'), device: kernelDeviceSchema }),
]);

/** Time to notice SIGINT between two batches of runs and to record open cases; a hung kernel never does. */
const graceMs = 10_000;

/** Starts a probe script with its order; on abort sends SIGINT, then SIGKILL to it and its children. */
export function launchProbe(
  { command, script, order }: { command: string; script: string; order: KernelOrder },
  control: KernelControl,
): EngineLaunch {
  // Its own process group: ranks of a collective must not outlive the process that spawned them.
  const probe = { command, args: [script], order, graceMs, ownGroup: true };
  return startPython(probe, control, (line) => onProgressLine(line, control));
}

function onProgressLine(line: string, control: KernelControl): void {
  if (!line.startsWith('{')) return;
  let reported: z.infer<typeof reportedSchema> | undefined;
  try {
    reported = reportedSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return;
  }
  if (reported?.type === 'case') control.onProgress(reported);
  else if (reported) control.onDevice(reported.device);
}
