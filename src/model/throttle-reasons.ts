/**
 * Bits of NVML's nvmlClocksEventReason… (nvmlClocksThrottleReason… before driver 535), as in `throttle_bits` of the table `telemetry`.
 * `limits`: it lowers the clocks below what the GPU would run at, which idling does not.
 */
export const throttleReasons: readonly { bit: number; name: string; limits: boolean; label: string }[] = [
  { bit: 0x001, name: 'gpu_idle', limits: false, label: 'idle' },
  { bit: 0x002, name: 'applications_clocks_setting', limits: true, label: 'clocks set by hand' },
  { bit: 0x004, name: 'sw_power_cap', limits: true, label: 'power cap' },
  { bit: 0x008, name: 'hw_slowdown', limits: true, label: 'hardware slowdown' },
  { bit: 0x010, name: 'sync_boost', limits: true, label: 'clocks synchronized with other GPUs' },
  { bit: 0x020, name: 'sw_thermal_slowdown', limits: true, label: 'heat (driver)' },
  { bit: 0x040, name: 'hw_thermal_slowdown', limits: true, label: 'heat (hardware)' },
  { bit: 0x080, name: 'hw_power_brake_slowdown', limits: true, label: 'external power brake' },
  { bit: 0x100, name: 'display_clock_setting', limits: true, label: 'display clocks' },
];

/** Names of the set bits, including idle, which does not throttle. */
export function throttleReasonNames(bits: number): string[] {
  return throttleReasons.filter(({ bit }) => (bits & bit) !== 0).map(({ name }) => name);
}

/** Words for a reason. */
export const throttleWords = (reason: string): string =>
  throttleReasons.find(({ name }) => name === reason)?.label ?? reason.replaceAll('_', ' ');

/** The bits that reduce speed. */
export const limitingBits = throttleReasons.reduce((all, { bit, limits }) => (limits ? all | bit : all), 0);
