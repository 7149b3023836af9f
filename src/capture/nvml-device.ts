import {
  isPermanent,
  nvmlFunctionNotFound,
  nvmlInsufficientSize,
  nvmlReturnName,
  nvmlSuccess,
} from './nvml-codes.js';
import { type Argument, type DeviceCalls, type NvmlCall, Words } from './nvml-calls.js';
import { openDetails } from './nvml-details.js';
import { fieldId, FieldValues } from './nvml-fields.js';
import { emptyGpuSample, type GpuDevice, type GpuSample } from './telemetry-gpu.js';

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

/** A GPU, or an instance of one: NVML answers "not supported" for values that only the whole GPU has. */
export function openDevice(index: number, handle: bigint, calls: DeviceCalls): GpuDevice {
  const words = new Words();
  const secondWords = new Words();
  /** NVML's errors by field; a field that an older call answered is not in `missing`. */
  const refusals: Record<string, string> = {};

  /** Calls NVML and reads the buffer; null on failure, with NVML's code stored under `field`. */
  function read<T>(field: string, call: NvmlCall | null, args: Argument[], decode: () => T): T | null {
    const code = call ? call(handle, ...args) : nvmlFunctionNotFound;
    if (code === nvmlSuccess) return decode();
    refusals[field] = nvmlReturnName(code);
    return null;
  }
  /** The same for a sampled field: after a permanent error the call is not repeated. */
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
  const instant = new FieldValues([[fieldId.powerInstant, 0]]);
  let instantRefused = false;

  const values: GpuSample = emptyGpuSample();

  function readMemory(): number | null {
    words.setU32(0, memoryV2Version);
    if (memoryV2()) {
      values.memoryReservedBytes = words.u64(16);
      values.memoryFreeBytes = words.u64(24);
      values.memoryUsedBytes = words.u64(32);
      return words.u64(8);
    }
    values.memoryReservedBytes = null;
    const reported = memoryV1(); // nvmlMemory_t: u64 total, free, used
    values.memoryFreeBytes = reported ? words.u64(8) : null;
    values.memoryUsedBytes = reported ? words.u64(16) : null;
    return reported ? words.u64(0) : null;
  }

  function readTemperature(): number | null {
    if (temperature()) return words.u32(0);
    words.setU32(0, temperatureV1Version);
    words.setU32(4, temperatureGpu);
    return temperatureV() ? words.i32(8) : null;
  }

  /** The field has its own return code in addition to that of the call. */
  function readInstantPower(): number | null {
    if (instantRefused) return null;
    const returnCode = calls.fields
      ? calls.fields(handle, instant.count, instant.request())
      : nvmlFunctionNotFound;
    const answer = returnCode === nvmlSuccess ? instant.at(0) : { value: null, code: returnCode };
    if (answer.value !== null) return answer.value / 1000;
    instantRefused = isPermanent(answer.code);
    refusals['powerInstantW'] = nvmlReturnName(answer.code);
    return null;
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

  const energyWords = new Words();
  let energyRefused = false;
  /** The counter is in mJ. */
  function energyOf(code: number): number | null {
    if (code === nvmlSuccess) return energyWords.u64(0) / 1000;
    energyRefused = isPermanent(code);
    refusals['energyJ'] = nvmlReturnName(code);
    return null;
  }

  const details = openDetails(handle, calls);
  const device: GpuDevice = {
    index,
    name: read('name', calls.name, [out, 96], () => words.text(0)),
    uuid: read('uuid', calls.uuid, [out, 96], () => words.text(0)),
    pciBusId: read('pciBusId', calls.pci, [out], () => words.text(pciBusIdOffset)),
    memoryTotalBytes: readMemory(),
    computeCapability: read(
      'computeCapability',
      calls.capability,
      [out, secondWords.bytes],
      () => `${words.i32(0)}.${secondWords.i32(0)}`,
    ),
    powerLimitW: read('powerLimitW', calls.powerLimit, [out], milliwatts),
    powerDefaultLimitW: read('powerDefaultLimitW', calls.powerDefaultLimit, [out], milliwatts),
    maxSmClockMhz: read('maxSmClockMhz', calls.maxClock, [clockSm, out], () => words.u32(0)),
    maxMemoryClockMhz: read('maxMemoryClockMhz', calls.maxClock, [clockMemory, out], () => words.u32(0)),
    migEnabled: read('migEnabled', calls.mig, [out, secondWords.bytes], () => words.u32(0) === 1),
    migDevices: [],
    get missing() {
      const answered = (field: string) => field in values && values[field as keyof GpuSample] !== null;
      const all = { ...refusals, ...details.refusals };
      return Object.fromEntries(Object.entries(all).filter(([field]) => !answered(field)));
    },
    sample() {
      readMemory();
      values.powerW = power() ? milliwatts() : null;
      values.powerInstantW = readInstantPower();
      values.smClockMhz = smClock() ? words.u32(0) : null;
      values.memoryClockMhz = memoryClock() ? words.u32(0) : null;
      const utilized = utilization(); // nvmlUtilization_t: u32 gpu, u32 memory
      values.utilizationPercent = utilized ? words.u32(0) : null;
      values.memoryUtilizationPercent = utilized ? words.u32(4) : null;
      if (!utilized && refusals['utilizationPercent'] !== undefined)
        refusals['memoryUtilizationPercent'] = refusals['utilizationPercent'];
      values.temperatureC = readTemperature();
      values.throttleBits = throttle() ? words.u64(0) : null;
      values.computeProcesses = countProcesses();
      return values;
    },
    energyJ() {
      if (energyRefused) return null;
      return energyOf(calls.energy ? calls.energy(handle, energyWords.bytes) : nvmlFunctionNotFound);
    },
    async energyLaterJ() {
      const call = calls.energy;
      if (!call || energyRefused) return null;
      return new Promise((resolve) =>
        call.async(handle, energyWords.bytes, (error, code) => resolve(error ? null : energyOf(code))),
      );
    },
    details: details.read,
  };
  return device;
}

/** Handles of the instances of a partitioned GPU; empty slots are skipped. */
export function migHandles(handle: bigint, calls: DeviceCalls): bigint[] {
  const words = new Words();
  if (calls.migCount?.(handle, words.bytes) !== nvmlSuccess) return [];
  const count = words.u32(0);
  const handles: bigint[] = [];
  for (let slot = 0; slot < count; slot += 1) {
    if (calls.migHandle?.(handle, slot, words.bytes) === nvmlSuccess) handles.push(words.pointer(0));
  }
  return handles;
}
