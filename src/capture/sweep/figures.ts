import type { Document } from '../../model/document.js';
import type { BenchDistribution, BenchResult } from '../../model/documents/bench.js';
import type { KernelsResult } from '../../model/documents/kernels.js';
import type { MemoryProfile } from '../../model/documents/memory-profile.js';
import type { PredictResult } from '../../model/documents/predict.js';
import type { ProfileResult } from '../../model/documents/profile.js';
import type { Distribution, Load, ServingResult } from '../../model/documents/serving.js';
import type { SweepRun } from '../../model/documents/sweep.js';
import type { TraceResult } from '../../model/documents/trace.js';
import { phaseTime } from '../../model/headline-time.js';
import type { Figure } from '../../model/figure.js';

type Figures = SweepRun['figures'];
type Values = Figures[number]['values'];

/** The figures of a memory profile that a table of many shows; names are the profile's own. */
export function profileFigures(profile: MemoryProfile): Figures {
  const { memory_measurements: points, memory_breakdown: parts, latency_stats: latency } = profile;
  return [
    {
      label: null,
      values: {
        baseline_gb: points.baseline.total_gb,
        post_warmup_gb: points.post_warmup.total_gb,
        peak_gb: points.peak.total_gb,
        memory_increase_gb: points.memory_increase_gb,
        peak_max_gb: points.peak.max_gb,
        peak_mean_gb: points.peak.mean_gb,
        peak_stddev_gb: points.peak.stddev_gb,
        total_measured_gb: parts.total_measured_gb,
        model_weights_gb: parts.model_weights_gb,
        kv_cache_gb: parts.kv_cache_gb,
        activations_gb: parts.activations_gb,
        framework_overhead_gb: parts.framework_overhead_gb,
        residual_gb: parts.residual_gb,
        mean_latency_ms: latency.mean_latency_ms,
        tokens_per_second: latency.tokens_per_second,
        mean_ttft_ms: latency.mean_ttft_ms,
        mean_tpot_ms: latency.mean_tpot_ms,
      },
    },
  ];
}

type Reader = (data: never) => Figures;

/** Figures of the documents of commands that a sweep can run, by schema name. */
const readers: Record<string, Reader> = {
  bench: ({ variants }: BenchResult) =>
    variants.flatMap(({ label, points }) =>
      points.map((point) => ({
        label: [...(variants.length > 1 ? [label] : []), point.point].join(' '),
        values: {
          ttft_ms: mean(point.latency.ttft_ms),
          tpot_ms: mean(point.latency.tpot_ms),
          e2e_ms: mean(point.latency.e2e_ms),
          ...values({
            output_tokens_per_s: point.throughput.output_tokens_per_s,
            decode_tokens_per_s: point.throughput.decode_tokens_per_s,
            memory_bytes: point.machine.memory_bytes,
            power_w: point.machine.power_w,
            prefill_mfu: point.model_utilization.prefill_mfu,
            decode_mbu: point.model_utilization.decode_mbu,
          }),
        },
      })),
    ),
  kernels: ({ cases }: KernelsResult) =>
    cases.map((one) => ({
      label: one.case,
      values: {
        median_ns: one.median_ns,
        bytes_per_s: one.bytes_per_s,
        flops_per_s: one.flops_per_s,
        ...values({ roof_share: one.roof_share, peak_memory_bytes: one.peak_memory_bytes }),
      },
    })),
  profile: ({ latency, memory }: ProfileResult) => [
    {
      label: null,
      values: values({
        ttft_ms: latency.ttft_ms,
        tpot_ms: latency.tpot_ms,
        e2e_ms: latency.e2e_ms,
        output_tokens_per_s: latency.output_tokens_per_s,
        ...(memory ? { peak_bytes: memory.peak_bytes } : {}),
      }),
    },
  ],
  serving: ({ points }: ServingResult) =>
    points.map(({ load, latency, throughput, goodput }) => ({
      label: loadWords(load),
      values: {
        ttft_ms: mean(latency.ttft),
        tpot_ms: mean(latency.tpot),
        e2e_ms: mean(latency.e2e),
        ...values({
          requests_per_s: throughput.requests_per_s,
          output_tokens_per_s: throughput.output_tokens_per_s,
          goodput_requests_per_s: goodput.requests_per_s,
        }),
      },
    })),
  predict: ({ stages }: PredictResult) =>
    stages.map(({ phase, batch_size, context_len, ...stage }) => ({
      label: `${phase} batch ${batch_size} context ${context_len}`,
      values: values({ predicted_ms: stage.predicted_ms, roofline_ms: stage.roofline_ms }),
    })),
  trace: ({ phases }: TraceResult) =>
    phases.map(({ kind, wall, clean_ms, idle_share, kernels, launches }) => ({
      label: kind,
      values: { wall_ms: phaseTime({ clean_ms, wall }).ms, idle_share, kernels, launches },
    })),
};

/** Session and main figures of a document that a run printed; no figures for documents without a table here. */
export function documentFigures(document: Document<unknown>): {
  session_id: string | null;
  figures: Figures;
} {
  const name = /^inferscope\/([\w-]+)\//.exec(document.schema)?.[1] ?? '';
  const { session } = document.data as { session?: { id?: string | null } };
  const read = Object.hasOwn(readers, name) ? readers[name] : undefined;
  return { session_id: session?.id ?? null, figures: read ? read(document.data as never) : [] };
}

const mean = (of: BenchDistribution | Distribution): number | null => ('value' in of ? null : of.mean);

const values = (figures: Record<string, Figure>): Values =>
  Object.fromEntries(Object.entries(figures).map(([name, { value }]) => [name, value]));

const loadWords = ({ kind, concurrency, rate_per_s: rate }: Load): string =>
  rate === null ? `concurrency ${concurrency}` : `${kind} ${rate}/s`;
