/**
 * The details page names metrics by section and label. Known labels are mapped to their metric, so that a details page
 * alone is enough for the analysis; ncu-csv.test.ts checks the pairs against a raw page of the same run.
 */
const sections: Record<string, Record<string, string>> = {
  'GPU Speed Of Light Throughput': {
    'DRAM Frequency': 'dram__cycles_elapsed.avg.per_second',
    'SM Frequency': 'gpc__cycles_elapsed.avg.per_second',
    'Elapsed Cycles': 'gpc__cycles_elapsed.max',
    'Memory Throughput': 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed',
    'DRAM Throughput': 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
    Duration: 'gpu__time_duration.sum',
    'L1/TEX Cache Throughput': 'l1tex__throughput.avg.pct_of_peak_sustained_active',
    'L2 Cache Throughput': 'lts__throughput.avg.pct_of_peak_sustained_elapsed',
    'SM Active Cycles': 'sm__cycles_active.avg',
    'Compute (SM) Throughput': 'sm__throughput.avg.pct_of_peak_sustained_elapsed',
  },
  'Compute Workload Analysis': {
    'Executed Ipc Active': 'sm__inst_executed.avg.per_cycle_active',
    'Executed Ipc Elapsed': 'sm__inst_executed.avg.per_cycle_elapsed',
    'Issued Ipc Active': 'sm__inst_issued.avg.per_cycle_active',
  },
  'Memory Workload Analysis': {
    'Memory Throughput': 'dram__bytes.sum.per_second',
    'Mem Busy': 'gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed',
    'Max Bandwidth': 'gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed',
    'L1/TEX Hit Rate': 'l1tex__t_sector_hit_rate.pct',
    'L2 Hit Rate': 'lts__t_sector_hit_rate.pct',
    'Mem Pipes Busy': 'sm__memory_throughput.avg.pct_of_peak_sustained_elapsed',
  },
  'Scheduler Statistics': {
    'One or More Eligible': 'smsp__issue_active.avg.pct_of_peak_sustained_active',
    'Issued Warp Per Scheduler': 'smsp__issue_active.avg.per_cycle_active',
    'No Eligible': 'smsp__issue_inst0.avg.pct_of_peak_sustained_active',
    'Active Warps Per Scheduler': 'smsp__warps_active.avg.per_cycle_active',
    'Eligible Warps Per Scheduler': 'smsp__warps_eligible.avg.per_cycle_active',
  },
  'Warp State Statistics': {
    'Warp Cycles Per Issued Instruction': 'smsp__average_warp_latency_per_inst_issued.ratio',
    'Warp Cycles Per Executed Instruction': 'smsp__average_warps_active_per_inst_executed.ratio',
    'Avg. Active Threads Per Warp': 'smsp__thread_inst_executed_per_inst_executed.ratio',
    'Avg. Not Predicated Off Threads Per Warp': 'smsp__thread_inst_executed_pred_on_per_inst_executed.ratio',
  },
  'Instruction Statistics': {
    'Avg. Executed Instructions Per Scheduler': 'smsp__inst_executed.avg',
    'Executed Instructions': 'smsp__inst_executed.sum',
    'Avg. Issued Instructions Per Scheduler': 'smsp__inst_issued.avg',
    'Issued Instructions': 'smsp__inst_issued.sum',
  },
  'Launch Statistics': {
    'Block Size': 'launch__block_size',
    'Cluster Size': 'launch__cluster_size',
    'Grid Size': 'launch__grid_size',
    'Registers Per Thread': 'launch__registers_per_thread',
    'Shared Memory Configuration Size': 'launch__shared_mem_config_size',
    'Driver Shared Memory Per Block': 'launch__shared_mem_per_block_driver',
    'Dynamic Shared Memory Per Block': 'launch__shared_mem_per_block_dynamic',
    'Static Shared Memory Per Block': 'launch__shared_mem_per_block_static',
    '# SMs': 'launch__sm_count',
    Threads: 'launch__thread_count',
    'Waves Per SM': 'launch__waves_per_multiprocessor',
  },
  Occupancy: {
    'Max Active Clusters': 'launch__cluster_max_active',
    'Max Cluster Size': 'launch__cluster_max_potential_size',
    'Overall GPU Occupancy': 'launch__occupancy_cluster_gpu_pct',
    'Cluster Occupancy': 'launch__occupancy_cluster_pct',
    'Block Limit Barriers': 'launch__occupancy_limit_barriers',
    'Block Limit SM': 'launch__occupancy_limit_blocks',
    'Block Limit Registers': 'launch__occupancy_limit_registers',
    'Block Limit Shared Mem': 'launch__occupancy_limit_shared_mem',
    'Block Limit Warps': 'launch__occupancy_limit_warps',
    'Theoretical Active Warps per SM': 'sm__maximum_warps_avg_per_active_cycle',
    'Theoretical Occupancy': 'sm__maximum_warps_per_active_cycle_pct',
    'Achieved Occupancy': 'sm__warps_active.avg.pct_of_peak_sustained_active',
    'Achieved Active Warps Per SM': 'sm__warps_active.avg.per_cycle_active',
  },
  'Source Counters': {
    'Branch Efficiency': 'smsp__sass_average_branch_targets_threads_uniform.pct',
    'Branch Instructions': 'smsp__inst_executed_op_branch.sum',
    'Avg. Divergent Branches': 'smsp__sass_branch_targets_threads_divergent.avg',
  },
};

/** Metrics requested by name (`--metrics …`) keep it; an unmapped label becomes "section: label". */
export function detailsMetric(section: string, label: string): string {
  const metric = sections[section]?.[label];
  if (metric) return metric;
  return /^[a-z][\w.]*__[\w.]+$/.test(label) || section === 'Command line profiler metrics'
    ? label
    : `${section}: ${label}`;
}
