/** CLOCK_MONOTONIC, ns; one clock for all threads and processes of a machine, exact as a double for 104 days. */
export function monotonicNs(): number {
  return Number(process.hrtime.bigint());
}
