import process from 'node:process';
import { messageOf } from '../model/errors.js';
import { type AmdTool, openAmd } from './amd.js';
import { findOnPath } from './doctor/find-tool.js';
import { openNvml } from './nvml.js';
import type { GpuDevice } from './telemetry-gpu.js';

/** The GPUs of this machine through any available source; input of the sampler. */
export interface Gpus {
  source: 'NVML' | AmdTool['name'];
  driverVersion: string | null;
  devices: GpuDevice[];
  close(): void;
}

export type GpusOpened =
  | { gpus: Gpus; reason: null }
  | {
      gpus: null;
      /** permission: the driver denies access to this user. no_gpu: the driver shows no GPU. */
      reason: { code: 'no_driver' | 'permission' | 'no_gpu' | 'failed'; text: string };
    };

/** GPU fields of a session's manifest: the same names that importers write. */
export interface GpuFacts {
  hardware: Record<string, string | number | null>;
  software: Record<string, string>;
}

/** gpu_name of the first GPU; for others only facts that differ. No serial number, no bus id. */
export function gpuFacts(gpus: Pick<Gpus, 'devices' | 'driverVersion'> | null): GpuFacts {
  const facts: GpuFacts = { hardware: {}, software: {} };
  const [first] = gpus?.devices ?? [];
  if (!gpus || !first) return facts;
  facts.hardware['gpu_count'] = gpus.devices.length;
  facts.hardware['gpu_name'] = first.name;
  facts.hardware['gpu_memory_bytes'] = first.memoryTotalBytes;
  for (const { index, name } of gpus.devices)
    if (name !== first.name) facts.hardware[`gpu${index}_name`] = name;
  if (gpus.driverVersion !== null) facts.software['nvidia_driver'] = gpus.driverVersion;
  return facts;
}

/** NVML first; if it is missing or shows no GPU, amd-smi, then rocm-smi, if one is on PATH. Never throws. */
export async function openGpus(path = process.env['PATH'] ?? ''): Promise<GpusOpened> {
  const { nvml, reason } = await openNvml();
  if (nvml && nvml.devices.length > 0) {
    const { driverVersion, devices } = nvml;
    return { gpus: { source: 'NVML', driverVersion, devices, close: () => nvml.close() }, reason: null };
  }
  nvml?.close();
  const failures: string[] = [];
  for (const name of ['amd-smi', 'rocm-smi'] as const) {
    const found = findOnPath(name, path);
    if (found === null) continue;
    try {
      const { devices, close } = await openAmd({ name, path: found });
      return { gpus: { source: name, driverVersion: null, devices, close }, reason: null };
    } catch (error) {
      failures.push(`${name}: ${messageOf(error)}`);
    }
  }
  const amd = failures.length > 0 ? ` ${failures.join('; ')}.` : '';
  if (!reason)
    return openFailure(
      'no_gpu',
      `The NVIDIA driver responds but shows no GPU (CUDA_VISIBLE_DEVICES has no effect on it; a container may hide GPUs).${amd}`,
    );
  if (reason.code === 'no_permission') return openFailure('permission', `${reason.text}.${amd}`);
  if (failures.length > 0) {
    const nvidia = reason.code === 'library_missing' ? 'No NVIDIA driver' : reason.text;
    return openFailure('failed', `${nvidia}.${amd}`);
  }
  if (reason.code === 'library_missing')
    return openFailure(
      'no_driver',
      "The NVIDIA driver's library (libnvidia-ml.so.1) is not installed, and neither amd-smi nor rocm-smi is on PATH.",
    );
  return openFailure('no_driver', `${reason.text}.`);
}

function openFailure(code: 'no_driver' | 'permission' | 'no_gpu' | 'failed', text: string): GpusOpened {
  return { gpus: null, reason: { code, text } };
}
