import type { InMemoryEvents } from './events.js';

/** One device of a rank. */
export interface DeviceOfRank {
  /** For each combination, whether it belongs to this device. */
  kernels: Uint8Array;
  copies: Uint8Array;
}

/** The devices of all ranks, by rank and number; missing values are −1. */
export function devicesOfRanks(kernels: InMemoryEvents, copies: InMemoryEvents): DeviceOfRank[] {
  const kernelKeys = deviceKeys(kernels);
  const copyKeys = deviceKeys(copies);
  const keys = new Map([...kernelKeys, ...copyKeys].map((device) => [device.key, device]));
  const devices = [...keys.values()].sort((a, b) => a.rank - b.rank || a.device - b.device);
  return devices.map(({ key }) => ({
    kernels: Uint8Array.from(kernelKeys, (device) => Number(device.key === key)),
    copies: Uint8Array.from(copyKeys, (device) => Number(device.key === key)),
  }));
}

/** Key of a device within the capture. */
function deviceKeys({ shapes }: InMemoryEvents): { rank: number; device: number; key: string }[] {
  const ranks = shapes['rank'] ?? new Float64Array();
  return Array.from(ranks, (value, code) => {
    const rank = Number.isNaN(value) ? -1 : value;
    const device = shapes['device']![code]!;
    return { rank, device: Number.isNaN(device) ? -1 : device, key: `${rank},${device}` };
  });
}

/** End of the rows that start at the same time as row `from`. */
export function endOfEqualStarts({ rows, start_ns: start }: InMemoryEvents, from: number): number {
  let to = from + 1;
  while (to < rows && start[to] === start[from]) to++;
  return to;
}

/** Order of kernels that start together: compute first, then communication. */
export function byPriority(
  { shape }: InMemoryEvents,
  isOnDevice: Uint8Array,
  priority: Uint8Array,
  from: number,
  to: number,
): number[] {
  const rows: number[] = [];
  for (let row = from; row < to; row++) if (isOnDevice[shape[row]!] === 1) rows.push(row);
  return rows.sort((a, b) => priority[shape[a]!]! - priority[shape[b]!]! || a - b);
}
