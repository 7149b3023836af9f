import { z } from 'zod';
import { knownEngine } from '../../llm/memory-request.js';
import type { IssueCode } from '../../model/issue-codes.js';
import { codeSchema } from '../../model/code-schema.js';

const gb = z.number().nullish();
const point = z.looseObject({
  total_gb: gb,
  total_bytes: gb,
  per_gpu_details: z
    .array(
      z.looseObject({
        name: z.string().nullish(),
        used_gb: gb,
        used_bytes: gb,
        total_gb: gb,
        total_bytes: gb,
      }),
    )
    .nullish(),
});

/**
 * Fields of a memory profile (schema 2.0) that validation reads. Files of other tools have fewer fields: names and _gb
 * figures are enough.
 */
export const profileFieldsSchema = z.looseObject({
  schema_version: z.string(),
  units: z.looseObject({ gb: z.string() }).nullish(),
  metadata: z
    .looseObject({
      config: z
        .looseObject({
          model: z.string().nullish(),
          input_len: z.number().nullish(),
          output_len: z.number().nullish(),
          batch_size: z.number().nullish(),
          dtype: z.string().nullish(),
          quantization: z.string().nullish(),
          kv_cache_dtype: z.string().nullish(),
          tensor_parallel_size: z.number().nullish(),
          gpu_memory_utilization: z.number().nullish(),
          max_model_len: z.number().nullish(),
        })
        .nullish(),
      session_id: z.string().nullish(),
      status: z.string().nullish(),
      where: z.string().nullish(),
      /** In inferscope's profiles empty if nothing ran on a GPU. */
      gpus: z.array(z.unknown()).nullish(),
      sampling: z.looseObject({ samples: z.number().nullish() }).nullish(),
      issues: z.array(z.looseObject({ code: codeSchema<IssueCode>(), text: z.string() })).nullish(),
    })
    .nullish(),
  model_info: z.looseObject({
    name: z.string(),
    num_parameters: z.number().nullish(),
    num_layers: z.number().nullish(),
    dtype: z.string().nullish(),
    quantization: z.string().nullish(),
    tensor_parallel_size: z.number().nullish(),
    family: z.string().nullish(),
    config: z.record(z.string(), z.unknown()).nullish(),
  }),
  memory_measurements: z.looseObject({
    baseline: point.nullish(),
    post_warmup: point.nullish(),
    peak: point,
  }),
  memory_breakdown: z.looseObject({
    total_measured_gb: gb,
    total_measured_bytes: gb,
    total_measured_basis: z.string().nullish(),
    model_weights_gb: gb,
    kv_cache_gb: gb,
    activations_gb: gb,
    framework_overhead_gb: gb,
    residual_bytes: gb,
    components: z
      .array(z.looseObject({ component: z.string(), bytes: z.number(), basis: z.string().nullish() }))
      .nullish(),
  }),
  engine_metadata: z
    .looseObject({
      engine_version: z.string().nullish(),
      engine_type: z.string().nullish(),
      engine_args: z.record(z.string(), z.unknown()).nullish(),
    })
    .nullish(),
});

export type ProfileFields = z.infer<typeof profileFieldsSchema>;

/** Bytes of a field given in bytes, in GB, or not at all. */
export function bytesOf(inBytes: number | null | undefined, inGb: number | null | undefined): number | null {
  return inBytes ?? (inGb === null || inGb === undefined ? null : inGb * 1e9);
}

export interface MeasuredMemory {
  /** Memory of the run: peak − baseline, or its processes' own use; the peak if the profile has no total. */
  totalBytes: number | null;
  peakBytes: number | null;
  baselineBytes: number | null;
  /** Bytes by component, if the profile has it. */
  components: ReadonlyMap<string, number>;
  /** Components from formulas only, so there is no measurement to compare with. */
  notMeasured: ReadonlySet<string>;
  residualBytes: number | null;
  /** Memory of one GPU. */
  gpuBytes: number | null;
  gpuName: string | null;
}

/** The figures of a profile, in bytes. */
export function measuredOf({
  memory_measurements: points,
  memory_breakdown: parts,
  metadata,
  engine_metadata: engine,
}: ProfileFields): MeasuredMemory {
  const onCpu = metadata?.gpus?.length === 0;
  const byTorch = knownEngine(engine?.engine_type) === 'transformers';
  const { peak, baseline } = points;
  const gpus = peak.per_gpu_details ?? [];
  const components = new Map<string, number>();
  for (const { component, bytes } of parts.components ?? []) components.set(component, bytes);
  if (components.size === 0) {
    const fields: [string, number | null | undefined][] = [
      ['model_weights', parts.model_weights_gb],
      ['kv_cache', parts.kv_cache_gb],
      ['activations', parts.activations_gb],
    ];
    for (const [component, value] of fields) {
      const bytes = bytesOf(null, value);
      if (bytes !== null) components.set(component, bytes);
    }
  }
  const peakBytes = bytesOf(peak.total_bytes, peak.total_gb);
  const baselineBytes = baseline ? bytesOf(baseline.total_bytes, baseline.total_gb) : null;
  return {
    totalBytes: bytesOf(parts.total_measured_bytes, parts.total_measured_gb) ?? peakBytes,
    peakBytes,
    baselineBytes,
    components,
    notMeasured: new Set(
      (parts.components ?? [])
        .filter(({ component, basis }) =>
          // Older files have no basis. On a CPU no allocator counts activations, and only PyTorch's cache is counted.
          basis === undefined || basis === null
            ? onCpu && (component === 'activations' || (component === 'kv_cache' && !byTorch))
            : basis === 'formula',
        )
        .map(({ component }) => component),
    ),
    residualBytes: parts.residual_bytes ?? components.get('residual') ?? null,
    gpuBytes: gpus[0] ? bytesOf(gpus[0].total_bytes, gpus[0].total_gb) : null,
    gpuName: gpus[0]?.name ?? null,
  };
}
