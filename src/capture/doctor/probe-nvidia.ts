import { kernelFiles } from '../../hardware/kernel-files.js';
import { openNvml } from '../nvml.js';
import type { NvidiaFacts, NvmlFacts } from './facts.js';

/** CAP_SYS_ADMIN is bit 21 of the capability masks (linux/capability.h). */
const capSysAdmin = 1n << 21n;

export async function probeNvidia(root = '/'): Promise<NvidiaFacts> {
  const files = kernelFiles(root);
  const opened = await openNvml();
  let nvml: NvmlFacts | null = null;
  if (opened.nvml) {
    nvml = {
      driverVersion: opened.nvml.driverVersion,
      cudaVersion: opened.nvml.cudaVersion,
      devices: opened.nvml.devices.map((device) => ({
        name: device.name,
        memoryTotalBytes: device.memoryTotalBytes,
        computeCapability: device.computeCapability,
        migEnabled: device.migEnabled,
        computeProcesses: device.sample().computeProcesses,
      })),
    };
    opened.nvml.close();
  }
  return {
    nvml,
    nvmlReason: opened.reason,
    kernelModule: parseKernelModule(files.text('/proc/driver/nvidia/version') ?? ''),
    countersAdminOnly: parseAdminOnly(files.text('/proc/driver/nvidia/params') ?? ''),
    sysAdmin: hasSysAdmin(files.text('/proc/self/status') ?? ''),
    perfEventParanoid: files.integer('/proc/sys/kernel/perf_event_paranoid'),
  };
}

/** `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build …` */
export function parseKernelModule(version: string): string | null {
  return /^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s/m.exec(version)?.[1] ?? null;
}

/** `RmProfilingAdminOnly: 1` in /proc/driver/nvidia/params. */
export function parseAdminOnly(params: string): boolean | null {
  const value = /^RmProfilingAdminOnly:\s*(\d+)/m.exec(params)?.[1];
  return value === undefined ? null : value !== '0';
}

/** `CapEff:\t000001ffffffffff` of /proc/self/status. */
export function hasSysAdmin(status: string): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & capSysAdmin) !== 0n;
}
