import type { LatencyResult } from '../model/documents/profile.js';
import { missing } from '../model/figure.js';
import { mean, percentile } from '../model/statistics.js';
import type { SessionDatabase } from '../session/query.js';
import { latencies, meanOf, throughput } from './bench/point.js';
import { readRepeatRows } from './bench/rows.js';
import { outlierTest } from './statistics.js';
import { readDecodeSteps } from './utilization/steps.js';

/**
 * Latency of one request or batch in the clean execution, as a benchmark defines it: TTFT, TPOT, end to end, tokens per
 * second.
 */
export async function readLatency(database: SessionDatabase): Promise<LatencyResult> {
  const repeats = await readRepeatRows(database, 'clean');
  const rows = repeats.filter(({ warmup }) => !warmup);
  const steps = await readDecodeSteps(database, 'clean');
  const noRepeats = missing('no_repeats', 'no timed repeat was completed');
  const spread = latencies(rows, { steps, prefills: [] }, noRepeats);
  const [ttft, tpot, e2e] = [meanOf(spread.ttft_ms), meanOf(spread.tpot_ms), meanOf(spread.e2e_ms)];
  const sizes = rows[0] ?? { batch_size: 0, input_len: 0, output_len: 0 };
  const rates = throughput(sizes, { ttft, tpot, e2e });
  const isOutlier = outlierTest(rows.map((row) => row.e2e_ns));
  const periods = steps.map(({ wall_ns }) => wall_ns / 1e6).toSorted((x, y) => x - y);
  const { itl_ms: step } = spread;
  return {
    repeats: rows.length,
    launches: new Set(rows.map((row) => row.launch)).size,
    warmup_repeats: repeats.length - rows.length,
    ttft_ms: ttft,
    tpot_ms: tpot,
    e2e_ms: e2e,
    decode_tokens_per_s: rates.decode_tokens_per_s,
    prefill_tokens_per_s: rates.prefill_tokens_per_s,
    output_tokens_per_s: rates.output_tokens_per_s,
    per_repeat: rows.map((row) => ({
      iteration: row.iteration,
      launch: row.launch,
      ttft_ms: row.ttft_ns / 1e6,
      tpot_ms: row.tpot_ns === null ? null : row.tpot_ns / 1e6,
      e2e_ms: row.e2e_ns / 1e6,
      outlier: isOutlier(row.e2e_ns),
    })),
    decode_step_percentiles_ms:
      'p50' in step
        ? {
            p5: percentile(periods, 0.05),
            p50: step.p50,
            p90: step.p90,
            p95: step.p95,
            p99: step.p99,
            max: step.max,
          }
        : null,
    decode_step_by_index_ms: meansByIndex(steps),
  };
}

function meansByIndex(steps: readonly { step_index: number; wall_ns: number }[]): number[] {
  const groups: number[][] = [];
  for (const { step_index: index, wall_ns } of steps) (groups[index] ??= []).push(wall_ns / 1e6);
  return groups.map(mean);
}
