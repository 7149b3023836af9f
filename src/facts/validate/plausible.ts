import type { Architecture } from '../../llm/architecture.js';
import { countParameters } from '../../llm/parameters.js';
import { impossibleSize } from '../../model/memory-sizes.js';
import { bytesOf, type MeasuredMemory, type ProfileFields } from './profile-fields.js';
import { formatFactor, formatGb, formatQuantity } from '../../vocabulary/format.js';

interface PlausibleFacts {
  measured: MeasuredMemory;
  /** Weights of all GPUs by the calculator; null if it cannot compute the model. */
  weightBytes: number | null;
  engine: string;
  tensorParallelSize: number;
  /** vLLM's gpu_memory_utilization; null for other engines. */
  utilization: number | null;
}

/** A live vLLM fills its share. Below this part of it, it was not running when sampled. */
const minFilledShare = 0.7;
/** Components and residual sum to the total within this rounding error. */
const sumTolerance = 0.01;
/** Maximum ratio of weights to the model's: a tied lm_head stored twice stays below it. */
const maxWeightRatio = 1.5;
/** Components that exceed the total by this share of it include memory of other processes. */
const minDeficit = 0.25;

/** Reasons why a measurement is impossible; empty if there are none. */
export function implausibleReasons(profile: ProfileFields, facts: PlausibleFacts): string[] {
  const size = impossibleSize(profile);
  if (size !== null) return [size];
  return [
    ...notMeasured(profile, facts),
    ...belowWeights(facts),
    ...tooLittleForVllm(facts),
    ...moreThanGpu(profile),
    ...doesNotAddUp(facts),
    ...aboveTotal(facts),
    ...sharedGpuReasons(profile, facts.measured),
  ];
}

function notMeasured({ metadata }: ProfileFields, { measured }: PlausibleFacts): string[] {
  if (metadata?.status === 'partial') return ['The run stopped early: it may not have reached its peak.'];
  const { totalBytes, peakBytes, baselineBytes } = measured;
  if (totalBytes === null) return ['It has no measured total.'];
  if (totalBytes <= 0 || (peakBytes !== null && baselineBytes !== null && peakBytes <= baselineBytes)) {
    return [
      'The peak is not above the baseline: it was sampled after the process had exited, or on another GPU.',
    ];
  }
  const samples = metadata?.sampling?.samples ?? null;
  return samples !== null && samples < 3 ? [`It has only ${samples} samples: a peak may be missed.`] : [];
}

function belowWeights({ measured, weightBytes, tensorParallelSize: tp }: PlausibleFacts): string[] {
  const { totalBytes: total, components } = measured;
  const reasons: string[] = [];
  if (total === null) return reasons;
  const weightsPart = components.get('model_weights') ?? null;
  const minBytes = weightBytes ?? weightsPart;
  // A rounded parameter count, or an engine that packs weights, may be a few percent off.
  if (minBytes !== null && total > 0 && total < 0.95 * minBytes) {
    reasons.push(
      `The peak of ${formatGb(total)} is below the weights (${formatGb(minBytes)}): it was sampled before loading or after the process had exited, or counts a part of the GPUs.`,
    );
  }
  if (tp > 1 && weightsPart !== null && weightBytes !== null && weightsPart < (weightBytes / tp) * 1.2) {
    reasons.push(
      `Its weights (${formatGb(weightsPart)}) are those of one of ${tp} GPUs while totals are summed over all (${formatGb(weightBytes)}).`,
    );
  }
  return reasons;
}

function tooLittleForVllm({ measured, utilization, engine, tensorParallelSize }: PlausibleFacts): string[] {
  const { peakBytes, gpuBytes } = measured;
  if (utilization === null || peakBytes === null || gpuBytes === null) return [];
  const share = utilization * gpuBytes * tensorParallelSize;
  return peakBytes < minFilledShare * share
    ? [
        `A live ${engine} fills its share of the GPUs (${formatGb(share)} at utilization ${utilization}), but ${formatGb(peakBytes)} were measured: it was not running, or on other GPUs.`,
      ]
    : [];
}

