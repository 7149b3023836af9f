import type { Issue } from '../../model/document.js';
import { sentence, quantity } from '../../vocabulary/sentence-template.js';
import type { Row } from '../../model/tables.js';
import { monotonicNs } from '../../model/clock.js';
import type { GpuDetails, GpuDevice, GpuProcess, GpuSample } from '../telemetry-gpu.js';
import { startTicks } from '../telemetry-ticks.js';

export interface DeviceRows {
  telemetry: Row<'telemetry'>[];
  memory: Row<'memory'>[];
}

/** Values of one GPU in a live view. */
export interface LatestDevice {
  scope: string;
  device: GpuDevice;
  sample: Readonly<GpuSample>;
  details: GpuDetails | null;
}

interface DeviceSampler {
  /** The rows since the last call, which are then released: for recordings of any length. */
  drain(): DeviceRows;
  /** The latest values, without reading anything. */
  latest(): LatestDevice[];
  /** Cost of one sample of all GPUs for this process, microseconds. */
  costUs(): { mean: number; max: number };
  /** Takes a last sample and returns the rows that were not drained; t_ns is CLOCK_MONOTONIC. */
  stop(): DeviceRows & { issues: Issue[] };
}

/** The same names that importers of nvidia-smi logs write. */
const metrics: [field: keyof GpuSample, metric: string][] = [
  ['utilizationPercent', 'utilization_percent'],
  ['memoryUtilizationPercent', 'memory_utilization_percent'],
  ['powerW', 'power_w'],
  ['powerInstantW', 'power_instant_w'],
  ['smClockMhz', 'sm_clock_mhz'],
  ['memoryClockMhz', 'memory_clock_mhz'],
  ['temperatureC', 'temperature_c'],
  ['throttleBits', 'throttle_bits'],
  ['computeProcesses', 'compute_processes'],
];

const detailMetrics: [field: Exclude<keyof GpuDetails, 'processes' | 'pcieWindow'>, metric: string][] = [
  ['pcieTxMbPerS', 'pcie_tx_mb_per_s'],
  ['pcieRxMbPerS', 'pcie_rx_mb_per_s'],
  ['pcieLinkGen', 'pcie_link_gen_current'],
  ['pcieLinkWidth', 'pcie_link_width_current'],
  ['nvlinkTxMbPerS', 'nvlink_tx_mb_per_s'],
  ['nvlinkRxMbPerS', 'nvlink_rx_mb_per_s'],
  ['fanPercent', 'fan_speed_percent'],
  ['memoryTemperatureC', 'memory_temperature_c'],
  ['powerLimitW', 'power_limit_enforced_w'],
];

/** A counter: only differences between readings matter, and each reading takes 3 ms. */
const energyPeriodNs = 1e9;

/** PCIe throughput takes 20 ms per direction, and process lists are slow: never at the sampling rate. */
const detailPeriodNs = 1e9;

/**
 * Samples every GPU until stop(); the energy counter at start and end, and once a second on another thread. The timer
 * does not keep this process alive.
 * @param hz default: 20
 * @param withDetails also PCIe and NVLink traffic, link width, fan, memory temperature, power limit and processes, once
 *   a second; and the size of memory and the highest clock, once
 */
