import { z } from 'zod';
import { benchParts, pointOutcomes } from '../bench.js';
import { issueSchema } from '../document.js';
import { benchResultSchema } from './bench.js';

/** Suffixes of a distribution's columns: `ttft_ms_p50`. */
export const spreadColumns = ['mean', 'sd', 'p50', 'p90', 'p95', 'p99', 'ci95_low', 'ci95_high'] as const;

const distributions = {
  ttft_ms: 'time to first token, ms, over the timed repeats',
  tpot_ms: '(last token − first token) / (output_len − 1), ms, over the timed repeats',
  itl_ms: 'gap between two tokens, ms, over all gaps of the timed repeats',
  e2e_ms: 'start to last token of the batch, ms, over the timed repeats',
} as const;

const spreads = Object.fromEntries(
  Object.entries(distributions).flatMap(([name, meaning]) =>
    spreadColumns.map((statistic) => [`${name}_${statistic}`, `${statistic}: ${meaning}`]),
  ),
) as Record<`${keyof typeof distributions}_${(typeof spreadColumns)[number]}`, string>;

/**
 * Numeric columns of baseline_metrics.json and of the CSV files, in file order. Units are in the names; a share, MFU or MBU is between 0
 * and 1.
 */
export const baselineColumns = {
  n: 'timed repeats',
  launches: 'process launches of these repeats',
  ...spreads,
  prefill_device_ms_mean: 'prefill between device events, ms',
  decode_device_ms_mean: 'decode step between device events, ms',
  output_tokens_per_s: 'batch × output tokens / end to end',
  output_tokens_per_s_ci95_low: 'lower end of its 95 % interval',
  output_tokens_per_s_ci95_high: 'upper end of its 95 % interval',
  total_tokens_per_s: 'prompt and output tokens / end to end',
  decode_tokens_per_s: 'batch / TPOT',
  prefill_tokens_per_s: 'batch × prompt tokens / TTFT',
  requests_per_s: 'batch / end to end',
  scaling_factor: "output tokens/s over that of the variant's smallest batch of the same lengths",
  scaling_efficiency: 'scaling factor / how many times larger the batch is',
  prefill_kernel_ms: 'device work of one prefill, ms',
  decode_kernel_ms: 'device work of a mean decode step, ms',
  decode_kernels: 'kernels of a mean decode step',
  prefill_idle_share: 'share of prefill in which the device was idle',
  decode_idle_share: 'share of a decode step in which the device was idle',
  gpu_utilization_percent: 'share of time in which a kernel ran, as the driver samples it, %',
  gpu_memory_used_bytes: 'memory in use on the GPU, all processes',
  memory_bytes: "peak memory by the engine's own allocator, or peak resident memory of its process",
  power_w: 'mean power',
  sm_clock_mhz: 'mean SM clock',
  cpu_cores_busy: 'mean number of cores the process kept busy',
  joules_per_output_token: 'energy / output tokens',
  kv_cache_usage: "share of the engine's KV cache in use",
  prefill_mfu: 'FLOP/s of prefill over the peak',
  prefill_mbu: 'bytes/s of prefill over the bandwidth',
  decode_mfu: 'FLOP/s of decode over the peak',
  decode_mbu: 'bytes/s of decode over the bandwidth',
  ttft_expected_low_ms: 'lower bound of TTFT by the roofline, ms',
  ttft_expected_high_ms: 'upper end of what is commonly reached, ms',
  tpot_expected_low_ms: 'lower bound of TPOT by the roofline, ms',
  tpot_expected_high_ms: 'upper end of what is commonly reached, ms',
  warmup_iterations: 'repeats before the timed ones',
} as const;
export type BaselineColumn = keyof typeof baselineColumns;

const numbers = {} as Record<BaselineColumn, z.ZodNullable<z.ZodNumber>>;
for (const [name, meaning] of Object.entries(baselineColumns)) {
  numbers[name as BaselineColumn] = z.number().nullable().describe(meaning);
}

const baselineRowSchema = z.object({
  variant: z.string(),
  engine_args: z.record(z.string(), z.string()),
  point: z.string(),
  parts: z.array(z.enum(benchParts)),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  outcome: z.enum(pointOutcomes),
  outcome_text: z.string().nullable(),
  ...numbers,
  prefill_bound: z.enum(['memory', 'compute']).nullable(),
  decode_bound: z.enum(['memory', 'compute']).nullable(),
  warmup_stable: z.boolean().nullable(),
  interleaved: z.boolean(),
  flags: z.array(z.string()).describe('issue codes of the point'),
  missing: z.record(z.string(), z.string()).describe('why a column is null, by column'),
});

/** baseline_metrics.json: the figures of a benchmark, one flat row per point and variant. */
export const baselineMetricsSchema = z.object({
  schema: z.string().regex(/^inferscope\/baseline-metrics\/1\.\d+$/),
  tool_version: z.string(),
  session: benchResultSchema.shape.session.extend({ status: z.string() }),
  engine: benchResultSchema.shape.engine,
  protocol: benchResultSchema.shape.protocol,
  points: z.array(baselineRowSchema),
  issues: z.array(issueSchema),
});

export const baselineMetricsVersion = '1.0';
export type BaselineRow = z.infer<typeof baselineRowSchema>;
export type BaselineMetrics = z.infer<typeof baselineMetricsSchema>;
