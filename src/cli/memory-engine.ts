import { openGpus } from '../capture/telemetry-gpus.js';
import { findPython, pythonCandidates } from '../engines/transformers/interpreter.js';
import type { Issue } from '../model/document.js';
import type { EngineName } from '../model/engine.js';
import type { MemoryOptions } from './memory-options.js';

interface ChosenEngine {
  engine: EngineName;
  issues: Issue[];
}

/**
 * Default engine: vLLM if torch sees a GPU, transformers if vLLM is not installed; the embedded engine without GPU or
 * torch. With --device, --python or several ranks, transformers may run on the CPU.
 */
export async function chooseMemoryEngine({
  python,
  device,
  tensorParallelSize,
}: Pick<MemoryOptions, 'python' | 'device' | 'tensorParallelSize'>): Promise<ChosenEngine> {
  const needsTorch = device !== undefined || tensorParallelSize > 1 || python !== undefined;
  const { gpus } = await openGpus();
  gpus?.close();
  if (!gpus && !needsTorch) return { engine: 'onnx', issues: [] };
  const onCpu = device === 'cpu';
  if (!onCpu && (await pythonHas(python, ['vllm']))) return { engine: 'vllm', issues: [] };
  if (await pythonHas(python, ['torch', 'transformers'], needsTorch))
    return { engine: 'transformers', issues: [] };
  const missing = needsTorch
    ? 'torch and transformers'
    : 'vLLM, or torch and transformers, together with a GPU that torch sees';
  const text = `No Python here has ${missing}, so the embedded engine ran on the CPU (inferscope doctor shows what is missing).`;
  return { engine: 'onnx', issues: [{ code: 'engine_fallback', severity: 'warning', text }] };
}

async function pythonHas(python: string | undefined, packages: string[], allowCpu = false): Promise<boolean> {
  try {
    const found = await findPython(pythonCandidates(python ?? null), packages, { probe: '', hubId: null });
    return allowCpu || (found.torch?.devices.length ?? 0) > 0;
  } catch {
    return false;
  }
}
