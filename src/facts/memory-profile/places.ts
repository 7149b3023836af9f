import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import type { Workload } from '../../model/manifest.js';
import type { MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import type { MeasuredTotal } from './breakdown.js';
import { formulaPlace } from './formula-place.js';
import { hostPlace } from './host-place.js';
import type { Place } from './part.js';
import type { KvPool } from './kv-pool.js';
import { hasAllocator, warmNs, type MemoryPoints } from './points.js';
import type { MemoryRows } from './rows.js';
import { serverPlace } from './server-place.js';
import { torchDevice } from './torch-device.js';
import { vllmHost } from './vllm-host.js';
import { vllmPlace } from './vllm-place.js';

interface PlaceFacts {
  gpus: readonly number[];
  points: MemoryPoints;
  /** Process ids of the engine. */
  enginePids: ReadonlySet<number>;
  /** The total that the components should sum to. */
  measured: MeasuredTotal | null;
  log: VllmLogFacts | null;
  estimate: MemoryEstimate | null;
  workload: Workload | null;
  pool: KvPool | null;
  /** Whether KV heads are known. */
  kvHeadsKnown: boolean;
}

/** Memory of each GPU or of the host by component: from the allocator, else from the engine's log, else computed. */
export function placesOf(rows: MemoryRows, plan: MemoryPlan, facts: PlaceFacts): Place[] {
  const { gpus, points, enginePids, measured, log, estimate, workload, pool, kvHeadsKnown } = facts;
  if (plan.where === 'url') return [serverPlace(estimate, pool)];
  if (gpus.length === 0 && plan.engine === 'vllm') {
    // The estimate is for a complete run.
    return [vllmHost(rows, log, { estimate: plan.failure === null ? estimate : null, kvHeadsKnown })];
  }
  if (gpus.length === 0) {
    return [
      hostPlace(rows, estimate, {
        baselineBytes: points.baseline.total_bytes,
        weightBytes: workload?.model?.weight_bytes ?? null,
        kvHeadsKnown,
      }),
    ];
  }
  return gpus.map((gpu, index) => {
    if (hasAllocator(rows, gpu)) {
      const before = points.baseline.per_gpu_details.find((detail) => detail.gpu === gpu);
      return torchDevice(rows, gpu, {
        baselineBytes: before?.used_bytes ?? null,
        warmNs: warmNs(rows, plan),
        enginePids: measured?.listed ? enginePids : null,
        othersStarted: measured?.othersStarted ?? false,
      });
    }
    if (log && log.ranks.length > 0) return vllmPlace(log, index, gpu);
    // The estimate is for a complete run.
    if (plan.failure !== null) return { gpu, parts: [], peakStage: null };
    return formulaPlace(estimate, index, gpu, kvHeadsKnown);
  });
}