export function startDeviceSampler(
  gpus: { devices: readonly GpuDevice[] },
  keys: Pick<Row<'telemetry'>, 'execution_id' | 'capture_id' | 'host'>,
  hz = 20,
  withDetails = false,
): DeviceSampler {
  const common = { ...keys, pid: null, rank: 0 };
  const sources = gpus.devices.flatMap((device) => [
    { scope: `gpu${device.index}`, device, instance: false },
    ...device.migDevices.map((part) => ({
      scope: `gpu${device.index}.mig${part.index}`,
      device: part,
      instance: true,
    })),
  ]);
  const latest = sources.map(({ scope, device }): LatestDevice => ({
    scope,
    device,
    sample: device.sample(),
    details: null,
  }));
  let rows: DeviceRows = { telemetry: [], memory: [] };
  const lastNs = sources.map(() => -1);
  let samples = 0;
  let costSumNs = 0;
  let costMaxNs = 0;
  const startNs = monotonicNs();
  let isReadingDetails = false;
  let stopped = false;

  function addTelemetry(scope: string, t_ns: number, metric: string, value: number | null): void {
    if (value !== null) rows.telemetry.push({ ...common, t_ns, scope, metric, value });
  }

  function addMemory(device: number, t_ns: number, kind: string, bytes: number, pid: number | null): void {
    const place = { device, t_ns, kind, bytes, point: null, source: 'GPU driver' };
    rows.memory.push({ ...common, ...place, pid });
  }

  function takeSample(): void {
    const sampleStartNs = monotonicNs();
    samples++;
    sources.forEach(({ scope, device, instance }, index) => {
      const sample = device.sample();
      latest[index]!.sample = sample;
      const t_ns = device.sampledNs ?? monotonicNs();
      // AMD's tools are read every two seconds or so: a repeated reading is not a sample.
      if (t_ns === lastNs[index]) return;
      lastNs[index] = t_ns;
      for (const [field, metric] of metrics) addTelemetry(scope, t_ns, metric, sample[field]);
      // An instance's memory is part of its GPU's: it would be counted twice in the table `memory`.
      if (instance) addTelemetry(scope, t_ns, 'memory_used_bytes', sample.memoryUsedBytes);
      else if (sample.memoryUsedBytes !== null)
        addMemory(device.index, t_ns, 'used', sample.memoryUsedBytes, null);
    });
    const costNs = monotonicNs() - sampleStartNs;
    costSumNs += costNs;
    costMaxNs = Math.max(costMaxNs, costNs);
  }

  function takeEnergy(): void {
    for (const { scope, device, instance } of sources)
      if (!instance) addTelemetry(scope, device.sampledNs ?? monotonicNs(), 'energy_j', device.energyJ());
  }

  async function takeEnergyLater(): Promise<void> {
    for (const { scope, device, instance } of sources) {
      if (instance) continue;
      const joules = await device.energyLaterJ();
      if (stopped) return;
      addTelemetry(scope, device.sampledNs ?? monotonicNs(), 'energy_j', joules);
    }
  }

  async function takeDetails(): Promise<void> {
    if (isReadingDetails) return;
    isReadingDetails = true;
    for (const [index, { scope, device, instance }] of sources.entries()) {
      const details = await device.details();
      // After stop() rows are no longer collected, and the library may be closed before the next device.
      if (stopped) return;
      latest[index]!.details = details;
      const t_ns = monotonicNs();
      for (const [field, metric] of detailMetrics) addTelemetry(scope, t_ns, metric, details[field]);
      if (!instance) addProcessRows(device, t_ns, details.processes ?? []);
    }
    isReadingDetails = false;
  }

  function addProcessRows(device: GpuDevice, t_ns: number, processes: GpuProcess[]): void {
    for (const { pid, usedBytes } of processes)
      if (usedBytes !== null) addMemory(device.index, t_ns, 'process', usedBytes, pid);
  }

  takeSample();
  takeEnergy();
  if (withDetails) {
    for (const { scope, device } of sources) {
      addTelemetry(scope, startNs, 'memory_total_bytes', device.memoryTotalBytes);
      addTelemetry(scope, startNs, 'max_sm_clock_mhz', device.maxSmClockMhz);
    }
    void takeDetails();
  }
  const ticks = startTicks(1e9 / hz, startNs, takeSample);
  const energyTicks = startTicks(energyPeriodNs, startNs, () => void takeEnergyLater());
  const detailTicks = withDetails ? startTicks(detailPeriodNs, startNs, () => void takeDetails()) : null;

  function drain(): DeviceRows {
    const drained = rows;
    rows = { telemetry: [], memory: [] };
    return drained;
  }

  return {
    drain,
    latest: () => latest,
    costUs: () => ({ mean: costSumNs / samples / 1000, max: costMaxNs / 1000 }),
    stop() {
      ticks.stop();
      energyTicks.stop();
      detailTicks?.stop();
      stopped = true;
      takeSample();
      takeEnergy();
      const seconds = (monotonicNs() - startNs) / 1e9;
      const issues: Issue[] = [];
      if (seconds > 1 && samples / seconds < hz / 2) {
        const text = sentence`GPUs were sampled at ${quantity(samples / seconds, 'Hz')} instead of ${quantity(hz, 'Hz')}: this machine was too busy.`;
        issues.push({ code: 'telemetry_sparse', severity: 'warning', ...text });
      }
      const names = [['energyJ'], ['memoryUsedBytes'], ...metrics, ...(withDetails ? detailMetrics : [])];
      for (const { scope, device } of sources) {
        const fields = Object.entries(device.missing).filter(([field]) =>
          names.some(([name]) => name === field),
        );
        if (fields.length === 0) continue;
        const text = `${scope} does not report ${fields.map(([field, code]) => `${field} (${code})`).join(', ')}.`;
        issues.push({ code: 'telemetry_missing', severity: 'info', text, count: fields.length });
      }
      return { ...drain(), issues };
    },
  };
}
