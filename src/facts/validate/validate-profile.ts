import { isFittedRun } from '../../llm/fitted-runs.js';
import type { MemoryEstimate } from '../../llm/memory-estimate.js';
import { knownEngine } from '../../llm/memory-request.js';
import type { ValidatedProfile } from '../../model/documents/validate.js';
import { estimatedComponents, type EstimatedComponent } from '../../model/memory-components.js';
import { estimateProfile, tensorParallelOf } from './estimate-profile.js';
import { contradictions, doubts, implausibleReasons } from './plausible.js';
import { measuredOf, type MeasuredMemory, type ProfileFields } from './profile-fields.js';
import { formatGb, formatSigned } from '../../vocabulary/format.js';

export interface Tolerance {
  /** Maximum error of the total, as a share. */
  total: number;
  component: { share: number; bytes: number };
}

/** One profile with the calculator's figures; `estimate` is kept for fitting constants. */
export interface ProfileComparison {
  row: ValidatedProfile;
  measured: MeasuredMemory;
  estimate: MemoryEstimate | null;
}

/** Compares the calculator with one profile, unless the measurement is impossible. */
export function validateProfile(
  profile: ProfileFields,
  source: string,
  tolerance: Tolerance,
): ProfileComparison {
  const measured = measuredOf(profile);
  const estimated = estimateProfile(profile);
  const estimate = typeof estimated === 'string' ? null : estimated.estimate;
  const weights = estimate?.lines.find(({ component }) => component === 'model_weights')?.bytes ?? null;
  const engine =
    knownEngine(profile.engine_metadata?.engine_type) ?? profile.engine_metadata?.engine_type ?? 'unknown';
  const tensorParallelSize = tensorParallelOf(profile);
  const facts = {
    measured,
    weightBytes: weights,
    engine,
    tensorParallelSize,
    utilization: engine === 'vllm' ? (profile.metadata?.config?.gpu_memory_utilization ?? 0.9) : null,
  };
  const reasons = implausibleReasons(profile, facts);
  const base = { ...factsOf(profile, source, engine), tensor_parallel_size: tensorParallelSize };
  const notMeasured = estimatedComponents.filter((component) => measured.notMeasured.has(component));
  const notCompared = {
    total: null,
    components: [],
    uncovered: null,
    not_measured: notMeasured,
    residual_bytes: measured.residualBytes,
    explanation: null,
  };
  if (reasons.length > 0) {
    return { row: { ...base, ...notCompared, status: 'rejected', reasons }, measured, estimate };
  }
  if (typeof estimated === 'string' || estimate === null || measured.totalBytes === null) {
    const why = typeof estimated === 'string' ? estimated : 'It has no measured total.';
    return { row: { ...base, ...notCompared, status: 'skipped', reasons: [why] }, measured, estimate };
  }
  const total = { ...comparedBytes(measured.totalBytes, estimate.totalBytes), within_tolerance: false };
  total.within_tolerance = Math.abs(total.error_share ?? 0) <= tolerance.total;
  const components = componentsOf(measured, estimate, tolerance);
  const uncovered = restOf(total, components, tolerance);
  return {
    row: {
      ...base,
      status: 'compared',
      reasons: doubts(profile, estimated.architecture),
      total,
      components:
        contradictions(profile, estimated.architecture).length === 0
          ? components
          : components.map((component) => ({ ...component, estimate_confidence: 'low' as const })),
      uncovered,
      not_measured: notMeasured,
      residual_bytes: measured.residualBytes,
      explanation: explanationOf(components, uncovered, total.error_bytes, measured),
    },
    measured,
    estimate,
  };
}

function factsOf(profile: ProfileFields, source: string, engine: string) {
  const { model_info: model, engine_metadata, metadata } = profile;
  const config = metadata?.config;
  return {
    source,
    model: model.name,
    family: model.family ?? null,
    engine,
    engine_version: engine_metadata?.engine_version ?? null,
    dtype: model.dtype ?? config?.dtype ?? null,
    quantization: model.quantization ?? config?.quantization ?? null,
    batch_size: config?.batch_size ?? null,
    input_len: config?.input_len ?? null,
    output_len: config?.output_len ?? null,
    gpu: measuredOf(profile).gpuName,
    fitted: isFittedRun(metadata?.session_id),
  };
}

