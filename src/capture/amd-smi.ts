import { amount, valueAtPath, bytes, fieldOf, type Json, quantity, textOf } from './amd-json.js';
import {
  emptyGpuDetails,
  emptyGpuSample,
  type GpuDetails,
  type GpuProcess,
  type GpuSample,
} from './telemetry-gpu.js';

/** One GPU in the output of a tool. */
export interface AmdReading {
  index: number;
  sample: GpuSample;
  details: GpuDetails;
  memoryTotalBytes: number | null;
  /** Counter. */
  energyJ: number | null;
}

/** A list of GPUs, or `{"gpu_data": […]}` from ROCm 6.4 on. */
function gpuList(document: Json): Json[] {
  const list = fieldOf(document, 'gpu_data') ?? document;
  return Array.isArray(list) ? list : [];
}

const indexOf = (gpu: Json) => amount(fieldOf(gpu, 'gpu')) ?? 0;

/**
 * Reads `amd-smi metric --json`. Power is the socket power that the firmware reports (MI300: current, older: average).
 * Temperature is the hotspot (junction) temperature: every board reports it, and throttling depends on it. The clock is
 * the clock of the fastest die.
 */
export function amdSmiMetric(document: Json): AmdReading[] {
  return gpuList(document).map((gpu) => {
    const sample = emptyGpuSample();
    const details = emptyGpuDetails();
    sample.utilizationPercent = amount(valueAtPath(gpu, 'usage', 'gfx_activity'));
    sample.memoryUtilizationPercent = amount(valueAtPath(gpu, 'usage', 'umc_activity'));
    sample.powerW =
      amount(valueAtPath(gpu, 'power', 'socket_power')) ??
      amount(valueAtPath(gpu, 'power', 'average_socket_power'));
    sample.smClockMhz = fastest(fieldOf(gpu, 'clock'), /^gfx_\d+$/);
    sample.memoryClockMhz = fastest(fieldOf(gpu, 'clock'), /^mem_\d+$/);
    sample.temperatureC =
      amount(valueAtPath(gpu, 'temperature', 'hotspot')) ?? amount(valueAtPath(gpu, 'temperature', 'edge'));
    sample.memoryUsedBytes = bytes(valueAtPath(gpu, 'mem_usage', 'used_vram'));
    sample.memoryFreeBytes = bytes(valueAtPath(gpu, 'mem_usage', 'free_vram'));
    sample.throttleBits =
      violations(fieldOf(gpu, 'throttle')) ?? throttleStatus(valueAtPath(gpu, 'power', 'throttle_status'));
    details.memoryTemperatureC = amount(valueAtPath(gpu, 'temperature', 'mem'));
    details.fanPercent = amount(valueAtPath(gpu, 'fan', 'usage'));
    details.pcieLinkWidth = amount(valueAtPath(gpu, 'pcie', 'width'));
    details.pcieLinkGen = generations[amount(valueAtPath(gpu, 'pcie', 'speed')) ?? 0] ?? null;
    return {
      index: indexOf(gpu),
      sample,
      details,
      memoryTotalBytes: bytes(valueAtPath(gpu, 'mem_usage', 'total_vram')),
      energyJ: joules(valueAtPath(gpu, 'energy', 'total_energy_consumption')),
    };
  });
}

function joules(value: Json): number | null {
  const read = quantity(value);
  if (!read) return null;
  const factor = { J: 1, KJ: 1000, MJ: 1e6, '': 1 }[read.unit.toUpperCase()];
  // A counter of 0.0 means that the board has none (Radeon).
  return factor === undefined || read.value === 0 ? null : read.value * factor;
}

/** `"clock": {"gfx_0": {"clk": {"value": 132, "unit": "MHz"}, …}, "mem_0": …}`; dies without a value are "N/A". */
function fastest(clocks: Json, name: RegExp): number | null {
  if (typeof clocks !== 'object' || clocks === null) return null;
  const reported = Object.entries(clocks)
    .filter(([key]) => name.test(key))
    .map(([, clock]) => amount(fieldOf(clock, 'clk')))
    .filter((mhz) => mhz !== null);
  return reported.length === 0 ? null : Math.max(...reported);
}

/** PCIe generation by GT/s per lane. */
const generations: Record<number, number> = { 2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6 };

/** NVML's bits for the violations in AMD's firmware: power limit, external brake, heat of socket, regulators and memory. */
const violationBits: Record<string, number> = {
  ppt_violation_status: 0x4,
  prochot_violation_status: 0x80,
  socket_thermal_violation_status: 0x40,
  vr_thermal_violation_status: 0x40,
  hbm_thermal_violation_status: 0x40,
};

/** MI300 and newer: `"throttle": {"ppt_violation_status": "NOT ACTIVE", …}`. Null if none is reported. */
function violations(throttle: Json): number | null {
  let bits: number | null = null;
  for (const [name, bit] of Object.entries(violationBits)) {
    const reported = fieldOf(throttle, name);
    const status = textOf(reported) ?? textOf(fieldOf(reported, 'value'));
    if (status === null) continue;
    bits = (bits ?? 0) | (/^ACTIVE|^TRUE/i.test(status) ? bit : 0);
  }
  return bits;
}

/** Radeon: THROTTLED without a reason is NVML's "hardware slowdown". */
function throttleStatus(status: Json): number | null {
  const text = textOf(status);
  if (text === null) return null;
  return text.toUpperCase() === 'THROTTLED' ? 0x8 : 0;
}

interface AmdStatic {
  index: number;
  name: string | null;
  powerLimitW: number | null;
}

/** `amd-smi static --json`: the name and the power limit in force. */
export function amdSmiStatic(document: Json): AmdStatic[] {
  return gpuList(document).map((gpu) => ({
    index: indexOf(gpu),
    name:
      textOf(valueAtPath(gpu, 'asic', 'market_name')) ?? textOf(valueAtPath(gpu, 'board', 'product_name')),
    powerLimitW:
      amount(valueAtPath(gpu, 'limit', 'socket_power')) ??
      amount(valueAtPath(gpu, 'limit', 'ppt0', 'socket_power_limit')) ??
      amount(valueAtPath(gpu, 'limit', 'max_power')),
  }));
}

/** `amd-smi process --json`: processes by GPU; `"process_info": "No running processes detected"` is an empty list. */
export function amdSmiProcesses(document: Json): Map<number, GpuProcess[]> {
  const processesByGpu = new Map<number, GpuProcess[]>();
  for (const gpu of gpuList(document)) {
    const list = fieldOf(gpu, 'process_list');
    const processes = (Array.isArray(list) ? list : []).flatMap((entry: Json): GpuProcess[] => {
      const info = fieldOf(entry, 'process_info') ?? entry;
      const pid = amount(fieldOf(info, 'pid'));
      if (pid === null) return [];
      const vram =
        valueAtPath(info, 'memory_usage', 'vram_mem') ??
        fieldOf(info, 'vram_mem') ??
        fieldOf(info, 'mem_usage');
      return [{ pid, usedBytes: bytes(vram, 'B') }];
    });
    processesByGpu.set(indexOf(gpu), processes);
  }
  return processesByGpu;
}
