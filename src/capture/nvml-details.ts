import {
  isPermanent,
  nvmlFunctionNotFound,
  nvmlInsufficientSize,
  nvmlReturnName,
  nvmlSuccess,
} from './nvml-codes.js';
import { type DeviceCalls, type NvmlCall, Words } from './nvml-calls.js';
import { allLinks, fieldId, FieldValues } from './nvml-fields.js';
import { monotonicNs } from '../model/clock.js';
import { emptyGpuDetails, type GpuDetails, type GpuProcess } from './telemetry-gpu.js';

/** nvmlProcessInfo_t (v2 layout): u32 pid, padding, u64 usedGpuMemory, u32 gpuInstanceId, u32 computeInstanceId. */
const processBytes = 24;
/** NVML_VALUE_NOT_AVAILABLE, ULLONG_MAX: rounds to 2^64 as a double. */
const notAvailable = 2 ** 64;
/** NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES */
const pcieTx = 0;
const pcieRx = 1;

interface Details {
  read(): Promise<GpuDetails>;
  refusals: Record<string, string>;
}

/**
 * The slow values of a device. PCIe traffic comes from the byte counters if they have 64 bits (a 32-bit one wraps
 * after 70 ms of a full Gen5 x16 link); else from nvmlDeviceGetPcieThroughput, which measures for 20 ms and so is
 * called on another thread.
 */
export function openDetails(handle: bigint, calls: DeviceCalls): Details {
  const refusals: Record<string, string> = {};
  const word = new Words();
  const fields = new FieldValues([
    [fieldId.pcieTxBytes, 0],
    [fieldId.pcieRxBytes, 0],
    [fieldId.nvlinkTx, allLinks],
    [fieldId.nvlinkRx, allLinks],
    [fieldId.memoryTemperature, 0],
  ]);
  const rates = [counterRate(1), counterRate(1), counterRate(1024), counterRate(1024)] as const;
  const permanentlyRefused = new Set<string>();
  let processes = new Words(64 * processBytes);

  function refuse(field: string, code: number): null {
    refusals[field] = nvmlReturnName(code);
    if (isPermanent(code)) permanentlyRefused.add(field);
    return null;
  }

  function read(field: string, call: NvmlCall | null, scale: number): number | null {
    if (permanentlyRefused.has(field)) return null;
    const code = call ? call(handle, word.bytes) : nvmlFunctionNotFound;
    return code === nvmlSuccess ? word.u32(0) / scale : refuse(field, code);
  }

  /** KB/s are 10^3 bytes in nvml.h. */
  async function throughput(field: string, counter: number): Promise<number | null> {
    if (permanentlyRefused.has(field)) return null;
    const { pcieThroughput } = calls;
    if (!pcieThroughput) return refuse(field, nvmlFunctionNotFound);
    const out = new Words(8);
    const code = await new Promise<number>((resolve) =>
      pcieThroughput.async(handle, counter, out.bytes, (error, answer) =>
        resolve(error ? nvmlFunctionNotFound : answer),
      ),
    );
    return code === nvmlSuccess ? out.u32(0) / 1000 : refuse(field, code);
  }

  function listProcesses(): GpuProcess[] | null {
    if (permanentlyRefused.has('processes')) return null;
    const { processes: call } = calls;
    if (!call) return refuse('processes', nvmlFunctionNotFound);
    for (let tries = 0; tries < 3; tries += 1) {
      word.setU32(0, processes.bytes.length / processBytes);
      const code = call(handle, word.bytes, processes.bytes);
      const count = word.u32(0);
      if (code === nvmlInsufficientSize) {
        // More may start until the next call.
        processes = new Words((count + 16) * processBytes);
        continue;
      }
      return code === nvmlSuccess ? processList(processes, count) : refuse('processes', code);
    }
    return refuse('processes', nvmlInsufficientSize);
  }

  return {
    refusals,
    async read() {
      const result = emptyGpuDetails();
      const returnCode = calls.fields
        ? calls.fields(handle, fields.count, fields.request())
        : nvmlFunctionNotFound;
      const now = monotonicNs();
      const readRate = (index: 0 | 1 | 2 | 3, field: string): number | null => {
        const answer = returnCode === nvmlSuccess ? fields.at(index) : { value: null, code: returnCode };
        if (answer.value === null) return refuse(field, answer.code);
        return answer.bits === 32 ? null : rates[index](answer.value, now);
      };
      const isSupported = returnCode === nvmlSuccess && has64Bits(fields.at(0)) && has64Bits(fields.at(1));
      result.pcieTxMbPerS = isSupported
        ? readRate(0, 'pcieTxMbPerS')
        : await throughput('pcieTxMbPerS', pcieTx);
      result.pcieRxMbPerS = isSupported
        ? readRate(1, 'pcieRxMbPerS')
        : await throughput('pcieRxMbPerS', pcieRx);
      if (result.pcieTxMbPerS !== null || result.pcieRxMbPerS !== null)
        result.pcieWindow = isSupported ? 'between_readings' : 'ms_20';
      result.nvlinkTxMbPerS = readRate(2, 'nvlinkTxMbPerS');
      result.nvlinkRxMbPerS = readRate(3, 'nvlinkRxMbPerS');
      const memoryTemperature = returnCode === nvmlSuccess ? fields.at(4) : { value: null, code: returnCode };
      result.memoryTemperatureC =
        memoryTemperature.value ??
        refuse('memoryTemperatureC', 'code' in memoryTemperature ? memoryTemperature.code : 0);
      result.pcieLinkGen = read('pcieLinkGen', calls.pcieGen, 1);
      result.pcieLinkWidth = read('pcieLinkWidth', calls.pcieWidth, 1);
      result.fanPercent = read('fanPercent', calls.fan, 1);
      result.powerLimitW = read('powerLimitW', calls.powerLimit, 1000);
      result.processes = listProcesses();
      return result;
    },
  };
}

function has64Bits(answer: ReturnType<FieldValues['at']>): boolean {
  return answer.value !== null && answer.bits === 64;
}

/** 10^6 bytes per second since the last call; null at the first call, and when the counter restarted. */
export function counterRate(unitBytes: number): (count: number, nowNs: number) => number | null {
  let last: { count: number; nowNs: number } | null = null;
  return (count, nowNs) => {
    const before = last;
    last = { count, nowNs };
    if (!before || count < before.count || nowNs <= before.nowNs) return null;
    return ((count - before.count) * unitBytes * 1000) / (nowNs - before.nowNs);
  };
}

/** A process with several contexts or instances is listed once, with the sum. */
export function processList(words: Words, count: number): GpuProcess[] {
  const usedByPid = new Map<number, number | null>();
  for (let index = 0; index < count; index += 1) {
    const pid = words.u32(index * processBytes);
    const used = words.u64(index * processBytes + 8);
    const known = usedByPid.get(pid);
    if (used >= notAvailable) usedByPid.set(pid, known ?? null);
    else usedByPid.set(pid, (known ?? 0) + used);
  }
  return [...usedByPid].map(([pid, usedBytes]) => ({ pid, usedBytes }));
}
