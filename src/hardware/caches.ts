import { type KernelFiles, parseCpuList } from './kernel-files.js';

export interface CpuCache {
  /** Size of one instance. */
  bytes: number;
  /** Number of logical CPUs that share one instance. */
  sharedBy: number;
  /** Distinct instances over all online CPUs. */
  instances: number;
  /** bytes × instances: capacity of all cores together. */
  totalBytes: number;
}

export interface CpuCaches {
  l1d: CpuCache | null;
  l2: CpuCache | null;
  l3: CpuCache | null;
}

/** sysfs sizes: `32K`, `512K`, `32768K`, `105M`. Null for anything else. */
export function parseCacheSize(text: string): number | null {
  const match = /^(\d+)([KMG]?)$/.exec(text.trim());
  if (!match) return null;
  const factor = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[match[2] as '' | 'K' | 'M' | 'G'];
  return Number(match[1]) * factor;
}

/** Data and unified caches from /sys/devices/system/cpu/cpu*\/cache (in a VM the hypervisor states the sizes). */
export function readCaches(files: KernelFiles, cpus: number[]): CpuCaches {
  const caches: Record<'l1d' | 'l2' | 'l3', Map<string, { bytes: number; sharedBy: number }>> = {
    l1d: new Map(),
    l2: new Map(),
    l3: new Map(),
  };
  for (const cpu of cpus) {
    const folder = `/sys/devices/system/cpu/cpu${cpu}/cache`;
    for (const index of files.entries(folder).filter((name) => /^index\d+$/.test(name))) {
      const level = files.integer(`${folder}/${index}/level`);
      const type = files.text(`${folder}/${index}/type`);
      const bytes = parseCacheSize(files.text(`${folder}/${index}/size`) ?? '');
      if (type === 'Instruction' || bytes === null) continue;
      const shared = files.text(`${folder}/${index}/shared_cpu_list`) ?? String(cpu);
      const key = level === 1 ? 'l1d' : level === 2 ? 'l2' : level === 3 ? 'l3' : null;
      if (key) caches[key].set(shared, { bytes, sharedBy: parseCpuList(shared).length });
    }
  }
  const summarize = (instances: Map<string, { bytes: number; sharedBy: number }>): CpuCache | null => {
    const all = [...instances.values()];
    const largest = all.toSorted((a, b) => b.bytes - a.bytes)[0];
    if (!largest) return null;
    // Hybrid chips have small and large cores: the largest instance is reported, and the total is the sum of all.
    return {
      ...largest,
      instances: all.length,
      totalBytes: all.reduce((sum, cache) => sum + cache.bytes, 0),
    };
  };
  return { l1d: summarize(caches.l1d), l2: summarize(caches.l2), l3: summarize(caches.l3) };
}
