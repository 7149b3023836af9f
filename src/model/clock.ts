import process from 'node:process';

/** CLOCK_MONOTONIC, ns; exact as a double for 104 days of uptime. */
export function monotonicNs(): number {
  return Number(process.hrtime.bigint());
}

/** CLOCK_REALTIME in ns as a decimal string; Node reads it with µs resolution. */
export function realtimeNs(): string {
  const ms = performance.timeOrigin + performance.now();
  return `${BigInt(Math.round(ms * 1000)) * 1000n}`;
}

/** Both clocks at one moment, to convert monotonic times to wall-clock times. */
export interface ClockPair {
  monotonic_ns: string;
  realtime_ns: string;
}

export const clockPair = (): ClockPair => ({
  monotonic_ns: String(monotonicNs()),
  realtime_ns: realtimeNs(),
});

/** Clock of samples and records, as in the manifest's captures. */
export const monotonicClock = { name: 'CLOCK_MONOTONIC', resolution_ns: 1, error_bound_ns: 0 };
