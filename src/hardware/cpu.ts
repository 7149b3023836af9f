import os from 'node:os';
import { type CpuCaches, readCaches } from './caches.js';
import { readCgroupLimits } from './cgroup.js';
import { type InstructionSets, instructionSets, parseCpuInfo } from './cpuinfo.js';
import { type KernelFiles, kernelFiles, parseCpuList } from './kernel-files.js';

export interface Cpu {
  model: string | null;
  /** x64, arm64, … (Node's names). */
  architecture: string;
  logicalCores: number;
  physicalCores: number | null;
  sockets: number | null;
  /** Null if the flags cannot be read (outside Linux). */
  isa: InstructionSets | null;
  caches: CpuCaches;
  memoryTotalBytes: number;
  numaNodes: number | null;
  /** CPU quota of the container in cores; null if unset or unreadable. */
  quotaCores: number | null;
  /** Memory limit of the container; null if unset or unreadable. */
  memoryLimitBytes: number | null;
  /** Cores this process may use: its affinity mask, limited by the quota. */
  usableCores: number;
  governor: string | null;
  maxClockMhz: number | null;
  virtualized: boolean | null;
  /** Name of the virtual machine, e.g. `Amazon EC2 m7i.large`. */
  virtualizedBy: string | null;
  /** Reason for each null above, by field name. */
  missing: Record<string, string>;
}

/** Reason why a virtual machine has no governor and no maximum clock. */
export const hiddenByHypervisor = 'the hypervisor hides it: no cpufreq in /sys/devices/system/cpu/cpu0';

/**
 * This machine's CPU, from /proc and /sys on Linux; elsewhere from Node's `os`, with reasons for missing facts. Takes a
 * few milliseconds. A `root` other than `/` reads a recorded machine.
 */
export function detectCpu(root = '/', platform: NodeJS.Platform = process.platform): Cpu {
  return platform === 'linux' ? detectLinux(kernelFiles(root), root === '/') : detectElsewhere(platform);
}

function detectLinux(files: KernelFiles, thisMachine: boolean): Cpu {
  const info = parseCpuInfo(files.text('/proc/cpuinfo') ?? '');
  const online = parseCpuList(files.text('/sys/devices/system/cpu/online') ?? '');
  const logicalCores = online.length || info.logicalCores || os.cpus().length;
  const cpus = online.length > 0 ? online : Array.from({ length: logicalCores }, (_, cpu) => cpu);
  const limits = readCgroupLimits(files);
  const allowed = /^Cpus_allowed_list:\s*(\S+)/m.exec(files.text('/proc/self/status') ?? '')?.[1];
  const affinity = allowed ? parseCpuList(allowed).length : logicalCores;
  const memoryKib = /^MemTotal:\s+(\d+) kB/m.exec(files.text('/proc/meminfo') ?? '')?.[1];
  const maxKhz = files.integer('/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq');
  const numa = files.text('/sys/devices/system/node/online');
  const vendor = ['sys_vendor', 'product_name']
    .map((name) => files.text(`/sys/class/dmi/id/${name}`)?.trim())
    .filter(Boolean)
    .join(' ');
  const virtualized = isVirtual(files, info.flags, vendor);
  const cpu: Cpu = {
    model: info.model ?? (thisMachine ? modelFromNode() : null),
    architecture: os.arch(),
    logicalCores,
    physicalCores: info.physicalCores ?? countDistinctIds(files, cpus, 'thread_siblings_list'),
    sockets: info.sockets ?? countDistinctIds(files, cpus, 'physical_package_id'),
    isa: info.flags.size > 0 ? instructionSets(info.flags) : null,
    caches: readCaches(files, cpus),
    memoryTotalBytes: memoryKib ? Number(memoryKib) * 1024 : os.totalmem(),
    numaNodes: numa === null ? null : parseCpuList(numa).length,
    ...limits,
    usableCores: Math.min(affinity, limits.quotaCores ?? Infinity),
    governor: files.text('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor'),
    maxClockMhz: maxKhz === null ? null : maxKhz / 1000,
    virtualized,
    virtualizedBy: virtualized && vendor ? vendor : null,
    missing: {},
  };
  const noClockReason = virtualized
    ? hiddenByHypervisor
    : 'no cpufreq driver in /sys/devices/system/cpu/cpu0';
  cpu.missing = missingReasons({
    model: [cpu.model, '/proc/cpuinfo names no model'],
    physicalCores: [cpu.physicalCores, 'neither /proc/cpuinfo nor sysfs topology lists cores'],
    sockets: [cpu.sockets, 'neither /proc/cpuinfo nor sysfs topology lists packages'],
    isa: [cpu.isa, '/proc/cpuinfo lists no flags'],
    l1d: [cpu.caches.l1d, 'not listed in /sys/devices/system/cpu/cpu*/cache'],
    l2: [cpu.caches.l2, 'not listed in /sys/devices/system/cpu/cpu*/cache'],
    l3: [cpu.caches.l3, 'not listed in /sys/devices/system/cpu/cpu*/cache'],
    numaNodes: [cpu.numaNodes, 'no /sys/devices/system/node'],
    quotaCores: [cpu.quotaCores, 'no CPU quota is set'],
    memoryLimitBytes: [cpu.memoryLimitBytes, 'no memory limit is set'],
    governor: [cpu.governor, noClockReason],
    maxClockMhz: [cpu.maxClockMhz, noClockReason],
    virtualized: [cpu.virtualized, 'this architecture has no hypervisor flag and no DMI names one'],
  });
  return cpu;
}

