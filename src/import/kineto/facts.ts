import type { CaptureFacts, Fact } from '../importer.js';
import type { TraceHead } from './head.js';
import { cudaVersion } from '../../model/cuda-version.js';

/** ts at or after 2001 as µs since the epoch: the absolute times of files before baseTimeNanoseconds. */
const epochUs = 1e15;

/**
 * Wall clock of the first events, ns since the epoch. `ts` counts from baseTimeNanoseconds, or from the epoch in files
 * without this key (torch before 2.2); other files do not record it.
 */
export function realtimeOrigin(facts: ReadonlyMap<string, unknown>, originUs: number): bigint | null {
  const originNs = BigInt(originUs) * 1000n;
  if (originUs >= epochUs) return originNs;
  const base = asBigInt(facts.get('baseTimeNanoseconds'));
  return base === null ? null : base + originNs;
}

/** NCCL's version in a distributedInfo that Kineto makes. */
const unknownVersion = 'unknown';

/** Rank in the process group; 0 if the trace has none. */
export const rankOf = (facts: ReadonlyMap<string, unknown>): number => recordedRank(facts) ?? 0;

export const hasRank = (facts: ReadonlyMap<string, unknown>): boolean => recordedRank(facts) !== null;

/**
 * The rank that inferscope's probe or torch wrote; null without one. A distributedInfo with an unknown NCCL version is Kineto's own, made from
 * the first collective, which names the root of a broadcast and the other rank of a send or receive (output_json.cpp).
 */
function recordedRank(facts: ReadonlyMap<string, unknown>): number | null {
  const group = asRecord(facts.get('distributedInfo'));
  const rank = group['nccl_version'] === unknownVersion ? null : group['rank'];
  return asCount(facts.get('inferscope_rank') ?? rank);
}

/** A whole number from 0; null for anything else. */
const asCount = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;

/** The fields of a device that are read, with their maximum values. */
const maxDeviceFields = { totalGlobalMem: 2 ** 48, numSms: 65_536, computeMajor: 999, computeMinor: 999 };
type DeviceField = keyof typeof maxDeviceFields;

/** A field of a device; null if absent or impossible. */
function deviceField(device: Record<string, unknown>, field: DeviceField): number | null {
  const value = device[field];
  const isPossible =
    Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= maxDeviceFields[field];
  return isPossible ? Number(value) : null;
}

/** The name of a device; null if absent or empty, as ROCm builds without device names write it. */
const deviceName = ({ name }: Record<string, unknown>): string | null =>
  typeof name === 'string' && name.trim() !== '' ? name : null;

/** Number of devices without a name or with an impossible size; 1 if deviceProperties is not a list. */
export function countOddDevices(facts: ReadonlyMap<string, unknown>): number {
  const devices = facts.get('deviceProperties') ?? [];
  if (!Array.isArray(devices)) return 1;
  const fields = Object.keys(maxDeviceFields) as DeviceField[];
  return devices.map(asRecord).filter((device) => {
    const isOdd = fields.some((field) => device[field] !== undefined && deviceField(device, field) === null);
    return isOdd || deviceName(device) === null;
  }).length;
}

export function kinetoFacts({ facts, originUs }: TraceHead): CaptureFacts {
  const devices = facts.get('deviceProperties');
  const first = asRecord(Array.isArray(devices) ? devices[0] : null);
  const hardware: Record<string, Fact> = {};
  const name = deviceName(first);
  if (name !== null) hardware['gpu_name'] = name;
  if (Object.keys(first).length > 0) {
    hardware['gpu_count'] = (devices as unknown[]).length;
    hardware['gpu_memory_bytes'] = deviceField(first, 'totalGlobalMem');
    hardware['gpu_sm_count'] = deviceField(first, 'numSms');
    const major = deviceField(first, 'computeMajor');
    hardware['gpu_compute_capability'] =
      major === null ? null : `${major}.${deviceField(first, 'computeMinor') ?? 0}`;
  }
  const group = asRecord(facts.get('distributedInfo'));
  const rank = recordedRank(facts);
  // Kineto writes a number as text.
  const world_size = asCount(Number(group['world_size'] ?? Number.NaN));
  return {
    tool: { name: 'torch.profiler', version: null },
    realtime_zero_ns: realtimeOrigin(facts, originUs),
    command: null,
    hardware,
    software: withoutNulls({
      cuda_runtime: cudaVersionOf(facts.get('cuda_runtime_version')),
      cuda_driver: cudaVersionOf(facts.get('cuda_driver_version')),
      cupti: asScalar(facts.get('cupti_version')),
      hip_runtime: asScalar(facts.get('hip_runtime_version')),
      roctracer: asScalar(facts.get('roctracer_version')),
      nccl: group['nccl_version'] === unknownVersion ? null : asScalar(group['nccl_version']),
      world_size: asScalar(group['world_size']),
      kineto_schema: asScalar(facts.get('schemaVersion')),
    }),
    ...(rank !== null && { rank }),
    ...(world_size !== null && { world_size }),
    purpose: 'profiled',
  };
}

function withoutNulls(values: Record<string, Fact>): Record<string, Fact> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function asScalar(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

function asBigInt(value: unknown): bigint | null {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  return typeof value === 'string' && /^\d+$/.test(value) ? BigInt(value) : null;
}

function cudaVersionOf(value: unknown): string | null {
  const code = asScalar(value);
  if (typeof code !== 'number' || code < 1000) return code === null ? null : String(code);
  return cudaVersion(code);
}
