import type { LibraryHandle } from 'koffi';
import { messageOf } from '../model/errors.js';
import {
  cudaVersionText,
  isPermanent,
  nvmlFunctionNotFound,
  nvmlInsufficientSize,
  nvmlReturnName,
  nvmlSuccess,
} from './nvml-codes.js';

/**
 * NVML through koffi: no compiler, no nvidia-smi process per sample. Signatures and layouts are those of nvml.h of
 * CUDA 13 (API version 13); each was in the header since the driver named beside it. Out-parameters are buffers of
 * our own, allocated once and read at fixed offsets, so that a sample at 50 Hz allocates nothing.
 */

export interface NvmlSample {
  /** Allocated by processes, without the driver's own share where the driver tells it apart (510+). */
  memoryUsedBytes: number | null;
  memoryFreeBytes: number | null;
  /** Held by driver and firmware; null before driver 510, where it is inside memoryUsedBytes. */
  memoryReservedBytes: number | null;
  /** Mean over the last second on Ampere (except GA100) and newer, instantaneous before (nvml.h). */
  powerW: number | null;
  smClockMhz: number | null;
  memoryClockMhz: number | null;
  /** Share of the driver's last sample period (1/6 to 1 s) in which any kernel ran; not how full the GPU was. */
  utilizationPercent: number | null;
  memoryUtilizationPercent: number | null;
  temperatureC: number | null;
  /** nvmlClocksEventReasons bits; throttleReasonNames() reads them. */
  throttleBits: number | null;
  computeProcesses: number | null;
}

export interface NvmlDevice {
  index: number;
  name: string | null;
  /** Names this very board: for matching devices in memory only, never written to a manifest. */
  uuid: string | null;
  pciBusId: string | null;
  memoryTotalBytes: number | null;
  /** e.g. "9.0" */
  computeCapability: string | null;
  powerLimitW: number | null;
  powerDefaultLimitW: number | null;
  maxSmClockMhz: number | null;
  maxMemoryClockMhz: number | null;
  /** Null where the GPU has no MIG. */
  migEnabled: boolean | null;
  /** NVML's answer for every field that is null, by field name. */
  missing: Record<string, string>;
  /** Reads everything that changes. The same object is filled again each time: copy what you keep. */
  sample(): Readonly<NvmlSample>;
}

export interface Nvml {
  driverVersion: string | null;
  /** Newest CUDA the driver can run, e.g. "13.0". */
  cudaVersion: string | null;
  devices: NvmlDevice[];
  close(): void;
}

/** Why NVML cannot be used: koffi or the library did not load, or nvmlInit refused. */
export interface NvmlReason {
  code: 'library_missing' | 'koffi_failed' | 'symbol_missing' | 'init_failed';
  text: string;
}

export type NvmlOpened = { nvml: Nvml; reason: null } | { nvml: null; reason: NvmlReason };

/** The driver's library: installed with the driver, mounted by NVIDIA's container toolkit. */
const libraryNames = ['libnvidia-ml.so.1', 'libnvidia-ml.so'];

/** NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU */
const clockSm = 1;
const clockMemory = 2;
const temperatureGpu = 0;

/** nvmlMemory_v2_t: u32 version, padding, u64 total, reserved, free, used = 40 bytes; version = size | 2 << 24. */
const memoryV2Bytes = 40;
const memoryV2Version = memoryV2Bytes | (2 << 24);
/** nvmlTemperature_v1_t: u32 version, u32 sensor, i32 temperature = 12 bytes; version = size | 1 << 24. */
const temperatureV1Version = 12 | (1 << 24);
/** nvmlPciInfo_t: char busIdLegacy[16], five u32, char busId[32] = 68 bytes. */
const pciBusIdOffset = 36;

type Argument = bigint | number | Uint8Array | null;
/** Returns nvmlReturn_t. */
type NvmlCall = (...args: Argument[]) => number;

