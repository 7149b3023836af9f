import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { Nvml, NvmlSample } from '../nvml.js';
import { monotonicNs } from '../record-writer.js';

export interface DeviceSampler {
  /** Takes a last sample and gives the rows; t_ns is CLOCK_MONOTONIC. */
  stop(): { telemetry: Row<'telemetry'>[]; memory: Row<'memory'>[]; issues: Issue[] };
}

/** The same names that importers of nvidia-smi logs write. */
const metrics: [field: keyof NvmlSample, metric: string][] = [
  ['utilizationPercent', 'utilization_percent'],
  ['memoryUtilizationPercent', 'memory_utilization_percent'],
  ['powerW', 'power_w'],
  ['smClockMhz', 'sm_clock_mhz'],
  ['memoryClockMhz', 'memory_clock_mhz'],
  ['temperatureC', 'temperature_c'],
  ['throttleBits', 'throttle_bits'],
  ['computeProcesses', 'compute_processes'],
];

/**
 * Samples every GPU until stop(), at least 10 times a second. The timer does not keep this process alive.
 * @param hz 20 unless told
 */
export function startDeviceSampler(
  nvml: Pick<Nvml, 'devices'>,
  keys: Pick<Row<'telemetry'>, 'execution_id' | 'capture_id' | 'host'>,
  hz = 20,
): DeviceSampler {
  const periodMs = 1000 / Math.max(10, hz);
  const telemetry: Row<'telemetry'>[] = [];
  const memory: Row<'memory'>[] = [];
  const common = { ...keys, pid: null, rank: 0 };
  let samples = 0;
  const began = monotonicNs();

  function take(): void {
    samples++;
    for (const device of nvml.devices) {
      const sample = device.sample();
      const t_ns = monotonicNs();
      const scope = `gpu${device.index}`;
      for (const [field, metric] of metrics) {
        const value = sample[field];
        if (value !== null) telemetry.push({ ...common, t_ns, scope, metric, value });
      }
      if (sample.memoryUsedBytes !== null) {
        const bytes = sample.memoryUsedBytes;
        memory.push({
          ...common,
          device: device.index,
          t_ns,
          kind: 'used',
          bytes,
          point: null,
          source: 'NVML',
        });
      }
    }
  }

  take();
  const timer = setInterval(take, periodMs);
  timer.unref();

  return {
    stop() {
      clearInterval(timer);
      take();
      const seconds = (monotonicNs() - began) / 1e9;
      const issues: Issue[] = [];
      if (seconds > 1 && samples / seconds < 10) {
        const rate = (samples / seconds).toFixed(1);
        const text = `GPUs were sampled ${rate} times a second instead of ${hz}: this machine was too busy.`;
        issues.push({ code: 'telemetry_sparse', severity: 'warning', text });
      }
      for (const device of nvml.devices) {
        const fields = Object.entries(device.missing).filter(([field]) =>
          metrics.some(([one]) => one === field),
        );
        if (fields.length === 0) continue;
        const text = `gpu${device.index} does not tell ${fields.map(([field, code]) => `${field} (${code})`).join(', ')}.`;
        issues.push({ code: 'telemetry_missing', severity: 'info', text, count: fields.length });
      }
      return { telemetry, memory, issues };
    },
  };
}
