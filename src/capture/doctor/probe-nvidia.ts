import { kernelFiles } from '../../hardware/kernel-files.js';
import { openNvml } from '../nvml.js';
import type { NvidiaFacts, NvmlFacts, ToolFacts } from './facts.js';
import { findTool } from './find-tool.js';

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

/** Nsight Systems: `NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0`. */
export function findNsys(timeoutMs: number): Promise<ToolFacts | null> {
  return findTool({
    name: 'nsys',
    patterns: [
      '/opt/nvidia/nsight-systems/*/bin/nsys',
      '/opt/nvidia/nsight-systems-cli/*/bin/nsys',
      '/opt/nvidia/nsight-systems/*/target-linux-*/nsys',
      '/usr/local/cuda*/bin/nsys',
      '/usr/lib/nsight-systems/bin/nsys',
    ],
    versionArgs: ['--version'],
    version: /version\s+(\d+(?:\.\d+)+)/i,
    timeoutMs,
  });
}

/** Nsight Compute: three lines, the last `Version 2025.3.1.0 (build 36398880) (public-release)`. */
export function findNcu(timeoutMs: number): Promise<ToolFacts | null> {
  return findTool({
    name: 'ncu',
    patterns: [
      '/opt/nvidia/nsight-compute/*/ncu',
      '/usr/local/cuda*/bin/ncu',
      '/usr/local/cuda*/nsight-compute-*/ncu',
      '/usr/lib/nsight-compute/ncu',
    ],
    versionArgs: ['--version'],
    version: /version\s+(\d+(?:\.\d+)+)/i,
    timeoutMs,
  });
}
