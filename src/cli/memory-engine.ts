import { openGpus } from '../capture/telemetry-gpus.js';
import { findPython, pythonCandidates } from '../engines/transformers/interpreter.js';
import type { EngineName } from '../model/engine.js';
import type { MemoryTyped } from './memory-options.js';

/**
 * The engine where none was named: on a GPU that torch sees vLLM, where it is not installed transformers; without a GPU or
 * without torch the embedded one. `--device cpu` and several ranks ask for torch where it is.
 */
export async function chooseMemoryEngine({
  python,
  device,
  tensorParallelSize,
}: Pick<MemoryTyped, 'python' | 'device' | 'tensorParallelSize'>): Promise<EngineName> {
  const named = device !== undefined || tensorParallelSize > 1 || python !== undefined;
  const { gpus } = await openGpus();
  gpus?.close();
  if (!gpus && !named) return 'onnx';
  const onCpu = device === 'cpu';
  if (!onCpu && (await has(python, ['vllm']))) return 'vllm';
  return (await has(python, ['torch', 'transformers'], onCpu || named)) ? 'transformers' : 'onnx';
}

async function has(python: string | undefined, packages: string[], cpuToo = false): Promise<boolean> {
  try {
    const found = await findPython(pythonCandidates(python ?? null), packages, { probe: '', hubId: null });
    return cpuToo || (found.torch?.devices.length ?? 0) > 0;
  } catch {
    return false;
  }
}
