import type { EngineName } from '../../model/engine.js';
import type { MemoryTarget, TargetRequest } from './memory-target.js';

/** The engine as processes of this machine, as `bench` runs it. */
export async function hostTarget(
  engine: EngineName,
  { request, loadEngine }: TargetRequest,
): Promise<MemoryTarget> {
  const prepared = await (await loadEngine(engine)).prepare(request);
  return {
    where: 'host',
    containerName: null,
    prepared,
    gpus: null,
    samplesHere: true,
    sources: [],
    issues: [],
    readLeftovers: async () => [],
    close: async () => {},
  };
}
