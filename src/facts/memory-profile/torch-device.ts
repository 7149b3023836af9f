import { type Part, type Place } from './part.js';
import { processBytes } from './points.js';
import { maxRecorded, quietSample, tensorBytes, recordedRows, type MemoryRows } from './rows.js';
import { formatGb } from '../../vocabulary/format.js';

/**
 * Stages that may hold the peak; an engine that was stopped lacks some. `failed`: an attempt that ran out of memory.
 */
const stages = ['prefill', 'decode', 'failed'] as const;

const stageWords = (stage: string): string => (stage === 'failed' ? 'the failed step' : stage);

interface DeviceFacts {
  baselineBytes: number | null;
  warmNs: number | null;
  /** Process ids of the run, if its total is of these processes; null if it is of the whole GPU. */
  enginePids: ReadonlySet<number> | null;
  /** Other processes started on the GPU after the launch. */
  othersStarted: boolean;
}

/**
 * Memory of a GPU for an engine that reports torch's allocator, at the allocator's peak. Weights and KV cache are their
 * tensors. Memory that stays allocated between repeats is framework overhead, other allocated memory is activations.
 * Reserved but not allocated memory is the allocator's, and driver memory outside the allocator is the context.
 */
export function torchDevice(rows: MemoryRows, gpu: number, facts: DeviceFacts): Place {
  const figures = allocatorFigures(rows, gpu);
  const ranks = new Set(
    recordedRows(rows.recorded, { what: 'reserved', device: gpu }).map(({ rank }) => rank),
  ).size;
  const context = contextOf(rows, gpu, ranks, facts);
  // With other processes on the GPU, its growth is not the ranks' alone.
  const collectives = context && !facts.othersStarted ? collectivesOf(rows, gpu) : null;
  return {
    gpu,
    parts: [
      ...tensorParts(rows, gpu, figures),
      ...allocatorParts(figures),
      ...(context ? [{ ...context, bytes: context.bytes - (collectives?.bytes ?? 0) }] : []),
      ...(collectives ? [collectives] : []),
    ],
    peakStage: figures.peak.stage,
  };
}

/** Allocator state of one GPU, bytes. */
interface AllocatorFigures {
  weights: number;
  buffers: number;
  /** Recorded peaks by stage, without loading. */
  peaks: Peak[];
  /** The largest of them, else the peak of loading. */
  peak: Peak;
  loadPeak: number;
  /** The allocator gives out whole blocks; the part beyond the requested size is its overhead. */
  rounding: number;
  /** Cache that stays allocated between repeats. */
  keptCache: number;
  /** Other memory that stays allocated between repeats. */
  kept: number;
  /** Private pools of CUDA graphs, and the part of the allocated memory that is in them. */
  graphPool: number;
  graphAllocated: number;
  reserved: number;
}

function allocatorFigures(rows: MemoryRows, gpu: number): AllocatorFigures {
  const recorded = (what: string, stage?: string) =>
    maxRecorded(rows.recorded, { what, device: gpu, ...(stage === undefined ? {} : { stage }) });
  const tensors = (what: string, stage: string) => tensorBytes(rows.recorded, { what, stage, device: gpu });
  const weights = tensors('weights', 'load') ?? 0;
  const peaks = stages.flatMap((stage) => {
    const bytes = recorded('max_allocated', stage);
    if (bytes === null) return [];
    // A failed attempt has no cache to count, so use the largest one recorded before.
    const kv =
      stage === 'failed'
        ? Math.max(tensors('kv_cache', 'prefill') ?? 0, tensors('kv_cache', 'decode') ?? 0)
        : tensors('kv_cache', stage);
    return [{ stage, bytes, kv: kv ?? 0 }];
  });
  const loadPeak = recorded('max_allocated', 'load') ?? weights;
  // Loading may have used more for a moment. It is in the reserve, and is neither cache nor activations.
  const peak = largestPeak(peaks) ?? { stage: 'load', bytes: loadPeak, kv: 0 };
  // A run that ended while loading has no idle moment, so everything except the weights belongs to loading.
  const idleStage = recorded('allocated', 'post_warmup') === null ? 'load' : 'post_warmup';
  const allocated = recorded('allocated', idleStage) ?? weights;
  const requested = recorded('requested', idleStage) ?? allocated;
  const rounding = allocated - requested;
  const keptCache = tensors('kv_cache', 'post_warmup') ?? 0;
  const graphPool = recorded('graph_pool') ?? 0;
  // Memory allocated inside a graph's pool is in the allocator's figures and in the pool.
  const graphAllocated = Math.min(graphPool, recorded('graph_allocated') ?? 0);
  const kept = Math.max(
    0,
    Math.min(
      requested - graphAllocated - weights - keptCache,
      peak.bytes - graphAllocated - weights - peak.kv - rounding,
    ),
  );
  return {
    weights,
    buffers: tensors('buffers', 'load') ?? 0,
    peaks,
    peak,
    loadPeak,
    rounding,
    keptCache,
    kept,
    graphPool,
    graphAllocated,
    reserved: Math.max(recorded('max_reserved') ?? 0, recorded('reserved') ?? 0),
  };
}

