import { mean } from '../../model/statistics.js';
import process from 'node:process';
import { limitingBits, throttleReasonNames } from '../../model/throttle-reasons.js';
import type { Row } from '../../model/tables.js';

export interface Conditions {
  sm_clock_mhz: number | null;
  power_w: number | null;
  throttled_by: string[];
}

/** `t_ns` and the window use the same clock (CLOCK_MONOTONIC). */
export function conditionsWithin(
  telemetry: readonly Row<'telemetry'>[],
  scope: string,
  { fromNs, toNs }: { fromNs: number; toNs: number },
): Conditions {
  const within = telemetry.filter(
    (row) => row.scope === scope && row.t_ns! >= fromNs && row.t_ns! <= toNs && row.value !== null,
  );
  const values = (metric: string) =>
    within.filter((row) => row.metric === metric).map((row) => row.value as number);
  const bits = values('throttle_bits').reduce((all, value) => all | value, 0);
  return {
    sm_clock_mhz: meanOrNull(values('sm_clock_mhz')),
    // NVML's power_w is the mean of the last second on Ampere and newer: it belongs to this case only if the case lasted that long.
    power_w:
      meanOrNull(values('power_instant_w')) ?? (toNs - fromNs > 1e9 ? meanOrNull(values('power_w')) : null),
    throttled_by: throttleReasonNames(bits & limitingBits),
  };
}

function meanOrNull(values: number[]): number | null {
  return values.length === 0 ? null : mean(values);
}

/**
 * Index of the driver (as `nvidia-smi` counts) of PyTorch's GPU `index`: CUDA_VISIBLE_DEVICES selects and reorders by
 * number or by UUID. Without an entry, or with an unknown one (a MIG instance), both are equal. GPUs of different models
 * need CUDA_DEVICE_ORDER=PCI_BUS_ID: by default CUDA counts the fastest first.
 * @param devices all GPUs of the driver, but not those that fell off the bus
 */
export function driverIndex(
  index: number,
  devices: readonly { index: number; uuid: string | null }[],
  visible = process.env['CUDA_VISIBLE_DEVICES'] ?? process.env['HIP_VISIBLE_DEVICES'],
): number {
  const entry = visible?.split(',')[index]?.trim();
  if (entry === undefined || entry === '') return index;
  if (/^\d+$/.test(entry)) return Number(entry);
  return devices.find(({ uuid }) => uuid?.startsWith(entry))?.index ?? index;
}