/**
 * Opens NVML. Never throws: a machine without NVIDIA's driver answers with the reason.
 * @param libraries names or paths tried in turn
 */
export async function openNvml(libraries: readonly string[] = libraryNames): Promise<NvmlOpened> {
  let load: (path: string) => LibraryHandle;
  try {
    ({
      default: { load },
    } = await import('koffi'));
  } catch (error) {
    return refused('koffi_failed', `koffi, which calls native libraries, did not load: ${messageOf(error)}`);
  }
  const failures: string[] = [];
  for (const name of libraries) {
    let library: LibraryHandle;
    try {
      library = load(name);
    } catch (error) {
      failures.push(`${name}: ${messageOf(error)}`);
      continue;
    }
    return initialize(library, name);
  }
  return refused('library_missing', failures.join('; '));
}

function refused(code: NvmlReason['code'], text: string): NvmlOpened {
  return { nvml: null, reason: { code, text } };
}

function initialize(library: LibraryHandle, name: string): NvmlOpened {
  const init = bind(library, ['nvmlInit_v2'], []); // 319
  if (!init) return refused('symbol_missing', `${name} has no nvmlInit_v2: it is not NVML`);
  const code = init();
  if (code !== nvmlSuccess) return refused('init_failed', `nvmlInit_v2 answered ${nvmlReturnName(code)}`);

  const word = new Words();
  const countDevices = bind(library, ['nvmlDeviceGetCount_v2'], ['void *']); // 319
  const getHandle = bind(library, ['nvmlDeviceGetHandleByIndex_v2'], ['uint32_t', 'void *']); // 319
  const getDriver = bind(library, ['nvmlSystemGetDriverVersion'], ['void *', 'uint32_t']);
  const getCuda = bind(
    library,
    ['nvmlSystemGetCudaDriverVersion_v2', 'nvmlSystemGetCudaDriverVersion'],
    ['void *'],
  );
  const calls = bindDeviceCalls(library);

  const devices: NvmlDevice[] = [];
  const count = countDevices?.(word.bytes) === nvmlSuccess ? word.u32(0) : 0;
  for (let index = 0; index < count; index += 1) {
    // A GPU that has fallen off the bus keeps its index and refuses its handle: it is left out.
    if (getHandle?.(index, word.bytes) === nvmlSuccess)
      devices.push(openDevice(index, word.pointer(0), calls));
  }
  return {
    nvml: {
      driverVersion: getDriver?.(word.bytes, word.bytes.length) === nvmlSuccess ? word.text(0) : null,
      cudaVersion: getCuda?.(word.bytes) === nvmlSuccess ? cudaVersionText(word.u32(0)) : null,
      devices,
      close: () => void bind(library, ['nvmlShutdown'], [])?.(),
    },
    reason: null,
  };
}

/** The first of `names` that this driver's library has. Handles are passed as integers: nvmlDevice_t is opaque. */
function bind(library: LibraryHandle, names: string[], parameters: string[]): NvmlCall | null {
  for (const name of names) {
    try {
      return library.func(name, 'int', parameters) as NvmlCall;
    } catch {
      // An older driver lacks the newer name.
    }
  }
  return null;
}