/** Weights, KV cache and activations. */
function tensorParts(
  rows: MemoryRows,
  gpu: number,
  { weights, peaks, peak, kept, rounding, graphAllocated }: AllocatorFigures,
): Part[] {
  const parts: Part[] = [
    {
      component: 'model_weights',
      bytes: weights,
      confidence: 'high',
      evidence: `parameter tensors on the GPU (${dtypesOf(rows, gpu, 'weights')})`,
    },
  ];
  if (peaks.length === 0) return parts;
  parts.push(
    {
      component: 'kv_cache',
      bytes: peak.kv,
      confidence: peak.stage === 'failed' ? 'low' : 'high',
      evidence: `cache tensors at the peak, in ${stageWords(peak.stage)} (${dtypesOf(rows, gpu, 'kv_cache')})${otherKvText(peaks, peak)}`,
    },
    {
      component: 'activations',
      bytes: peak.bytes - graphAllocated - weights - peak.kv - kept - rounding,
      confidence: peak.stage === 'failed' ? 'medium' : 'high',
      evidence: `torch.cuda.max_memory_allocated ${formatGb(peak.bytes)} in ${stageWords(peak.stage)} − weights − cache − memory kept between repeats − rounding to blocks${graphAllocated > 0 ? ` − ${formatGb(graphAllocated)} inside graphs` : ''}`,
    },
  );
  return parts;
}

/** Memory kept between repeats, CUDA graphs, and memory that is reserved but not allocated. */
function allocatorParts(figures: AllocatorFigures): Part[] {
  const { peak, loadPeak, rounding, keptCache, kept, buffers, graphPool, graphAllocated, reserved } = figures;
  const parts: Part[] = [];
  if (kept > 0) {
    parts.push({
      component: 'framework_overhead',
      bytes: kept,
      confidence: 'high',
      evidence: `requested from torch when idle, without weights${keptCache > 0 ? ' and cache' : ''}: workspace of cuBLAS, buffers (${formatGb(buffers)})`,
    });
  }
  if (graphPool > 0) {
    parts.push({
      component: 'cuda_graphs',
      bytes: graphPool,
      confidence: 'medium',
      evidence: 'segments of private pools in torch.cuda.memory_snapshot',
    });
  }
  parts.push({
    component: 'allocator_reserve',
    bytes: Math.max(0, reserved - (peak.bytes - graphAllocated) - graphPool) + rounding,
    confidence: 'high',
    evidence: `torch.cuda.max_memory_reserved ${formatGb(reserved)} − max_memory_allocated ${formatGb(peak.bytes)} + rounding to blocks ${formatGb(rounding)}${loadPeak > peak.bytes ? `; loading held ${formatGb(loadPeak)}` : ''}`,
  });
  return parts;
}

/**
 * Driver memory outside torch's reserve that a rank did not have when it was alone: buffers of NCCL, and kernels loaded
 * since. Null for a model on one GPU.
 */
function collectivesOf(rows: MemoryRows, gpu: number): Part | null {
  const outsideReserve = (stage: string) => {
    const used = maxRecorded(rows.recorded, { what: 'device_used', stage, device: gpu });
    const reserved = maxRecorded(rows.recorded, { what: 'reserved', stage, device: gpu });
    return used === null || reserved === null ? null : used - reserved;
  };
  const aloneBytes = outsideReserve('alone');
  const together = outsideReserve('post_warmup') ?? outsideReserve('load');
  if (aloneBytes === null || together === null) return null;
  return {
    component: 'framework_overhead',
    bytes: together - aloneBytes,
    confidence: 'medium',
    evidence: `buffers of NCCL: driver − torch's reserve grew from ${formatGb(aloneBytes)}, before the ranks met, to ${formatGb(together)}`,
  };
}

