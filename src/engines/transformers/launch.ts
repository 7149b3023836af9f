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

/** Time to finish the current iteration and write measurements. */
const graceMs = 30_000;

/**
 * Starts an engine of the probe with its order. On abort the process gets SIGINT to stop after its iteration, and is
 * killed after the grace period.
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
      // torchrun gives its ranks 30 s and then kills them, so it must live longer.
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
