import { recordVariable } from '../record-writer.js';
import { startHostSampler, type HostRecording } from '../telemetry.js';
import { startEngineProcess } from './engine-process.js';
import type { WorkloadPlan, WorkloadProgress, WorkloadResult } from './plan.js';

export interface WorkloadRun extends WorkloadResult {
  pid: number;
  host: HostRecording;
}

/**
 * Runs one launch of the workload in a process of its own and samples the host beside it, from before the model is
 * loaded until the process has ended.
 * @throws the engine's own error, E_WORKLOAD_FAILED or E_OUT_OF_MEMORY when its process died; what it recorded until
 * then is in the record file
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
    what: `${plan.model.name} at batch ${plan.batchSize}`,
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
    return { ...result, pid: engine.pid, host: sampler.stop() };
  } catch (error) {
    sampler.stop();
    throw error;
  }
}