function comparedBytes(measured: number, estimated: number) {
  return {
    measured_bytes: measured,
    estimated_bytes: estimated,
    error_bytes: estimated - measured,
    error_share: measured > 0 ? (estimated - measured) / measured : null,
  };
}

/** Measured components. One that only the calculator has compares with 0 if inferscope measured the others. */
function componentsOf(
  { components: measured, notMeasured }: MeasuredMemory,
  estimate: MemoryEstimate,
  { component: tolerance }: Tolerance,
): ValidatedProfile['components'] {
  const detailed = measured.has('cuda_context') || measured.has('allocator_reserve');
  return estimatedComponents.flatMap((component) => {
    const line = estimate.lines.find((line) => line.component === component);
    const bytes = measured.get(component);
    if (notMeasured.has(component)) return [];
    if (bytes === undefined && !(detailed && line && component !== 'cuda_graphs')) return [];
    const row = comparedBytes(bytes ?? 0, line?.bytes ?? 0);
    return [
      {
        component,
        ...row,
        within_tolerance: isWithin(row, tolerance),
        formula: line?.formula ?? 'the estimate has none',
        estimate_confidence: line?.confidence ?? ('low' as const),
      },
    ];
  });
}

/** The part of the totals outside the components, so that a profile's rows sum to its total. */
function restOf(
  total: { measured_bytes: number; estimated_bytes: number },
  components: ValidatedProfile['components'],
  { component: tolerance }: Tolerance,
): ValidatedProfile['uncovered'] {
  const sum = (field: 'measured_bytes' | 'estimated_bytes') =>
    components.reduce((remaining, component) => remaining - component[field], total[field]);
  const row = comparedBytes(sum('measured_bytes'), sum('estimated_bytes'));
  if (Math.max(Math.abs(row.measured_bytes), Math.abs(row.estimated_bytes)) < 1) return null;
  return { ...row, within_tolerance: isWithin(row, tolerance) };
}

const isWithin = (
  { error_bytes, measured_bytes }: { error_bytes: number; measured_bytes: number },
  { bytes, share }: Tolerance['component'],
): boolean => Math.abs(error_bytes) <= Math.max(bytes, share * Math.max(0, measured_bytes));

const componentNames: Readonly<Record<EstimatedComponent, string>> = {
  model_weights: 'weights',
  kv_cache: 'KV cache',
  activations: 'activations',
  framework_overhead: 'framework overhead',
  cuda_graphs: 'CUDA graphs',
  cuda_context: 'the CUDA context',
  allocator_reserve: "the allocator's reserve",
};

function explanationOf(
  components: ValidatedProfile['components'],
  rest: ValidatedProfile['uncovered'],
  totalError: number,
  { residualBytes }: MeasuredMemory,
): string | null {
  const [largest] = components.toSorted((a, b) => Math.abs(b.error_bytes) - Math.abs(a.error_bytes));
  if (!largest) return null;
  if (rest && Math.abs(rest.error_bytes) > Math.abs(largest.error_bytes))
    return `Largest difference in memory without a measured component: ${formatGb(rest.estimated_bytes)} estimated, ${formatGb(rest.measured_bytes)} measured.`;
  const share = largest.error_share === null ? '' : ` (${formatSigned(largest.error_share, 'ratio')})`;
  const text = `Largest difference in ${componentNames[largest.component]}: ${formatGb(largest.estimated_bytes)} estimated, ${formatGb(largest.measured_bytes)} measured${share}, from ${largest.formula}.`;
  const unassigned = residualBytes ?? 0;
  return Math.abs(unassigned) > Math.abs(largest.error_bytes) &&
    Math.abs(unassigned) > 0.5 * Math.abs(totalError)
    ? `${formatGb(unassigned)} of the measured memory is in no component. ${text}`
    : text;
}
