import type { LibraryHandle } from 'koffi';
import { messageOf } from '../model/errors.js';
import { bind, bindDeviceCalls, Words } from './nvml-calls.js';
import { nvmlNoPermission, nvmlReturnName, nvmlSuccess } from './nvml-codes.js';
import { cudaVersion } from '../model/cuda-version.js';
import { migHandles, openDevice } from './nvml-device.js';
import type { GpuDevice } from './telemetry-gpu.js';

/**
 * NVML through koffi: no compiler, no nvidia-smi process per sample. Out-parameters are our own buffers, allocated
 * once and read at fixed offsets (nvml-calls.ts).
 */

interface Nvml {
  driverVersion: string | null;
  /** Newest CUDA the driver can run, e.g. "13.0". */
  cudaVersion: string | null;
  devices: GpuDevice[];
  close(): void;
}

/** Why NVML cannot be used: koffi or the library did not load, or nvmlInit failed. */
export interface NvmlReason {
  code: 'library_missing' | 'koffi_failed' | 'symbol_missing' | 'no_permission' | 'init_failed';
  text: string;
}

type NvmlOpened = { nvml: Nvml; reason: null } | { nvml: null; reason: NvmlReason };

/** The driver's library: installed with the driver, mounted by NVIDIA's container toolkit. */
const libraryNames = ['libnvidia-ml.so.1', 'libnvidia-ml.so'];

/**
 * Opens NVML. Never throws: on a machine without NVIDIA's driver it returns the reason.
 * @param libraries names or paths tried in turn
 */
export async function openNvml(libraries: readonly string[] = libraryNames): Promise<NvmlOpened> {
  let load: (path: string) => LibraryHandle;
  try {
    ({
      default: { load },
    } = await import('koffi'));
  } catch (error) {
    return notOpened(
      'koffi_failed',
      `koffi, which calls native libraries, did not load: ${messageOf(error)}`,
    );
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
  return notOpened('library_missing', failures.join('; '));
}

function notOpened(code: NvmlReason['code'], text: string): NvmlOpened {
  return { nvml: null, reason: { code, text } };
}

function initialize(library: LibraryHandle, name: string): NvmlOpened {
  const init = bind(library, ['nvmlInit_v2'], []); // 319
  if (!init) return notOpened('symbol_missing', `${name} has no nvmlInit_v2: it is not NVML`);
  const code = init();
  if (code !== nvmlSuccess) {
    const reason = code === nvmlNoPermission ? 'no_permission' : 'init_failed';
    return notOpened(reason, `nvmlInit_v2 answered ${nvmlReturnName(code)}`);
  }

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

  const devices: GpuDevice[] = [];
  const count = countDevices?.(word.bytes) === nvmlSuccess ? word.u32(0) : 0;
  for (let index = 0; index < count; index += 1) {
    // A GPU that has fallen off the bus keeps its index but has no handle: it is skipped.
    if (getHandle?.(index, word.bytes) !== nvmlSuccess) continue;
    const handle = word.pointer(0);
    const device = openDevice(index, handle, calls);
    if (device.migEnabled)
      device.migDevices = migHandles(handle, calls).map((instance, slot) =>
        openDevice(slot, instance, calls),
      );
    devices.push(device);
  }
  return {
    nvml: {
      driverVersion: getDriver?.(word.bytes, word.bytes.length) === nvmlSuccess ? word.text(0) : null,
      cudaVersion: getCuda?.(word.bytes) === nvmlSuccess ? cudaVersion(word.u32(0)) : null,
      devices,
      close: () => void bind(library, ['nvmlShutdown'], [])?.(),
    },
    reason: null,
  };
}
