import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import type { MemoryProfile } from '../../model/documents/memory-profile.js';
import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import type { MemoryRows } from './rows.js';
import { recordedDtypes } from './torch-device.js';

/**
 * dtypes by component, and the quantization: from counted tensors, else from the log, else as declared; null if only
 * `auto` is declared.
 */
export function dtypesOfRun(
  rows: Pick<MemoryRows, 'recorded'>,
  { config }: MemoryPlan,
  {
    workload,
    log,
    estimate,
  }: { workload: Workload | null; log: VllmLogFacts | null; estimate: MemoryEstimate | null },
): Pick<MemoryProfile['model_info'], 'dtype' | 'dtypes' | 'quantization'> {
  const declared = log?.dtype?.value ?? workload?.model?.dtype ?? null;
  const dtype = declared === 'auto' ? null : declared;
  const storage = estimate?.request.storage;
  // A server lists it among its startup arguments.
  const kvDtypeName = log?.kv_cache_dtype?.value ?? serverKvDtype(workload);
  const kv = kvDtypeName === 'auto' ? dtype : kvDtypeName;
  return {
    dtype,
    dtypes: {
      weights: recordedDtypes(rows, 'weights')[0] ?? dtype,
      activations: log?.dtype?.value ?? storage?.activations ?? dtype,
      kv_cache:
        recordedDtypes(rows, 'kv_cache')[0] ?? kv ?? config.kv_cache_dtype ?? storage?.kvCache ?? dtype,
    },
    quantization: log?.quantization?.value ?? workload?.model?.quantization ?? config.quantization,
  };
}

function serverKvDtype(workload: Workload | null): string | undefined {
  const recorded = workload?.device === 'server' ? workload.engine.options['kv_cache_dtype'] : undefined;
  return typeof recorded === 'string' ? recorded : undefined;
}
