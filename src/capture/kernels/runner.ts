import { join } from 'node:path';
import {
  findPython,
  pythonCandidates,
  type PythonEnvironment,
} from '../../engines/transformers/interpreter.js';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import type { KernelRunner } from '../../model/kernels.js';
import { launchProbe } from './launch.js';
import { plural } from '../../vocabulary/format.js';

export type { KernelRunner } from '../../model/kernels.js';

const probe = join(packageRoot(), 'python', 'inferscope_probe');

/** The PyTorch runner, and the packages of its Python. */
export interface TorchRunner extends KernelRunner {
  python: PythonEnvironment;
  /** Names of the GPUs visible to this PyTorch, cuda:0 first. */
  gpus: string[];
}

/**
 * PyTorch in a process of the user's Python.
 * @param python --python; null finds one
 * @param device cpu, cuda, cuda:N; null is the first GPU, the CPU without one
 * @throws E_ENGINE_MISSING; E_USAGE for another device
 */
export async function torchRunner(options: {
  python: string | null;
  device: string | null;
}): Promise<TorchRunner> {
  const python = await findPython(pythonCandidates(options.python), ['torch'], { probe, hubId: null });
  const gpus = python.torch?.devices ?? [];
  const device = chooseDevice(options.device, gpus, python);
  return {
    name: 'pytorch',
    version: python.packages['torch'] ?? null,
    device,
    python,
    gpus,
    launch(order, control) {
      const isCollective = order.cases.every(({ kernel }) => kernel === 'all-reduce');
      const script = join(probe, isCollective ? 'inferscope_allreduce.py' : 'inferscope_kernels.py');
      return launchProbe({ command: python.command, script, order: { ...order, device } }, control);
    },
  };
}

function chooseDevice(requested: string | null, gpus: readonly string[], python: PythonEnvironment): string {
  if (requested === null) return gpus.length > 0 ? 'cuda:0' : 'cpu';
  const device = requested
    .trim()
    .toLowerCase()
    .replace(/^(gpu|rocm|hip)(?=:|$)/, 'cuda');
  if (device === 'cpu') return device;
  const index = /^cuda(?::(\d+))?$/.exec(device);
  if (index && Number(index[1] ?? 0) < gpus.length) return `cuda:${index[1] ?? 0}`;
  throw new InferscopeError(index ? 'E_ENGINE_MISSING' : 'E_USAGE', {
    what: index
      ? `device ${requested} does not exist: torch ${python.packages['torch']} finds ${plural(gpus.length, 'GPU')}`
      : `no device ${requested}`,
    why: index
      ? `Checked with torch of ${python.command}; CUDA_VISIBLE_DEVICES, the driver or a CPU build may hide a GPU.`
      : 'Valid: cpu, cuda or cuda:N (N counts from 0; AMD GPUs are also called cuda).',
    fix: index
      ? 'Type: inferscope doctor (it checks driver, CUDA and torch), or use --device cpu.'
      : 'Example: --device cuda:0',
  });
}
