/** Labels of sampled metrics of GPUs and host, in display order; the same on every surface. */
const labels: Record<string, string> = {
  utilization_percent: 'utilization',
  memory_utilization_percent: 'memory controller busy',
  memory_used_bytes: 'memory in use',
  power_w: 'power (1 s mean)',
  power_instant_w: 'power (instant)',
  sm_clock_mhz: 'SM clock',
  memory_clock_mhz: 'memory clock',
  temperature_c: 'temperature',
  memory_temperature_c: 'memory temperature',
  pcie_tx_mb_per_s: 'PCIe out',
  pcie_rx_mb_per_s: 'PCIe in',
  nvlink_tx_mb_per_s: 'NVLink out',
  nvlink_rx_mb_per_s: 'NVLink in',
  pcie_tx_percent: 'PCIe out, of its peak',
  pcie_rx_percent: 'PCIe in, of its peak',
  nvlink_tx_percent: 'NVLink out, of its peak',
  nvlink_rx_percent: 'NVLink in, of its peak',
  network_tx_mb_per_s: 'network out',
  network_rx_mb_per_s: 'network in',
  fan_speed_percent: 'fan',
  cores_busy: 'cores busy',
  steal_percent: 'CPU steal',
  cpu_pressure_some_percent: 'CPU pressure (some)',
  memory_pressure_some_percent: 'memory pressure (some)',
  memory_pressure_full_percent: 'memory pressure (full)',
  io_pressure_some_percent: 'I/O pressure (some)',
  io_pressure_full_percent: 'I/O pressure (full)',
  rss_bytes: 'resident memory',
  clock_mhz: 'core clock',
};

/** Sampled too, but used by analyses rather than shown. */
const hiddenLabels: Record<string, string> = {
  run_delay_percent: 'main thread waited for a core',
  on_core_percent: 'main thread on a core',
  preempted_percent: 'launching thread lost its core',
  compute_processes: 'processes on the GPU',
  throttle_bits: 'throttle reasons, bits (1: idle)',
};

const scopes: Record<string, string> = {
  host: 'host',
  process: 'program',
  other_processes: 'other processes',
  inferscope: 'inferscope',
};

export function metricLabel(metric: string): string {
  const unitEnd = units.find(([end]) => end.startsWith('_') && metric.endsWith(end))?.[0] ?? '';
  return (
    labels[metric] ??
    hiddenLabels[metric] ??
    metric.slice(0, metric.length - unitEnd.length).replaceAll('_', ' ')
  );
}
/** "GPU 0" of gpu0, "GPU 0 MIG 1" of gpu0.mig1, "thread 9" of thread9. */
export const scopeLabel = (scope: string): string =>
  scopes[scope] ??
  scope
    .replace(/^gpu(?=\d)/, 'GPU ')
    .replace(/\.mig(?=\d)/, ' MIG ')
    .replace(/^thread(?=\d)/, 'thread ');

/** Metrics with a label, in display order; the others are only in documents. */
export function labeledMetrics<M extends { metric: string }>(metrics: readonly M[]): M[] {
  return Object.keys(labels).flatMap((name) => metrics.filter(({ metric }) => metric === name));
}

/** Whether tables and charts show a metric; the others are for analyses. */
export const isShownMetric = (metric: string): boolean => !(metric in hiddenLabels);

/** Suffixes of the ids of sampled metrics, and their units. */
const units: readonly [end: string, unit: string][] = [
  ['_percent', '%'],
  ['_bytes', 'B'],
  ['_mb_per_s', 'MB/s'],
  ['_mhz', 'MHz'],
  ['_c', '°C'],
  ['_w', 'W'],
  ['_j', 'J'],
  ['cores_busy', 'cores'],
  ['compute_processes', 'processes'],
  ['throttle_bits', 'bit field'],
];

/** MHz, W, %; '' for a metric without a unit. */
export const metricUnit = (metric: string): string => units.find(([end]) => metric.endsWith(end))?.[1] ?? '';

/** Whether a scope is a GPU or an instance of one, not the host. */
export const isGpuScope = (scope: string): boolean => scope.startsWith('gpu');

export const sampledMetrics: readonly { id: string; label: string; unit: string }[] = Object.entries({
  ...labels,
  ...hiddenLabels,
}).map(([id, label]) => ({ id, label, unit: metricUnit(id) }));
