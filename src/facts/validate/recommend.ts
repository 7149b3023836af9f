import {
  byArchitecture,
  cublasWorkspace,
  cudaContext,
  generationIn,
  ncclBuffers,
  onnxRuntime,
  pythonWithTorch,
  sourceWithRuns,
  vllmGraphs,
  vllmNonTorch,
  type MemoryConstant,
} from '../../llm/memory-constants.js';
import { nonTorchKind } from '../../llm/memory-vllm.js';
import type { Recommendation } from '../../model/documents/validate.js';
import { median } from '../../model/statistics.js';
import { gpuSheet } from '../../hardware/gpu-peaks.js';
import type { ProfileComparison } from './validate-profile.js';
import { formatGb, formatNumber } from '../../vocabulary/format.js';

/** Minimum error of a constant that the fitted value removes, as a share. */
const minGain = 0.25;
const minErrorBytes = 16 * 2 ** 20;
/** Minimum different models: one profile, or runs of one model, do not generalize. */
const minModels = 3;

/** What one profile implies for a constant: the value that would fit, and how bytes follow from it. */
interface Observation {
  model: string;
  constant: string;
  current: number;
  source: string;
  unit: Recommendation['unit'];
  fittingValue: number;
  /** Bytes of the component per unit of the constant. */
  bytesPerUnit: number;
}

/**
 * Constants of memory-constants.ts that are off, and the value that fits: the median over profiles. Weights and cache
 * have no constants; their errors are in the formula.
 */
export function recommendations(profiles: readonly ProfileComparison[]): Recommendation[] {
  const groups = new Map<string, Observation[]>();
  for (const profile of profiles) {
    for (const observation of observations(profile)) {
      const known = groups.get(observation.constant) ?? [];
      groups.set(observation.constant, [...known, { ...observation, model: profile.row.model }]);
    }
  }
  return [...groups.values()]
    .flatMap((group) => recommendationOf(group) ?? [])
    .toSorted(
      (a, b) => b.error_before_bytes - b.error_after_bytes - (a.error_before_bytes - a.error_after_bytes),
    );
}

function recommendationOf(group: readonly Observation[]): Recommendation | null {
  const { constant, current, source, unit } = group[0]!;
  const models = new Set(group.map(({ model }) => model)).size;
  if (models < minModels) return null;
  const fittingValues = group.map(({ fittingValue }) => fittingValue);
  const spread: [number, number] = [Math.min(...fittingValues), Math.max(...fittingValues)];
  const fitted = median(fittingValues);
  const errorWith = (value: number): number =>
    group.reduce(
      (sum, { fittingValue, bytesPerUnit }) => sum + Math.abs(value - fittingValue) * bytesPerUnit,
      0,
    ) / group.length;
  const before = errorWith(current);
  const after = errorWith(fitted);
  if (before < minErrorBytes || before - after < minGain * before) return null;
  const format = (value: number): string => (unit === 'bytes' ? formatGb(value) : formatNumber(value));
  return {
    constant,
    current,
    current_source: source,
    fitted,
    unit,
    profiles: group.length,
    models,
    spread,
    error_before_bytes: before,
    error_after_bytes: after,
    text: `${constant}: ${format(fitted)} instead of ${format(current)} (median of ${group.length} profiles of ${models} models, ${format(spread[0])} to ${format(spread[1])}); its mean error falls from ${formatGb(before)} to ${formatGb(after)} per GPU.`,
  };
}

type ModelObservation = Omit<Observation, 'model'>;

function observations({ row, measured, estimate }: ProfileComparison): ModelObservation[] {
  if (row.status !== 'compared' || !estimate) return [];
  const gpus = estimate.gpus.length;
  const measuredBytes = (component: string): number | null => {
    const bytes = measured.components.get(component);
    return bytes === undefined || measured.notMeasured.has(component) ? null : bytes / gpus;
  };
  const estimated = (component: string): number =>
    (estimate.lines.find((line) => line.component === component)?.bytes ?? 0) / gpus;
  const factorOf = (constant: string, component: string): ModelObservation[] =>
    factorObservation(constant, measuredBytes(component), estimated(component));
  const architecture = row.gpu === null ? null : (gpuSheet(row.gpu)?.architecture ?? null);
  const context = byArchitecture(cudaContext, architecture);
  const contextBytes = measuredBytes('cuda_context');
  // Memory that attention adds is not part of the constant.
  const added = Math.max(0, estimated('cuda_context') - context.bytes);
  const contextObservations = constantObservation(
    `cudaContext.${generationIn(cudaContext, architecture)}`,
    context,
    contextBytes === null ? null : contextBytes - added,
  );
  if (row.engine === 'vllm') {
    const name = nonTorchKind(estimate.request);
    return [
      ...contextObservations,
      ...constantObservation(`vllmNonTorch.${name}`, vllmNonTorch[name], measuredBytes('framework_overhead')),
      // No constant is needed if tensors are counted.
      ...(estimated('cuda_graphs') === vllmGraphs.bytes
        ? constantObservation('vllmGraphs', vllmGraphs, measuredBytes('cuda_graphs'))
        : factorOf('CUDA graphs (vllm)', 'cuda_graphs')),
      ...factorOf('activations (vllm)', 'activations'),
    ];
  }
  if (estimate.request.device === 'cpu' && row.engine !== 'onnx')
    return constantObservation('pythonWithTorch', pythonWithTorch, measuredBytes('framework_overhead'));
  if (row.engine === 'onnx')
    return constantObservation('onnxRuntime', onnxRuntime, measuredBytes('framework_overhead'));
  const workspace = byArchitecture(cublasWorkspace, architecture);
  const framework = measuredBytes('framework_overhead');
  return [
    ...contextObservations,
    ...(gpus > 1
      ? constantObservation(
          'ncclBuffers',
          ncclBuffers,
          framework === null ? null : framework - workspace.bytes,
        )
      : constantObservation(
          `cublasWorkspace.${generationIn(cublasWorkspace, architecture)}`,
          workspace,
          framework,
        )),
    ...factorOf(`activations (${row.engine})`, 'activations'),
  ];
}

function constantObservation(
  constant: string,
  value: MemoryConstant,
  fittingValue: number | null,
): ModelObservation[] {
  if (fittingValue === null) return [];
  const source = sourceWithRuns(value);
  return [{ constant, current: value.bytes, source, unit: 'bytes', fittingValue, bytesPerUnit: 1 }];
}

/** The ratio of the measured to the estimated bytes. */
function factorObservation(
  constant: string,
  measuredBytes: number | null,
  estimatedBytes: number,
): ModelObservation[] {
  if (measuredBytes === null || estimatedBytes <= 0) return [];
  const fittingValue = measuredBytes / estimatedBytes;
  const source = 'the formula';
  return [{ constant, current: 1, source, unit: 'factor', fittingValue, bytesPerUnit: estimatedBytes }];
}
