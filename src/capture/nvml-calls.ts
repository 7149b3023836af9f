import type { LibraryHandle } from 'koffi';

export type Argument = bigint | number | Uint8Array | null;

/** Returns nvmlReturn_t. */
export interface NvmlCall {
  (...args: Argument[]): number;
  /** Runs on a koffi thread, without blocking the event loop. The last argument is called with nvmlReturn_t. */
  async(...args: [...Argument[], (error: unknown, code: number) => void]): void;
}

/** Binds the first of `names` that this driver's library has. Handles are passed as integers: nvmlDevice_t is opaque. */
export function bind(library: LibraryHandle, names: string[], parameters: string[]): NvmlCall | null {
  for (const name of names) {
    try {
      return library.func(name, 'int', parameters) as NvmlCall;
    } catch {
      // An older driver lacks the newer name.
    }
  }
  return null;
}

/** Signatures as in nvml.h of CUDA 13 (API version 13); numbers in comments are the driver versions that added a function. */
export function bindDeviceCalls(library: LibraryHandle) {
  const single = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *']);
  const withNumber = (...names: string[]) => bind(library, names, ['uintptr_t', 'int', 'void *']);
  const text = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *', 'uint32_t']);
  const pair = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *', 'void *']);
  return {
    name: text('nvmlDeviceGetName'),
    uuid: text('nvmlDeviceGetUUID'),
    pci: single('nvmlDeviceGetPciInfo_v3'), // 384
    capability: pair('nvmlDeviceGetCudaComputeCapability'),
    memoryV2: single('nvmlDeviceGetMemoryInfo_v2'), // 510
    memoryV1: single('nvmlDeviceGetMemoryInfo'),
    powerLimit: single('nvmlDeviceGetEnforcedPowerLimit'), // the effective limit, of all that apply
    powerDefaultLimit: single('nvmlDeviceGetPowerManagementDefaultLimit'),
    maxClock: withNumber('nvmlDeviceGetMaxClockInfo'),
    mig: pair('nvmlDeviceGetMigMode'), // 450
    migCount: single('nvmlDeviceGetMaxMigDeviceCount'), // 450
    migHandle: withNumber('nvmlDeviceGetMigDeviceHandleByIndex'), // 450
    power: single('nvmlDeviceGetPowerUsage'),
    energy: single('nvmlDeviceGetTotalEnergyConsumption'), // Volta and newer
    fields: withNumber('nvmlDeviceGetFieldValues'),
    clock: withNumber('nvmlDeviceGetClockInfo'),
    utilization: single('nvmlDeviceGetUtilizationRates'),
    temperature: withNumber('nvmlDeviceGetTemperature'), // deprecated in CUDA 13, still available
    temperatureV: single('nvmlDeviceGetTemperatureV'), // 570
    throttle: single('nvmlDeviceGetCurrentClocksEventReasons', 'nvmlDeviceGetCurrentClocksThrottleReasons'), // 535, older
    processes: pair('nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'), // 510, 450
    pcieThroughput: withNumber('nvmlDeviceGetPcieThroughput'), // takes 20 ms
    pcieGen: single('nvmlDeviceGetCurrPcieLinkGeneration'),
    pcieWidth: single('nvmlDeviceGetCurrPcieLinkWidth'),
    fan: single('nvmlDeviceGetFanSpeed'), // not supported by boards cooled by the chassis
  };
}
export type DeviceCalls = ReturnType<typeof bindDeviceCalls>;

/** An out-parameter buffer, allocated once and read at fixed offsets, so that a sample at 50 Hz allocates nothing. */
export class Words {
  readonly bytes: Uint8Array;
  private readonly view: DataView;

  /** @param size 128 fits every struct of one value (the largest is nvmlPciInfo_t, 68 bytes) and names of 96 */
  constructor(size = 128) {
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }

  u32 = (offset: number): number => this.view.getUint32(offset, true);
  i32 = (offset: number): number => this.view.getInt32(offset, true);
  f64 = (offset: number): number => this.view.getFloat64(offset, true);
  /** Exact below 2^53, which covers bytes of memory and bit masks. */
  u64 = (offset: number): number => this.u32(offset) + this.u32(offset + 4) * 2 ** 32;
  setU32 = (offset: number, value: number): void => this.view.setUint32(offset, value, true);
  pointer = (offset: number): bigint => this.view.getBigUint64(offset, true);
  /** A C string. */
  text(offset: number): string {
    const end = this.bytes.indexOf(0, offset);
    return new TextDecoder().decode(this.bytes.subarray(offset, end < 0 ? undefined : end));
  }
}