function moreThanGpu({ memory_measurements }: ProfileFields): string[] {
  return (memory_measurements.peak.per_gpu_details ?? []).flatMap((gpu, index) => {
    const used = bytesOf(gpu.used_bytes, gpu.used_gb);
    const total = bytesOf(gpu.total_bytes, gpu.total_gb);
    return used !== null && total !== null && total > 0 && used > 1.01 * total
      ? [`GPU ${index} shows ${formatGb(used)} in use of ${formatGb(total)}: units are wrong.`]
      : [];
  });
}

function doesNotAddUp({ measured }: PlausibleFacts): string[] {
  const { totalBytes, components, residualBytes } = measured;
  if (totalBytes === null || residualBytes === null || components.size < 2) return [];
  let sum = components.has('residual') ? 0 : residualBytes;
  for (const bytes of components.values()) sum += bytes;
  return Math.abs(sum - totalBytes) > sumTolerance * totalBytes
    ? [`Its components and residual sum to ${formatGb(sum)} instead of the total of ${formatGb(totalBytes)}.`]
    : [];
}

/** A part cannot exceed the total, and measured weights cannot be much larger than the model in this dtype. */
function aboveTotal({ measured, weightBytes }: PlausibleFacts): string[] {
  const { totalBytes: total, components, notMeasured } = measured;
  const reasons: string[] = [];
  for (const [component, bytes] of components) {
    const part = component !== 'residual' && component !== 'other_processes' && !notMeasured.has(component);
    if (part && total !== null && bytes > (1 + sumTolerance) * total) {
      reasons.push(`Its ${component} (${formatGb(bytes)}) is more than the total of ${formatGb(total)}.`);
    }
  }
  const weights = components.get('model_weights') ?? null;
  if (weights !== null && weightBytes !== null && weights > maxWeightRatio * weightBytes) {
    reasons.push(
      `Its weights (${formatGb(weights)}) are ${formatFactor(weights / weightBytes)} those of the model in its dtype (${formatGb(weightBytes)}).`,
    );
  }
  return reasons;
}

function sharedGpuReasons(profile: ProfileFields, { totalBytes, residualBytes }: MeasuredMemory): string[] {
  const issue = sharedIssue(profile);
  if (!issue) return [];
  if (!ownShareKnown(profile)) return [`Others used the GPU: ${issue.text}`];
  return totalBytes !== null && (residualBytes ?? 0) < -minDeficit * totalBytes
    ? [
        `Others used the GPU, and its components are ${formatGb(totalBytes - residualBytes!)} of a total of ${formatGb(totalBytes)}: memory of others is counted as its own.`,
      ]
    : [];
}

/** Doubts about a profile that is compared anyway. */
export function doubts(profile: ProfileFields, architecture: Architecture): string[] {
  const issue = sharedIssue(profile);
  const ownMemoryOnly = issue && ownShareKnown(profile);
  return [
    ...(ownMemoryOnly
      ? [
          'Others used the GPU; the total covers only its own processes as listed by the driver, so it is valid.',
        ]
      : []),
    ...contradictions(profile, architecture),
  ];
}

/** Dimensions of the profile that differ from its config, so that it is unknown which ran. */
export function contradictions({ model_info: model }: ProfileFields, architecture: Architecture): string[] {
  const { num_layers: layers, num_parameters: parameters } = model;
  const parameterCount = countParameters(architecture).total;
  const problems: string[] = [];
  if (typeof layers === 'number' && layers !== architecture.layers.length) {
    problems.push(`It states ${layers} layers, its config ${architecture.layers.length}.`);
  }
  if (typeof parameters === 'number' && Math.abs(parameters / parameterCount - 1) > parameterTolerance) {
    problems.push(
      `It states ${formatQuantity(parameters, 'parameters')}, its config has ${formatQuantity(parameterCount, 'parameters')}.`,
    );
  }
  return problems;
}

/** "7B" for a model with 7.6 B is rounding. */
const parameterTolerance = 0.1;

const sharedIssue = ({ metadata }: ProfileFields) =>
  metadata?.issues?.find(({ code }) => code === 'gpu_shared');

/** Memory of the run's own processes, as the driver lists them, includes no others. */
const ownShareKnown = ({ memory_breakdown }: ProfileFields): boolean =>
  memory_breakdown.total_measured_basis === 'own_processes';
