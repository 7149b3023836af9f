/**
 * A GPU for the sampler, independent of the source: NVML, amd-smi or rocm-smi. Every field is null if the source has no value, and
 * `missing` has the reason.
 */

/** Values read in every sample: fast enough for 50 Hz. */
export interface GpuSample {
  /** Allocated by processes, without the driver's share if the driver separates it (NVIDIA 510+). */
  memoryUsedBytes: number | null;
  memoryFreeBytes: number | null;
  /** Used by driver and firmware; null if included in memoryUsedBytes (NVIDIA before 510, AMD). */
  memoryReservedBytes: number | null;
  /** nvmlDeviceGetPowerUsage: mean over the last second on Ampere (except GA100) and newer, instantaneous before. */
  powerW: number | null;
  /** Instantaneous, if the driver reports it (NVML_FI_DEV_POWER_INSTANT). */
  powerInstantW: number | null;
  smClockMhz: number | null;
  memoryClockMhz: number | null;
  /** Share of the driver's last sample period (1/6 to 1 s) in which any kernel ran; not the load of the GPU. */
  utilizationPercent: number | null;
  memoryUtilizationPercent: number | null;
  temperatureC: number | null;
  /** nvmlClocksEventReasons bits; throttleReasonNames() reads them. AMD's violations are mapped to the same bits. */
  throttleBits: number | null;
  computeProcesses: number | null;
}

/** Values that take milliseconds or rarely change: read once per second, and only on request. */
export interface GpuDetails {
  /** Sent by and received by the GPU, 10^6 bytes per second: since the last reading, or over 20 ms (see `pcieWindow`). */
  pcieTxMbPerS: number | null;
  pcieRxMbPerS: number | null;
  /** between_readings: from byte counters. ms_20: nvmlDeviceGetPcieThroughput, which samples for 20 ms. */
  pcieWindow: 'between_readings' | 'ms_20' | null;
  pcieLinkGen: number | null;
  pcieLinkWidth: number | null;
  /** All links together, since the last reading. */
  nvlinkTxMbPerS: number | null;
  nvlinkRxMbPerS: number | null;
  fanPercent: number | null;
  memoryTemperatureC: number | null;
  /** The effective limit, of all that apply. */
  powerLimitW: number | null;
  /** Null if the source does not list them; an empty list in a container may mean that they are hidden. */
  processes: GpuProcess[] | null;
}

export interface GpuProcess {
  /** Process id of the driver: in a container this may be the host's process id. */
  pid: number;
  /** Null if the driver does not report it (WDDM, some containers). */
  usedBytes: number | null;
}

export interface GpuDevice {
  index: number;
  name: string | null;
  /** Identifies the board: only for matching devices in memory, never written to a manifest. */
  uuid: string | null;
  pciBusId: string | null;
  memoryTotalBytes: number | null;
  /** e.g. "9.0" */
  computeCapability: string | null;
  powerLimitW: number | null;
  powerDefaultLimitW: number | null;
  maxSmClockMhz: number | null;
  maxMemoryClockMhz: number | null;
  /** Null if the GPU has no MIG. */
  migEnabled: boolean | null;
  /**
   * Instances of a partitioned GPU; empty without MIG. They have their own memory and processes; other values are only those of the whole
   * GPU.
   */
  migDevices: GpuDevice[];
  /** Reason for every null field, by field name. */
  missing: Record<string, string>;
  /** Reads everything that changes. The same object is reused: copy values to keep them. */
  sample(): Readonly<GpuSample>;
  /**
   * CLOCK_MONOTONIC at which the values of `sample()` were read, if not at the time of the call (AMD's
   * tools take a second). The same time means the same sample.
   */
  readonly sampledNs?: number | null;
  /**
   * Counter since the driver was loaded; differences are energy. NVML takes 3 ms for it (on an H200), sometimes 17:
   * never read it at the sampling rate.
   */
  energyJ(): number | null;
  /** The same on another thread, without blocking the event loop. */
  energyLaterJ(): Promise<number | null>;
  /** Reads the slow values; call it at most once per second. */
  details(): Promise<GpuDetails>;
}

export function emptyGpuSample(): GpuSample {
  return {
    memoryUsedBytes: null,
    memoryFreeBytes: null,
    memoryReservedBytes: null,
    powerW: null,
    powerInstantW: null,
    smClockMhz: null,
    memoryClockMhz: null,
    utilizationPercent: null,
    memoryUtilizationPercent: null,
    temperatureC: null,
    throttleBits: null,
    computeProcesses: null,
  };
}

export function emptyGpuDetails(): GpuDetails {
  return {
    pcieTxMbPerS: null,
    pcieRxMbPerS: null,
    pcieWindow: null,
    pcieLinkGen: null,
    pcieLinkWidth: null,
    nvlinkTxMbPerS: null,
    nvlinkRxMbPerS: null,
    fanPercent: null,
    memoryTemperatureC: null,
    powerLimitW: null,
    processes: null,
  };
}
