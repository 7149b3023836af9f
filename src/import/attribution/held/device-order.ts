import type { HeldEvents } from './held-trace.js';

/** One device of one rank: its activities in order of start. Kernels have their row as number, copies −1 − row. */
export interface DeviceActivities {
  activities: Int32Array;
}

/** Key of a device within the capture; missing parts count as −1. */
function deviceKeys({ shapes }: HeldEvents): { rank: number; device: number; key: string }[] {
  const ranks = shapes['rank'] ?? new Float64Array();
  return Array.from(ranks, (value, code) => {
    const rank = Number.isNaN(value) ? -1 : value;
    const device = shapes['device']![code]!;
    return { rank, device: Number.isNaN(device) ? -1 : device, key: `${rank},${device}` };
  });
}

/**
 * @param priority of each combination of kernels, for kernels that begin at the same instant
 * @returns devices by rank and number
 */
export function byDevice(kernels: HeldEvents, copies: HeldEvents, priority: Uint8Array): DeviceActivities[] {
  const ofKernel = deviceKeys(kernels);
  const ofCopy = deviceKeys(copies);
  const keys = new Map([...ofKernel, ...ofCopy].map((one) => [one.key, one]));
  const devices = [...keys.values()].sort((a, b) => a.rank - b.rank || a.device - b.device);
  return devices.map(({ key }) => {
    const mine = (events: HeldEvents, of: { key: string }[]): Int32Array => {
      const wanted = Uint8Array.from(of, (one) => Number(one.key === key));
      const rows = new Int32Array(events.rows);
      let count = 0;
      for (let i = 0; i < events.rows; i++) if (wanted[events.shape[i]!]) rows[count++] = i;
      return rows.subarray(0, count);
    };
    return { activities: merged(kernels, copies, mine(kernels, ofKernel), mine(copies, ofCopy), priority) };
  });
}

function merged(
  kernels: HeldEvents,
  copies: HeldEvents,
  a: Int32Array,
  b: Int32Array,
  priority: Uint8Array,
): Int32Array {
  const all = new Int32Array(a.length + b.length);
  let i = 0;
  let j = 0;
  for (let n = 0; n < all.length; n++) {
    const kernel = j === b.length || (i < a.length && kernels.start_ns[a[i]!]! <= copies.start_ns[b[j]!]!);
    all[n] = kernel ? a[i++]! : -1 - b[j++]!;
  }
  const startOf = (n: number) => (n < 0 ? copies.start_ns[-1 - n]! : kernels.start_ns[n]!);
  const priorityOf = (n: number) => (n < 0 ? 2 : priority[kernels.shape[n]!]!);
  for (let from = 0; from < all.length;) {
    let to = from + 1;
    const start = startOf(all[from]!);
    while (to < all.length && startOf(all[to]!) === start) to++;
    if (to > from + 1) all.subarray(from, to).sort((x, y) => priorityOf(x) - priorityOf(y) || x - y);
    from = to;
  }
  return all;
}
