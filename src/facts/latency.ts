import type { LatencyResult } from '../model/documents/profile.js';
import { mapFigure, missing } from '../model/figure.js';
import { mean, percentile } from '../model/statistics.js';
import type { SessionDatabase } from '../session/query.js';
import { decodeSteps } from './steps.js';
import { meanOverLaunches, outlierTest, type Repeat } from './statistics.js';

interface IterationRow {
  iteration: number;
  launch: number;
  warmup: boolean;
  batch_size: number;
  input_len: number;
  output_len: number;
  ttft_ns: number;
  tpot_ns: number | null;
  e2e_ns: number;
}

/** How long one request or batch takes, from the clean execution: TTFT, TPOT, end to end, tokens a second. */
export async function latency(database: SessionDatabase): Promise<LatencyResult> {
  const all = await database.query<IterationRow>(
    `SELECT iteration, launch, warmup, batch_size, input_len, output_len, ttft_ns, tpot_ns,
            end_ns - start_ns AS e2e_ns
     FROM iterations WHERE execution_id = 'clean' ORDER BY iteration`,
  );
  const rows = all.filter((row) => !row.warmup);
  const over = (value: (row: IterationRow) => number | null, unit: string, source: string) => {
    const repeats = rows.flatMap((row): Repeat[] => {
      const v = value(row);
      return v === null ? [] : [{ launch: row.launch, value: v }];
    });
    return meanOverLaunches(repeats, unit, source);
  };
  const steps = await decodeSteps(database, 'clean');
  const sorted = steps.map((step) => step.period_ms).sort((x, y) => x - y);
  const isOutlier = outlierTest(rows.map((row) => row.e2e_ns));
  const tokens = (count: (row: IterationRow) => number) => (rows[0] ? count(rows[0]) : 0);
  const ttft = over((row) => row.ttft_ns / 1e6, 'ms', 'iterations.ttft_ns');
  const anyTpot = rows.length === 0 || rows.some((row) => row.tpot_ns !== null);
  const tpot = anyTpot
    ? over((row) => row.tpot_ns && row.tpot_ns / 1e6, 'ms', 'iterations.tpot_ns')
    : missing('one_token', 'TPOT needs at least two output tokens');
  const e2e = over((row) => row.e2e_ns / 1e6, 'ms', 'iterations.end_ns − start_ns');
  const batch = tokens((row) => row.batch_size);
  return {
    repeats: rows.length,
    launches: new Set(rows.map((row) => row.launch)).size,
    warmup_repeats: all.length - rows.length,
    ttft_ms: ttft,
    tpot_ms: tpot,
    e2e_ms: e2e,
    decode_tokens_per_s: mapFigure(tpot, 'tok/s', 'batch / TPOT', (ms) => (1000 * batch) / ms),
    prefill_tokens_per_s: mapFigure(
      ttft,
      'tok/s',
      'batch × input length / TTFT',
      (ms) => (1000 * batch * tokens((row) => row.input_len)) / ms,
    ),
    output_tokens_per_s: over(
      (row) => (row.batch_size * row.output_len * 1e9) / row.e2e_ns,
      'tok/s',
      'batch × output length / end to end',
    ),
    per_repeat: rows.map((row) => ({
      iteration: row.iteration,
      launch: row.launch,
      ttft_ms: row.ttft_ns / 1e6,
      tpot_ms: row.tpot_ns === null ? null : row.tpot_ns / 1e6,
      e2e_ms: row.e2e_ns / 1e6,
      outlier: isOutlier(row.e2e_ns),
    })),
    decode_step_percentiles_ms:
      sorted.length === 0
        ? null
        : {
            p5: percentile(sorted, 0.05),
            p50: percentile(sorted, 0.5),
            p90: percentile(sorted, 0.9),
            p95: percentile(sorted, 0.95),
            p99: percentile(sorted, 0.99),
            max: sorted.at(-1)!,
          },
    decode_step_by_index_ms: byIndex(steps),
  };
}

function byIndex(steps: { step_index: number; period_ms: number }[]): number[] {
  const groups: number[][] = [];
  for (const step of steps) (groups[step.step_index] ??= []).push(step.period_ms);
  return groups.map(mean);
}
