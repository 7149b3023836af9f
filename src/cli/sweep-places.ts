import { totalmem } from 'node:os';
import type { RunPlace } from '../capture/sweep/expected.js';
import { ownWords, valueOf } from '../capture/sweep/plan-grid.js';
import { memoryEngines, type MemoryEngine } from '../llm/memory-request.js';
import type { SweepResult, SweepRun } from '../model/documents/sweep.js';
import { chooseMemoryEngine } from './memory-engine.js';

/**
 * Engine and devices of each run: as named in its command, else the default of its place. Containers are not queried:
 * they are assumed to have vLLM.
 * @param capacities bytes of each GPU of this machine; empty without one
 */
export function placesOf(
  kind: SweepResult['kind'],
  capacities: readonly number[],
  choose: typeof chooseMemoryEngine = chooseMemoryEngine,
): (run: Pick<SweepRun, 'arguments'>) => Promise<RunPlace> {
  const engines = new Map<string, Promise<MemoryEngine>>();

  function defaultEngine(words: readonly string[]): Promise<MemoryEngine> {
    const python = valueOf(words, '--python');
    const device = valueOf(words, '--device');
    const tensorParallelSize = Number(valueOf(words, '--tensor-parallel-size') ?? 1);
    const key = JSON.stringify([python, device, tensorParallelSize > 1]);
    let engine = engines.get(key);
    if (!engine)
      engines.set(
        key,
        (engine = choose({
          tensorParallelSize,
          ...(python === null ? {} : { python }),
          ...(device === null ? {} : { device }),
        }).then(({ engine: name }) => memoryEngines.find((memoryEngine) => memoryEngine === name) ?? 'onnx')),
      );
    return engine;
  }

  return async (run) => {
    const words = ownWords(run.arguments);
    const givenEngine = memoryEngines.find((memoryEngine) => memoryEngine === valueOf(words, '--engine'));
    if (valueOf(words, '--url') !== null) return { engine: null, device: 'gpu', capacities: [] };
    const inContainer = valueOf(words, '--container') !== null;
    const cpu = valueOf(words, '--device') === 'cpu';
    const gpu = capacities.length > 0 && !cpu;
    const engine =
      givenEngine ??
      (inContainer ? 'vllm' : kind === 'memory' ? await defaultEngine(words) : gpu ? 'transformers' : 'onnx');
    // vLLM and containers are for GPUs: if none is visible, their memory is not that of this host.
    const forGpus = engine === 'vllm' || inContainer;
    return engine !== 'onnx' && !cpu && (gpu || forGpus)
      ? { engine, device: 'gpu', capacities }
      : { engine, device: 'cpu', capacities: [totalmem()] };
  };
}
