import { z } from 'zod';
import { startPython } from '../../engines/transformers/python-process.js';
import type { EngineLaunch } from '../../model/engine.js';
import type { KernelControl, KernelOrder } from '../../model/kernels.js';

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

/** Starts a script of the probe on its order; ends it (SIGINT, then SIGKILL with its children) on abort. */
export function launchProbe(
  { command, script, order }: { command: string; script: string; order: KernelOrder },
  control: KernelControl,
): EngineLaunch {
  // A group of its own: ranks of a collective must not outlive the process that spawned them.
  const probe = { command, args: [script], order, graceMs, ownGroup: true };
  return startPython(probe, control, (line) => tell(line, control));
}

function tell(line: string, control: KernelControl): void {
  if (!line.startsWith('{')) return;
  let told: z.infer<typeof toldSchema> | undefined;
  try {
    told = toldSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return;
  }
  if (told?.type === 'case') control.onProgress(told);
  else if (told) control.onDevice(told.device);
}
