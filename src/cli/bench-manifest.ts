import { benchWarmup, type VariantPlan } from '../capture/bench/run-bench.js';
import type { BenchPlan } from '../model/documents/bench.js';
import type { Workload } from '../model/manifest.js';
import type { ModelLine } from '../model/record.js';
import type { PreparedBench } from './bench-prepare.js';
import type { BenchOptions } from './bench-option-values.js';
import { formatPercent } from '../vocabulary/format.js';
import { lengthWords } from '../vocabulary/workload.js';

const greedy = 'greedy, end token ignored: every sequence has its full length';

/** Protocol, variants and figures that are not measured: what analyses need to know of the run. */
export function planOf(
  { parts, variants }: Pick<PreparedBench, 'parts' | 'variants'>,
  { launches, runs, seed }: Pick<BenchOptions, 'launches' | 'runs' | 'seed'>,
): BenchPlan {
  const { min, max, within } = benchWarmup;
  const warmupWords = `each point, until two repeats in a row are within ${formatPercent(within)} of each other; ${min} to ${max} repeats`;
  const distinct = <T>(valueOf: (prepared: VariantPlan['prepared']) => T): T[] => [
    ...new Set(variants.map(({ prepared }) => valueOf(prepared))),
  ];
  const notMeasured = new Map(variants.flatMap(({ prepared }) => Object.entries(prepared.notMeasured)));
  return {
    parts,
    protocol: {
      launches,
      repeats: Math.max(...distinct(({ repeats }) => repeats ?? runs)),
      seed,
      sampling: distinct(({ sampling }) => sampling ?? greedy).join('; or '),
      warmup: distinct(({ warmup }) => warmup?.(max) ?? warmupWords).join('; or '),
    },
    variants: variants.map(({ execution_id, label, engine_args, points }) => ({
      execution_id,
      label,
      engine_args,
      points,
    })),
    not_measured: [...notMeasured].map(([figure, why]) => ({ figure, ...why })),
  };
}

/** What the engine's process reports about its model replaces what was known before loading. */
export function workloadOf({ variants, points }: PreparedBench, model: ModelLine | null): Workload {
  const [{ prepared }] = variants as [VariantPlan, ...VariantPlan[]];
  const { workload } = prepared;
  const singlePoint = points.length === 1 ? points[0]! : null;
  const sizes = {
    batch_size: singlePoint?.batch_size ?? null,
    input_len: singlePoint?.input_len ?? null,
    output_len: singlePoint?.output_len ?? null,
  };
  if (!model) return { ...workload, ...sizes, threads: threadsOf(variants, workload.threads) };
  const { name, config, dtype, quantization, weights, weight_bytes } = model;
  return {
    ...workload,
    ...sizes,
    model: {
      name,
      config,
      dtype,
      quantization,
      weights,
      weight_bytes,
      num_parameters: workload.model?.num_parameters ?? null,
    },
    engine: { ...workload.engine, version: model.engine.version ?? workload.engine.version },
    device: model.device,
    threads: threadsOf(variants, model.threads ?? workload.threads),
    tensor_parallel_size: model.tensor_parallel_size,
  };
}

/** Null when variants differ: the manifest has one number for all. */
export function threadsOf(variants: readonly VariantPlan[], threads: number | null): number | null {
  return new Set(variants.map(({ prepared }) => prepared.workload.threads)).size > 1 ? null : threads;
}

export function labelOf(prepared: PreparedBench): string {
  const { parts, variants } = prepared;
  const verb = parts.length > 1 ? 'suite' : parts[0]!;
  const { model, engine } = variants[0]!.prepared.workload;
  return `${verb}-${model?.name ?? engine.options['model'] ?? engine.name}`;
}

export function titleOf(prepared: PreparedBench, reported: ModelLine | null): string {
  const { parts, points, variants } = prepared;
  const verb = parts.length > 1 ? 'suite' : parts[0]!;
  const { model, engine, device } = workloadOf(prepared, reported);
  const what = model
    ? `${model.name} (${model.weights} weights, ${model.dtype})`
    : String(engine.options['model'] ?? prepared.request.model);
  const count = points.length === 1 ? shapeOf(points[0]!) : `${points.length} points`;
  const variantCount = variants.length > 1 ? ` · ${variants.length} variants` : '';
  return `${verb} · ${what} · ${engine.name} ${device} · ${count}${variantCount}`;
}

function shapeOf({ batch_size, input_len, output_len }: PreparedBench['points'][number]): string {
  return `batch ${batch_size}, ${lengthWords(input_len, output_len)}`;
}