function bindDeviceCalls(library: LibraryHandle) {
  const one = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *']);
  const typed = (...names: string[]) => bind(library, names, ['uintptr_t', 'int', 'void *']);
  const text = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *', 'uint32_t']);
  const pair = (...names: string[]) => bind(library, names, ['uintptr_t', 'void *', 'void *']);
  return {
    name: text('nvmlDeviceGetName'),
    uuid: text('nvmlDeviceGetUUID'),
    pci: one('nvmlDeviceGetPciInfo_v3'), // 384
    capability: pair('nvmlDeviceGetCudaComputeCapability'),
    memoryV2: one('nvmlDeviceGetMemoryInfo_v2'), // 510
    memoryV1: one('nvmlDeviceGetMemoryInfo'),
    powerLimit: one('nvmlDeviceGetEnforcedPowerLimit'), // the limit in force, of all that apply
    powerDefaultLimit: one('nvmlDeviceGetPowerManagementDefaultLimit'),
    maxClock: typed('nvmlDeviceGetMaxClockInfo'),
    mig: pair('nvmlDeviceGetMigMode'), // 450
    power: one('nvmlDeviceGetPowerUsage'),
    clock: typed('nvmlDeviceGetClockInfo'),
    utilization: one('nvmlDeviceGetUtilizationRates'),
    temperature: typed('nvmlDeviceGetTemperature'), // deprecated in CUDA 13, still there
    temperatureV: one('nvmlDeviceGetTemperatureV'), // 570
    throttle: one('nvmlDeviceGetCurrentClocksEventReasons', 'nvmlDeviceGetCurrentClocksThrottleReasons'), // 535, older
    processes: pair('nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'), // 510, 450
  };
}
type DeviceCalls = ReturnType<typeof bindDeviceCalls>;