interface Peak {
  stage: string;
  bytes: number;
  kv: number;
}

function largestPeak(peaks: readonly Peak[]): Peak | null {
  return peaks.reduce<Peak | null>(
    (highest, peak) => (highest && highest.bytes >= peak.bytes ? highest : peak),
    null,
  );
}

/**
 * Driver memory minus torch's reserve after warm-up (else after loading), a moment without allocations. Driver memory is
 * measured like the total: the GPU minus its baseline, or the run's processes if others share the GPU.
 */
function contextOf(
  rows: MemoryRows,
  gpu: number,
  ranks: number,
  { baselineBytes, warmNs, enginePids, othersStarted }: DeviceFacts,
): Part | null {
  const reservedAt = (stage: string) => recordedRows(rows.recorded, { what: 'reserved', stage, device: gpu });
  const warmRows = reservedAt('post_warmup');
  const reservedRows = warmRows.length > 0 ? warmRows : reservedAt('load');
  const lastReserved = reservedRows.at(-1);
  if (!lastReserved) return null;
  const reserved = reservedRows.slice(-ranks).reduce((sum, { bytes }) => sum + bytes, 0);
  const when =
    warmRows.length === 0 ? 'after loading' : warmNs === null ? 'after the failed warm-up' : 'after warm-up';
  const minusReserve = `torch.cuda.memory_reserved ${formatGb(reserved)}, ${when}`;
  const includesNccl =
    othersStarted &&
    recordedRows(rows.recorded, { what: 'device_used', stage: 'alone', device: gpu }).length > 0;
  const ncclText = includesNccl ? '; it includes buffers of NCCL' : '';
  if (enginePids !== null) {
    const used = processBytes(rows, gpu, enginePids, (samples) => quietSample(samples, lastReserved.t_ns));
    return used === null
      ? null
      : {
          component: 'cuda_context',
          bytes: used - reserved,
          confidence: 'medium',
          evidence: `its own processes as listed by the driver ${formatGb(used)} − ${minusReserve}${ncclText}`,
        };
  }
  const samples = rows.used.get(gpu);
  if (!samples || baselineBytes === null) return null;
  const used = quietSample(samples, lastReserved.t_ns);
  if (!used) return null;
  return {
    component: 'cuda_context',
    bytes: used.bytes - baselineBytes - reserved,
    confidence: othersStarted ? 'low' : 'medium',
    evidence: `driver ${formatGb(used.bytes)} − baseline ${formatGb(baselineBytes)} − ${minusReserve}${othersStarted ? '; other processes started on the GPU: it includes their memory' : ''}${ncclText}`,
  };
}

function otherKvText(
  peaks: readonly { stage: string; kv: number }[],
  peak: { stage: string; kv: number },
): string {
  const otherPeak = peaks.find(({ stage }) => stage !== peak.stage);
  if (!otherPeak || otherPeak.kv === peak.kv) return '';
  return `; ${formatGb(otherPeak.kv)} at the end of ${otherPeak.stage}`;
}

/** `float16`, or `float16 + float32`, ordered by bytes. */
export function dtypesOf(rows: Pick<MemoryRows, 'recorded'>, device: number | null, what: string): string {
  return recordedDtypes(rows, what, device).join(' + ') || 'dtype not recorded';
}

export function recordedDtypes(
  { recorded }: Pick<MemoryRows, 'recorded'>,
  what: string,
  device?: number | null,
): string[] {
  const maxByDtype = new Map<string, number>();
  for (const { detail, bytes } of recordedRows(recorded, {
    what,
    ...(device === undefined ? {} : { device }),
  }))
    if (detail !== null) maxByDtype.set(detail, Math.max(maxByDtype.get(detail) ?? 0, bytes));
  return [...maxByDtype].sort((a, b) => b[1] - a[1]).map(([dtype]) => dtype);
}
