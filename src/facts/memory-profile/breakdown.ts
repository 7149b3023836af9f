import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import type { MemoryComponent, MemoryProfile } from '../../model/documents/memory-profile.js';
import { weakest, type Confidence, type Place } from './part.js';
import { gb } from './points.js';
import { formatGb } from '../../vocabulary/format.js';

export interface Measured {
  bytes: number;
  /** How the total was found. */
  source: string;
  /** The part of others on the same GPUs is in it. */
  shared: boolean;
  /** Of processes that the driver lists: nobody else's part is in it. */
  listed: boolean;
  /** Others came to the GPUs after the launch: what the whole GPU grew by is not the run's alone. */
  newcomers: boolean;
}

const named = ['model_weights', 'kv_cache', 'activations'] as const;
/** What framework_overhead_gb sums up. */
const overheads = ['framework_overhead', 'cuda_graphs', 'cuda_context', 'allocator_reserve'] as const;

/** A residual of less than this share leaves the whole as certain as its parts. */
const smallResidual = 0.02;
const largeResidual = 0.1;

/**
 * Components over all GPUs of the run, and what is left of the measured total: components and residual sum to it exactly, a
 * negative residual is shown as it is. Where dimensions of the model contradict each other, formulas and the whole have low confidence.
 */
export function breakdownOf(
  places: readonly Place[],
  measured: Pick<Measured, 'bytes' | 'source' | 'shared' | 'listed'> | null,
  estimate: MemoryEstimate | null,
  { contradicted = false }: { contradicted?: boolean } = {},
): MemoryProfile['memory_breakdown'] & { peak_stage: string | null } {
  const components = summed(places, estimate);
  if (contradicted)
    for (const component of components) if (component.basis === 'formula') component.confidence = 'low';
  const known = components.reduce((sum, { bytes }) => sum + bytes, 0);
  const residual = measured === null ? null : measured.bytes - known;
  const of = (component: string) => components.find((one) => one.component === component);
  const overhead = components.filter(({ component }) => overheads.some((one) => one === component));
  const overheadBytes = overhead.length === 0 ? null : overhead.reduce((sum, { bytes }) => sum + bytes, 0);
  const confidence = (component: string): Confidence => of(component)?.confidence ?? 'unknown';
  if (residual !== null) {
    components.push({
      component: 'residual',
      bytes: residual,
      gb: residual / 1e9,
      confidence: 'low',
      evidence: [
        `measured ${formatGb(measured!.bytes)} (${measured!.source}) − the components above`,
        ...(measured!.shared ? ['other processes were on the GPU: their growth is included'] : []),
      ],
      estimate_bytes: null,
    });
  }
  const stages = new Set(places.flatMap(({ peakStage }) => peakStage ?? []));
  const perGpu = places.flatMap(({ gpu, parts }) =>
    gpu === null
      ? []
      : [{ gpu, components: parts.map(({ component, bytes }) => ({ component, bytes, gb: bytes / 1e9 })) }],
  );
  return {
    total_measured_gb: gb(measured?.bytes ?? null),
    total_measured_bytes: measured?.bytes ?? null,
    total_measured_source: measured?.source ?? null,
    total_measured_basis:
      measured === null ? null : measured.listed ? ('own_processes' as const) : ('points' as const),
    model_weights_gb: gb(of('model_weights')?.bytes ?? null),
    model_weights_bytes: of('model_weights')?.bytes ?? null,
    kv_cache_gb: gb(of('kv_cache')?.bytes ?? null),
    kv_cache_bytes: of('kv_cache')?.bytes ?? null,
    activations_gb: gb(of('activations')?.bytes ?? null),
    activations_bytes: of('activations')?.bytes ?? null,
    framework_overhead_gb: gb(overheadBytes),
    framework_overhead_bytes: overheadBytes,
    residual_gb: gb(residual),
    residual_bytes: residual,
    confidence_levels: {
      // What others took is in it, and nobody can tell how much.
      overall: weakest([
        overall(named.map(confidence), residual, measured?.bytes ?? null),
        ...(measured?.shared || contradicted ? (['low'] as const) : []),
      ]),
      weights: confidence('model_weights'),
      kv_cache: confidence('kv_cache'),
      activations: confidence('activations'),
      framework_overhead: overhead.length === 0 ? 'unknown' : weakest(overhead.map((one) => one.confidence)),
    },
    /** Stage in which the framework held most, where reported; the cache is counted at that moment. */
    peak_stage: stages.size === 1 ? [...stages][0]! : null,
    components,
    per_gpu: perGpu,
  };
}

function summed(places: readonly Place[], estimate: MemoryEstimate | null): MemoryComponent[] {
  const found = new Map<MemoryComponent['component'], MemoryComponent>();
  for (const { parts } of places) {
    for (const { component, bytes, confidence, basis = 'measured' } of parts) {
      const known = found.get(component);
      if (known) {
        known.bytes += bytes;
        known.gb = known.bytes / 1e9;
        known.confidence = weakest([known.confidence, confidence]);
        if (basis === 'formula') known.basis = basis;
        continue;
      }
      const line = estimate?.lines.find((line) => line.component === component);
      found.set(component, {
        component,
        bytes,
        gb: bytes / 1e9,
        confidence,
        basis,
        evidence: evidenceOf(places, component),
        estimate_bytes: line?.bytes ?? null,
      });
    }
  }
  return [...found.values()];
}

/** GPUs of a group mostly have the same evidence: `gpu0, gpu1: …`, once. */
function evidenceOf(places: readonly Place[], component: MemoryComponent['component']): string[] {
  const found = new Map<string, Set<number>>();
  for (const { gpu, parts } of places)
    for (const part of parts.filter((one) => one.component === component)) {
      const gpus = found.get(part.evidence) ?? new Set();
      if (gpu !== null) gpus.add(gpu);
      found.set(part.evidence, gpus);
    }
  return [...found].map(([evidence, gpus]) =>
    places.length > 1 && gpus.size > 0
      ? `${[...gpus].map((gpu) => `gpu${gpu}`).join(', ')}: ${evidence}`
      : evidence,
  );
}

function overall(parts: readonly Confidence[], residual: number | null, total: number | null): Confidence {
  if (residual === null || total === null || total <= 0) return 'unknown';
  const share = Math.abs(residual) / total;
  const certain: Confidence = share <= smallResidual ? 'high' : share <= largeResidual ? 'medium' : 'low';
  // A component that nobody can tell weighs as much as a formula that may be off.
  return weakest([certain, ...parts.map((part) => (part === 'unknown' ? 'low' : part))]);
}