/** macOS and others: names and counts only; Apple's caches and clocks would need sysctl. */
function detectElsewhere(platform: string): Cpu {
  const reason = `not read on ${platform}; Linux has it in /proc and /sys`;
  const cpu: Cpu = {
    model: modelFromNode(),
    architecture: os.arch(),
    logicalCores: os.cpus().length,
    physicalCores: null,
    sockets: null,
    isa: null,
    caches: { l1d: null, l2: null, l3: null },
    memoryTotalBytes: os.totalmem(),
    numaNodes: null,
    quotaCores: null,
    memoryLimitBytes: null,
    usableCores: os.availableParallelism(),
    governor: null,
    maxClockMhz: null,
    virtualized: null,
    virtualizedBy: null,
    missing: {},
  };
  const fields = ['physicalCores', 'sockets', 'isa', 'l1d', 'l2', 'l3', 'numaNodes', 'quotaCores'];
  for (const field of [...fields, 'memoryLimitBytes', 'governor', 'maxClockMhz', 'virtualized']) {
    cpu.missing[field] = reason;
  }
  return cpu;
}

function modelFromNode(): string | null {
  return os.cpus()[0]?.model?.trim() || null;
}

function countDistinctIds(files: KernelFiles, cpus: number[], name: string): number | null {
  const ids = new Set(cpus.map((cpu) => files.text(`/sys/devices/system/cpu/cpu${cpu}/topology/${name}`)));
  ids.delete(null);
  return ids.size || null;
}

/**
 * On x86 `hypervisor` (CPUID leaf 1 ECX bit 31) decides. ARM has no such flag: DMI sometimes names the machine, but
 * cloud vendors sell bare metal under the same vendor name.
 */
function isVirtual(files: KernelFiles, flags: ReadonlySet<string>, vendor: string): boolean | null {
  if (flags.has('hypervisor') || files.exists('/sys/hypervisor/type')) return true;
  if (flags.has('fpu')) return false;
  if (/\bmetal\b/i.test(vendor)) return false;
  return /KVM|QEMU|VMware|VirtualBox|Xen|Amazon EC2|Google Compute|Virtual Machine/i.test(vendor)
    ? true
    : null;
}

function missingReasons(fields: Record<string, [unknown, string]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, [value]]) => value === null)
      .map(([name, [, reason]]) => [name, reason]),
  );
}