function openDevice(index: number, handle: bigint, calls: DeviceCalls): NvmlDevice {
  const words = new Words();
  const second = new Words();
  /** NVML's refusals by field; one that an older call then answered is not among `missing`. */
  const refusals: Record<string, string> = {};

  /** Calls NVML and reads the buffer; null with NVML's answer kept under `field` when it refuses. */
  function read<T>(field: string, call: NvmlCall | null, args: Argument[], of: () => T): T | null {
    const code = call ? call(handle, ...args) : nvmlFunctionNotFound;
    if (code === nvmlSuccess) return of();
    refusals[field] = nvmlReturnName(code);
    return null;
  }
  /** The same for a sampled field: once the answer is permanent, the call is not made again. */
  function sampled(field: string, call: NvmlCall | null, args: Argument[]): () => boolean {
    let dead = call === null;
    if (dead) refusals[field] = nvmlReturnName(nvmlFunctionNotFound);
    return () => {
      if (dead) return false;
      const code = call!(handle, ...args);
      if (code === nvmlSuccess) return true;
      dead = isPermanent(code);
      refusals[field] = nvmlReturnName(code);
      return false;
    };
  }

  const out = words.bytes;
  const milliwatts = () => words.u32(0) / 1000;
  const memoryV2 = sampled('memoryReservedBytes', calls.memoryV2, [out]);
  const memoryV1 = sampled('memoryUsedBytes', calls.memoryV1, [out]);
  const power = sampled('powerW', calls.power, [out]);
  const smClock = sampled('smClockMhz', calls.clock, [clockSm, out]);
  const memoryClock = sampled('memoryClockMhz', calls.clock, [clockMemory, out]);
  const utilization = sampled('utilizationPercent', calls.utilization, [out]);
  const temperature = sampled('temperatureC', calls.temperature, [temperatureGpu, out]);
  const temperatureV = sampled('temperatureC', calls.temperatureV, [out]);
  const throttle = sampled('throttleBits', calls.throttle, [out]);
  let processesRefused = calls.processes === null;
  if (processesRefused) refusals['computeProcesses'] = nvmlReturnName(nvmlFunctionNotFound);

  const values: NvmlSample = {
    memoryUsedBytes: null,
    memoryFreeBytes: null,
    memoryReservedBytes: null,
    powerW: null,
    smClockMhz: null,
    memoryClockMhz: null,
    utilizationPercent: null,
    memoryUtilizationPercent: null,
    temperatureC: null,
    throttleBits: null,
    computeProcesses: null,
  };

  function readMemory(): number | null {
    words.setU32(0, memoryV2Version);
    if (memoryV2()) {
      values.memoryReservedBytes = words.u64(16);
      values.memoryFreeBytes = words.u64(24);
      values.memoryUsedBytes = words.u64(32);
      return words.u64(8);
    }
    values.memoryReservedBytes = null;
    const told = memoryV1(); // nvmlMemory_t: u64 total, free, used
    values.memoryFreeBytes = told ? words.u64(8) : null;
    values.memoryUsedBytes = told ? words.u64(16) : null;
    return told ? words.u64(0) : null;
  }

  function readTemperature(): number | null {
    if (temperature()) return words.u32(0);
    words.setU32(0, temperatureV1Version);
    words.setU32(4, temperatureGpu);
    return temperatureV() ? words.i32(8) : null;
  }

  /** With a count of 0 and no array NVML answers "insufficient size" and the number of processes. */
  function countProcesses(): number | null {
    if (processesRefused) return null;
    words.setU32(0, 0);
    const code = calls.processes!(handle, out, null);
    if (code === nvmlSuccess || code === nvmlInsufficientSize) return words.u32(0);
    processesRefused = isPermanent(code);
    refusals['computeProcesses'] = nvmlReturnName(code);
    return null;
  }

  const device: NvmlDevice = {
    index,
    name: read('name', calls.name, [out, 96], () => words.text(0)),
    uuid: read('uuid', calls.uuid, [out, 96], () => words.text(0)),
    pciBusId: read('pciBusId', calls.pci, [out], () => words.text(pciBusIdOffset)),
    memoryTotalBytes: readMemory(),
    computeCapability: read(
      'computeCapability',
      calls.capability,
      [out, second.bytes],
      () => `${words.i32(0)}.${second.i32(0)}`,
    ),
    powerLimitW: read('powerLimitW', calls.powerLimit, [out], milliwatts),
    powerDefaultLimitW: read('powerDefaultLimitW', calls.powerDefaultLimit, [out], milliwatts),
    maxSmClockMhz: read('maxSmClockMhz', calls.maxClock, [clockSm, out], () => words.u32(0)),
    maxMemoryClockMhz: read('maxMemoryClockMhz', calls.maxClock, [clockMemory, out], () => words.u32(0)),
    migEnabled: read('migEnabled', calls.mig, [out, second.bytes], () => words.u32(0) === 1),
    get missing() {
      const answered = (field: string) => field in values && values[field as keyof NvmlSample] !== null;
      return Object.fromEntries(Object.entries(refusals).filter(([field]) => !answered(field)));
    },
    sample() {
      readMemory();
      values.powerW = power() ? milliwatts() : null;
      values.smClockMhz = smClock() ? words.u32(0) : null;
      values.memoryClockMhz = memoryClock() ? words.u32(0) : null;
      const utilized = utilization(); // nvmlUtilization_t: u32 gpu, u32 memory
      values.utilizationPercent = utilized ? words.u32(0) : null;
      values.memoryUtilizationPercent = utilized ? words.u32(4) : null;
      values.temperatureC = readTemperature();
      values.throttleBits = throttle() ? words.u64(0) : null;
      values.computeProcesses = countProcesses();
      return values;
    },
  };
  return device;
}

/** An out-parameter: room for every struct used here (the largest is nvmlPciInfo_t, 68 bytes) and names of 96. */
class Words {
  readonly bytes = new Uint8Array(128);
  private readonly view = new DataView(this.bytes.buffer);

  u32 = (offset: number): number => this.view.getUint32(offset, true);
  i32 = (offset: number): number => this.view.getInt32(offset, true);
  /** Exact below 2^53: bytes of memory and bit masks are. */
  u64 = (offset: number): number => this.u32(offset) + this.u32(offset + 4) * 2 ** 32;
  setU32 = (offset: number, value: number): void => this.view.setUint32(offset, value, true);
  pointer = (offset: number): bigint => this.view.getBigUint64(offset, true);
  /** A C string. */
  text(offset: number): string {
    const end = this.bytes.indexOf(0, offset);
    return new TextDecoder().decode(this.bytes.subarray(offset, end < 0 ? undefined : end));
  }
}
