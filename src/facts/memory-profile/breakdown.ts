import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import type { MemoryComponent, MemoryProfile } from '../../model/documents/memory-profile.js';
import { weakest, type Confidence, type Place } from './part.js';
import { gb } from './points.js';
import { formatGb } from '../../vocabulary/format.js';

export interface MeasuredTotal {
  bytes: number;
  /** How the total was measured. */
  source: string;
  /** The total includes memory of other processes on the same GPUs. */
  shared: boolean;
  /** The total is of processes that the driver lists, so it includes no others. */
  listed: boolean;
  /** Other processes started on the GPUs after the launch, so growth of the whole GPU includes them. */
  othersStarted: boolean;
}

const headlineComponents = ['model_weights', 'kv_cache', 'activations'] as const;
/** Components summed in framework_overhead_gb. */
const overheadComponents = [
  'framework_overhead',
  'cuda_graphs',
  'cuda_context',
  'allocator_reserve',
] as const;

/** A residual below this share does not lower the confidence of the total. */
const smallResidualShare = 0.02;
const largeResidualShare = 0.1;

/**
 * Components over all GPUs of the run, and the residual to the measured total. Components and residual sum exactly to
 * the total; the residual may be negative. If model dimensions contradict each other, formulas and the total have low
 * confidence.
 */
export function breakdownOf(
  places: readonly Place[],
  measured: Pick<MeasuredTotal, 'bytes' | 'source' | 'shared' | 'listed'> | null,
  estimate: MemoryEstimate | null,
  { contradicted = false }: { contradicted?: boolean } = {},
): MemoryProfile['memory_breakdown'] & { peak_stage: string | null } {
  const components = sumPlaces(places, estimate);
  if (contradicted)
    for (const component of components) if (component.basis === 'formula') component.confidence = 'low';
  const sum = components.reduce((sum, { bytes }) => sum + bytes, 0);
  const residual = measured === null ? null : measured.bytes - sum;
  const componentOf = (component: string) =>
    components.find((candidate) => candidate.component === component);
  const overhead = components.filter(({ component }) =>
    overheadComponents.some((name) => name === component),
  );
  const overheadBytes = overhead.length === 0 ? null : overhead.reduce((sum, { bytes }) => sum + bytes, 0);
  const confidence = (component: string): Confidence => componentOf(component)?.confidence ?? 'unknown';
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
    model_weights_gb: gb(componentOf('model_weights')?.bytes ?? null),
    model_weights_bytes: componentOf('model_weights')?.bytes ?? null,
    kv_cache_gb: gb(componentOf('kv_cache')?.bytes ?? null),
    kv_cache_bytes: componentOf('kv_cache')?.bytes ?? null,
    activations_gb: gb(componentOf('activations')?.bytes ?? null),
    activations_bytes: componentOf('activations')?.bytes ?? null,
    framework_overhead_gb: gb(overheadBytes),
    framework_overhead_bytes: overheadBytes,
    residual_gb: gb(residual),
    residual_bytes: residual,
    confidence_levels: {
      // The total includes an unknown amount of other processes.
      overall: weakest([
        overallConfidence(headlineComponents.map(confidence), residual, measured?.bytes ?? null),
        ...(measured?.shared || contradicted ? (['low'] as const) : []),
      ]),
      weights: confidence('model_weights'),
      kv_cache: confidence('kv_cache'),
      activations: confidence('activations'),
      framework_overhead:
        overhead.length === 0 ? 'unknown' : weakest(overhead.map((component) => component.confidence)),
    },
    /** Stage of the allocator's peak, if reported and the same on all GPUs. The cache is counted at that moment. */
    peak_stage: stages.size === 1 ? [...stages][0]! : null,
    components,
    per_gpu: perGpu,
  };
}

function sumPlaces(places: readonly Place[], estimate: MemoryEstimate | null): MemoryComponent[] {
  const components = new Map<MemoryComponent['component'], MemoryComponent>();
  for (const { parts } of places) {
    for (const { component, bytes, confidence, basis = 'measured' } of parts) {
      const sum = components.get(component);
      if (sum) {
        sum.bytes += bytes;
        sum.gb = sum.bytes / 1e9;
        sum.confidence = weakest([sum.confidence, confidence]);
        if (basis === 'formula') sum.basis = basis;
        continue;
      }
      const line = estimate?.lines.find((line) => line.component === component);
      components.set(component, {
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
  return [...components.values()];
}

/** Evidence that several GPUs share is listed once: `GPU 0, GPU 1: …`. */
function evidenceOf(places: readonly Place[], component: MemoryComponent['component']): string[] {
  const gpusByEvidence = new Map<string, Set<number>>();
  for (const { gpu, parts } of places)
    for (const part of parts.filter((candidate) => candidate.component === component)) {
      const gpus = gpusByEvidence.get(part.evidence) ?? new Set();
      if (gpu !== null) gpus.add(gpu);
      gpusByEvidence.set(part.evidence, gpus);
    }
  return [...gpusByEvidence].map(([evidence, gpus]) =>
    places.length > 1 && gpus.size > 0
      ? `${[...gpus].map((gpu) => `GPU ${gpu}`).join(', ')}: ${evidence}`
      : evidence,
  );
}

function overallConfidence(
  parts: readonly Confidence[],
  residual: number | null,
  total: number | null,
): Confidence {
  if (residual === null || total === null || total <= 0) return 'unknown';
  const share = Math.abs(residual) / total;
  const residualConfidence: Confidence =
    share <= smallResidualShare ? 'high' : share <= largeResidualShare ? 'medium' : 'low';
  // An unknown component counts as one of low confidence.
  return weakest([residualConfidence, ...parts.map((part) => (part === 'unknown' ? 'low' : part))]);
}
