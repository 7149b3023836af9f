import type { CountersResult } from '../../model/documents/counters.js';
import type { SessionDatabase } from '../../session/query.js';
import type { Mean } from './metrics.js';

/** Launches of one kernel name with one grid and block, in one capture, on one device. */
export interface KernelGroup {
  /** Number of the group in the queries. */
  key: number;
  execution_id: string;
  capture_id: string;
  name: string;
  grid: string | null;
  block: string | null;
  device: number | null;
  launches: number;
  nvtx_paths: string[];
  /** Phases of its launches: "decode", "decode and prefill". */
  stage: string | null;
  metrics: Map<string, Mean>;
}

const dimensions = (kind: 'grid' | 'block') =>
  `concat_ws(',', ${['x', 'y', 'z']
    .map((axis) => `CAST(max(value) FILTER (WHERE metric = 'launch__${kind}_dim_${axis}') AS BIGINT)`)
    .join(', ')})`;

/** One row per launch, with the number of its group. */
const launchSql = `
  SELECT *, dense_rank() OVER (ORDER BY execution_id, capture_id, kernel_name, grid, block, device) - 1 AS key FROM (
    SELECT execution_id, capture_id, pid, device, kernel_name, launch_ordinal, any_value(nvtx_path) AS nvtx_path, any_value(phase) AS phase,
      max(value) FILTER (WHERE metric = 'ncu__id') AS id,
      max(value) FILTER (WHERE metric = 'gpu__time_duration.sum') AS duration_ns,
      ${dimensions('grid')} AS grid, ${dimensions('block')} AS block
    FROM counters WHERE regexp_matches(metric, '^(ncu__id|gpu__time_duration.sum|launch__(grid|block)_dim_[xyz])$')
    GROUP BY execution_id, capture_id, pid, device, kernel_name, launch_ordinal)`;

/** Groups by total time, longest first; those without a duration last. */
export async function readKernelGroups(database: SessionDatabase): Promise<KernelGroup[]> {
  const rows = await database.query<{
    key: number;
    execution_id: string;
    capture_id: string;
    name: string;
    grid: string;
    block: string;
    device: number | null;
    launches: number;
    nvtx_paths: string | null;
    stage: string | null;
  }>(
    `SELECT key, any_value(execution_id) AS execution_id, any_value(capture_id) AS capture_id,
       any_value(kernel_name) AS name, any_value(grid) AS grid, any_value(block) AS block,
       any_value(device) AS device, count(*) AS launches,
       to_json(list_slice(list_distinct(list(nvtx_path)), 1, 20)) AS nvtx_paths,
       string_agg(DISTINCT phase, ' and ' ORDER BY phase) AS stage
     FROM (${launchSql}) GROUP BY key ORDER BY sum(duration_ns) DESC NULLS LAST, min(id), key`,
  );
  const means = await database.query<{
    key: number;
    metric: string;
    value: number;
    n: number;
    sd: number | null;
  }>(
    `WITH launch AS MATERIALIZED (${launchSql})
     SELECT launch.key, c.metric, avg(c.value) AS value, count(c.value) AS n, stddev_samp(c.value) AS sd
     FROM counters c JOIN launch ON launch.execution_id = c.execution_id AND launch.capture_id = c.capture_id
       AND launch.kernel_name = c.kernel_name AND launch.launch_ordinal = c.launch_ordinal
       AND launch.pid IS NOT DISTINCT FROM c.pid AND launch.device IS NOT DISTINCT FROM c.device
     WHERE regexp_matches(c.metric, $1) AND c.value IS NOT NULL
     GROUP BY launch.key, c.metric`,
    [usedMetrics],
  );
  const groups = rows.map(({ nvtx_paths, grid, block, ...row }) => ({
    ...row,
    grid: grid || null,
    block: block || null,
    nvtx_paths: (JSON.parse(nvtx_paths ?? '[]') as (string | null)[]).filter((path) => path !== null).sort(),
    metrics: new Map<string, Mean>(),
  }));
  const byKey = new Map(groups.map((group) => [group.key, group]));
  for (const { key, metric, value, n, sd } of means) {
    byKey.get(key)!.metrics.set(metric, { value, n, sd });
  }
  return groups;
}

/** Metrics that the analysis reads, out of about 2000 in a full set. */
const usedMetrics = `^(${[
  'gpu__time_duration\\.sum',
  '(sm__throughput|gpu__compute_memory_throughput|gpu__dram_throughput|dram__throughput)\\.avg\\.pct_of_peak_sustained_elapsed',
  'sm__warps_active\\.avg\\.pct_of_peak_sustained_active|sm__maximum_warps_per_active_cycle_pct',
  'launch__(occupancy_limit_\\w+|registers_per_thread|shared_mem_per_block(_driver|_static|_dynamic)?|waves_per_multiprocessor)',
  '(l1tex|lts)__t_sector_hit_rate\\.pct',
  'sm__pipe_\\w+_cycles_active\\.avg\\.pct_of_peak_sustained_elapsed',
  'sm__inst_executed_pipe_tensor\\.avg\\.pct_of_peak_sustained_active',
  'smsp__average_warps_issue_stalled_\\w+_per_issue_active\\.ratio|smsp__average_warp_latency_per_inst_issued\\.ratio',
  'smsp__pcsamp_warps_issue_stalled_\\w+',
  'sm__ops_path_tensor_\\w+\\.sum(\\.peak_sustained)?',
  'smsp__sass_thread_inst_executed_op_[dfh](add|mul|fma)_pred_on\\.sum(\\.per_cycle_elapsed)?',
  'sm__sass_thread_inst_executed_op_ffma_pred_on\\.sum\\.peak_sustained|derived__sm__sass_thread_inst_executed_op_[dh]fma_pred_on_x[24]',
  '(sm|smsp|dram)__cycles_elapsed\\.avg\\.per_second',
  'dram__bytes(_read|_write)?\\.sum|dram__bytes\\.sum\\.(per_second|peak_sustained)',
  'device__attribute_compute_capability_major',
].join('|')})$`;

/** The first 2000 launches in profiling order, each with the index of its group in `groups`. */
export async function readLaunches(
  database: SessionDatabase,
  groups: readonly { key: number }[],
): Promise<{ launches: CountersResult['launches']; total: number }> {
  const indexByKey = new Map(groups.map(({ key }, i) => [key, i]));
  const rows = await database.query<{
    key: number;
    launch_ordinal: number;
    nvtx_path: string | null;
    duration_ns: number | null;
    total: number;
  }>(
    `SELECT key, launch_ordinal, nvtx_path, duration_ns, count(*) OVER () AS total FROM (${launchSql})
     ORDER BY execution_id, capture_id, id, kernel_name, launch_ordinal LIMIT 2000`,
  );
  return {
    launches: rows.map(({ key, total: _total, ...row }) => ({ kernel: indexByKey.get(key)!, ...row })),
    total: rows[0]?.total ?? 0,
  };
}

export async function readDevices(database: SessionDatabase): Promise<CountersResult['devices']> {
  return database.query(
    `SELECT device, CAST(max(value) FILTER (WHERE metric = 'device__attribute_compute_capability_major') AS BIGINT) || '.' ||
       CAST(max(value) FILTER (WHERE metric = 'device__attribute_compute_capability_minor') AS BIGINT) AS compute_capability,
       max(value) FILTER (WHERE metric IN ('device__attribute_multiprocessor_count', 'launch__sm_count')) AS sm_count
     FROM counters WHERE starts_with(metric, 'device__attribute_') OR metric = 'launch__sm_count' GROUP BY device ORDER BY device`,
  );
}
