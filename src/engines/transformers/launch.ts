import type { BenchOrder } from '../../model/bench.js';
import type { EngineLaunch, LaunchControl } from '../../model/engine.js';
import { parseProgress } from './progress.js';
import { startPython } from './python-process.js';

interface PythonLaunch {
  command: string;
  script: string;
  /** Written as the process's order file. */
  order: BenchOrder & Record<string, unknown>;
  env?: Record<string, string>;
  /** Processes under torchrun; default: one process without it. */
  ranks?: number;
}

/** Time to finish the iteration at work and write what was measured. */
const graceMs = 30_000;

/**
 * Starts an engine of the probe on its order. On abort the process is asked to end after its iteration (SIGINT), and
 * ended after a grace.
 */
export function launchPython(
  { command, script, order, env, ranks = 1 }: PythonLaunch,
  control: LaunchControl,
): EngineLaunch {
  const torchrun = ['-m', 'torch.distributed.run', '--standalone', '--nnodes=1', `--nproc-per-node=${ranks}`];
  return startPython(
    {
      command,
      args: [...(ranks > 1 ? torchrun : []), script],
      order,
      env: { ...env, ...(ranks > 1 ? { PYTHONDONTWRITEBYTECODE: '1' } : {}) },
      // torchrun gives its ranks 30 s of its own, and ends them then: it must outlive them.
      graceMs: ranks > 1 ? 1.5 * graceMs : graceMs,
      ranks,
    },
    control,
    (line) => {
      const progress = parseProgress(line);
      if (progress) control.onProgress(progress);
    },
  );
}
