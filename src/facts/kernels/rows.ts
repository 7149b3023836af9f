import type { SessionDatabase } from '../../session/query.js';
import type { CaseOutcome } from '../../model/kernels.js';

export interface CaseRow {
  case_id: string;
  name: string;
  backend: string | null;
  dtype: string;
  params: string;
  outcome: CaseOutcome;
  text: string | null;
  flops: number;
  bytes: number;
  runs: number;
  mean_ns: number | null;
  median_ns: number | null;
  min_ns: number | null;
  max_ns: number | null;
  sd_ns: number | null;
  p5_ns: number | null;
  p95_ns: number | null;
  method: 'events' | 'graph' | 'host' | null;
  per_sample: number | null;
  rotated_bytes: number | null;
  peak_memory_bytes: number | null;
  max_error: number | null;
  start_ns: number;
}

/** In run order. A case tried twice has its measured attempt. */
export async function readCaseRows(database: SessionDatabase): Promise<CaseRow[]> {
  return database.query<CaseRow>(
    `SELECT case_id, name, backend, dtype, params, outcome, text, flops, bytes, runs, mean_ns, median_ns, min_ns, max_ns,
            sd_ns, p5_ns, p95_ns, method, per_sample, rotated_bytes, peak_memory_bytes, max_error, start_ns
     FROM microbenchmarks WHERE case_id IS NOT NULL
     QUALIFY row_number() OVER (PARTITION BY case_id ORDER BY outcome = 'measured' DESC, start_ns DESC) = 1
     ORDER BY start_ns, case_id`,
  );
}

export interface ConditionRow {
  case_id: string;
  scope: string;
  metric: string;
  mean: number;
  /** All bits that were set in throttle_bits. */
  bits: number;
  n: number;
}

/**
 * Sampled conditions while each case was timed. NVML's power_w is a mean over the last second on Ampere and newer, so
 * it is used only for cases that took longer.
 */
export async function readConditionRows(database: SessionDatabase): Promise<ConditionRow[]> {
  return database.query<ConditionRow>(
    `SELECT m.case_id, t.scope, t.metric, avg(t.value) AS mean,
            bit_or(CASE WHEN t.metric = 'throttle_bits' THEN CAST(t.value AS BIGINT) ELSE 0 END) AS bits, count(*) AS n
     FROM microbenchmarks m JOIN telemetry t
       ON t.execution_id = m.execution_id AND t.t_ns BETWEEN m.start_ns AND m.end_ns
     WHERE m.case_id IS NOT NULL AND t.metric IN ('sm_clock_mhz', 'clock_mhz', 'throttle_bits', 'power_instant_w', 'power_w')
       AND (t.metric <> 'power_w' OR m.end_ns - m.start_ns > 1e9)
     GROUP BY ALL ORDER BY m.case_id, t.scope, t.metric`,
  );
}
