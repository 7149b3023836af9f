import type { KernelFiles } from './kernel-files.js';

interface CgroupLimits {
  /** CPU time per period in cores (0.5 = half a core); null without a quota. */
  quotaCores: number | null;
  /** Memory limit of the group in bytes; null without a limit. */
  memoryLimitBytes: number | null;
}

/** cgroup v2 `cpu.max`: `max 100000` or `150000 100000` (quota and period, µs). */
export function parseCpuMax(text: string): number | null {
  const [quota, period] = text.trim().split(/\s+/);
  const cores = Number(quota) / Number(period ?? 100_000);
  return Number.isFinite(cores) && cores > 0 ? cores : null;
}

/** cgroup v1 writes "no limit" as the largest page-aligned int64, 9223372036854771712. */
const v1NoLimit = 2 ** 60;

/**
 * Limits of this process's cgroup, v1 and v2. A limit on any ancestor applies, so every folder from the process's own
 * up to the mount is read, and the smallest limit counts. In a container without a cgroup namespace the path in
 * /proc/self/cgroup is the host's and does not exist here; then the search ends at the mount, which is the container's.
 */
export function readCgroupLimits(files: KernelFiles): CgroupLimits {
  const quotas: (number | null)[] = [];
  const limits: (number | null)[] = [];
  for (const line of (files.text('/proc/self/cgroup') ?? '').split('\n')) {
    const [hierarchy, controllers = '', path = '/'] = line.split(/:(.*?):(.*)/s);
    const names = controllers.split(',');
    for (const folder of ancestorPaths(path)) {
      if (hierarchy === '0') {
        for (const mount of ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']) {
          quotas.push(parseCpuMax(files.text(`${mount}${folder}/cpu.max`) ?? ''));
          limits.push(files.integer(`${mount}${folder}/memory.max`));
        }
      } else if (names.includes('cpu')) {
        for (const mount of [`/sys/fs/cgroup/${controllers}`, '/sys/fs/cgroup/cpu']) {
          const quota = files.integer(`${mount}${folder}/cpu.cfs_quota_us`);
          const period = files.integer(`${mount}${folder}/cpu.cfs_period_us`);
          quotas.push(quota !== null && period !== null && quota > 0 ? quota / period : null);
        }
      } else if (names.includes('memory')) {
        limits.push(files.integer(`/sys/fs/cgroup/memory${folder}/memory.limit_in_bytes`));
      }
    }
  }
  return {
    quotaCores: smallest(quotas),
    memoryLimitBytes: smallest(limits.map((bytes) => (bytes !== null && bytes < v1NoLimit ? bytes : null))),
  };
}

/** `/a/b` → `/a/b`, `/a`, `` (the mount itself). */
function ancestorPaths(path: string): string[] {
  const parts = path.split('/').filter(Boolean);
  return Array.from({ length: parts.length + 1 }, (_, up) =>
    parts
      .slice(0, parts.length - up)
      .map((part) => `/${part}`)
      .join(''),
  );
}

function smallest(values: (number | null)[]): number | null {
  const knownValues = values.filter((value) => value !== null);
  return knownValues.length > 0 ? Math.min(...knownValues) : null;
}
