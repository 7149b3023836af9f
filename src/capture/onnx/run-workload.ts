import { recordVariable } from '../record-writer.js';
import { startHostSampler, type HostRecording } from '../telemetry.js';
import { startEngineProcess } from './engine-process.js';
import type { WorkloadPlan, WorkloadProgress, WorkloadResult } from './plan.js';

export interface WorkloadRun extends WorkloadResult {
  pid: number;
  host: HostRecording;
  /** The failure that stopped it early; its records until then are in the record file. */
  failure: unknown;
}

/**
 * Runs one launch of the workload in its own process and samples the host, from before the model is
 * loaded until the process has exited.
 * A process that failed or died is reported in `failure` (the engine's own error, E_WORKLOAD_FAILED, E_OUT_OF_MEMORY).
 */
export async function runWorkload(
  plan: WorkloadPlan,
  options: {
    recordPath: string;
    captureId: string;
    host: string;
    signal: AbortSignal;
    onProgress: (progress: WorkloadProgress) => void;
  },
): Promise<WorkloadRun> {
  const engine = startEngineProcess<WorkloadPlan, WorkloadProgress, WorkloadResult>('onnx-workload', plan, {
    what: `${plan.model.name} at batch ${plan.points.map(({ batchSize }) => batchSize).join(', ')}`,
    env: { [recordVariable]: options.recordPath },
    signal: options.signal,
    onProgress: options.onProgress,
  });
  const sampler = startHostSampler({
    pid: engine.pid,
    keys: { execution_id: plan.executionId, capture_id: options.captureId, host: options.host, rank: 0 },
  });
  try {
    const result = await engine.result;
    return { ...result, pid: engine.pid, host: sampler.stop(), failure: null };
  } catch (failure) {
    // Keep the memory curve of a process that died: it is the evidence.
    const nothing = { stopped: false, tracePath: null, warmupIterations: 0, stable: false };
    return { ...nothing, pid: engine.pid, host: sampler.stop(), failure };
  }
}
