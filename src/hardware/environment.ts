import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import type { Issue } from '../model/document.js';
import { packageRoot } from '../model/installation.js';
import { evaluatorVariable } from '../model/outer-run.js';
import { toolVersion } from '../model/version.js';
import type { CpuCache } from './caches.js';
import { detectCpu, hiddenByHypervisor } from './cpu.js';
import { kernelFiles } from './kernel-files.js';

export type Fact = string | number | boolean | null;

/** `hardware{}` and `software{}` of a session's manifest, with reasons for their nulls. */
interface Environment {
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  issues: Issue[];
}

/**
 * Facts for comparing two sessions, without any that identify the machine or its owner: no host name, user name, path,
 * environment variable or serial number.
 */
export function describeEnvironment(root = '/', platform: NodeJS.Platform = process.platform): Environment {
  const cpu = detectCpu(root, platform);
  const cache = (cpuCache: CpuCache | null): Fact => (cpuCache ? cpuCache.totalBytes : null);
  const hardware: Record<string, Fact> = {
    cpu_model: cpu.model,
    cpu_architecture: cpu.architecture,
    cpu_logical_cores: cpu.logicalCores,
    cpu_physical_cores: cpu.physicalCores,
    cpu_sockets: cpu.sockets,
    cpu_usable_cores: cpu.usableCores,
    cpu_quota_cores: cpu.quotaCores,
    cpu_avx2: cpu.isa?.avx2 ?? null,
    cpu_avx512: cpu.isa?.avx512 ?? null,
    cpu_vnni: cpu.isa?.vnni ?? null,
    cpu_amx: cpu.isa?.amx ?? null,
    cpu_neon: cpu.isa?.neon ?? null,
    cpu_bf16: cpu.isa?.bf16 ?? null,
    l1d_bytes: cache(cpu.caches.l1d),
    l2_bytes: cache(cpu.caches.l2),
    l3_bytes: cache(cpu.caches.l3),
    l3_instances: cpu.caches.l3?.instances ?? null,
    memory_total_bytes: cpu.memoryTotalBytes,
    memory_limit_bytes: cpu.memoryLimitBytes,
    numa_nodes: cpu.numaNodes,
    cpu_governor: cpu.governor,
    cpu_max_clock_mhz: cpu.maxClockMhz,
    virtualized: cpu.virtualized,
    virtualized_by: cpu.virtualizedBy,
  };
  const software: Record<string, Fact> = {
    inferscope: toolVersion,
    os: platform,
    kernel: os.release(),
    distribution: distribution(kernelFiles(root).text('/etc/os-release') ?? '') ?? null,
    node: process.versions.node,
    v8: process.versions.v8,
    // Null if it is not installed, which is normal: only some commands need it.
    onnxruntime_node: packageVersion('onnxruntime-node'),
    duckdb_node_api: packageVersion('@duckdb/node-api'),
  };
  const issues = unknownFactIssues(
    // A machine without limits is normal, so a missing limit is not an issue.
    Object.entries(cpu.missing).filter(
      ([field, why]) =>
        why !== hiddenByHypervisor &&
        (platform !== 'linux' || (field !== 'quotaCores' && field !== 'memoryLimitBytes')),
    ),
  );
  if (cpu.virtualized) {
    const hidden = Object.entries(cpu.missing).flatMap(([field, why]) =>
      why === hiddenByHypervisor ? (fieldWords[field] ?? field) : [],
    );
    issues.push({
      code: 'virtual_machine',
      severity: 'info',
      text: `This is a virtual machine: cache sizes come from the hypervisor and may differ from the chip's.${hidden.length > 0 ? ` It hides ${hidden.join(' and ')}.` : ''}`,
    });
  }
  const evaluated = evaluatedIssue();
  if (evaluated) issues.push(evaluated);
  return { hardware, software, issues };
}

const fieldWords: Readonly<Record<string, string>> = {
  model: 'CPU model',
  physicalCores: 'physical cores',
  sockets: 'sockets',
  isa: 'instruction sets',
  l1d: 'L1 cache',
  l2: 'L2 cache',
  l3: 'L3 cache',
  numaNodes: 'NUMA nodes',
  quotaCores: 'CPU quota',
  memoryLimitBytes: 'memory limit',
  governor: 'CPU governor',
  maxClockMhz: 'maximum CPU clock',
  virtualized: 'virtualization',
};

/** One issue per reason, listing all the facts it hides. */
function unknownFactIssues(missing: readonly (readonly [field: string, why: string])[]): Issue[] {
  const reasons = [...new Set(missing.map(([, why]) => why))];
  return reasons.map((reason): Issue => {
    const fields = missing.filter(([, why]) => why === reason).map(([field]) => fieldWords[field] ?? field);
    return {
      code: 'hardware_unknown',
      severity: 'info',
      text: `Not known: ${fields.join(', ')} (${reason}).`,
    };
  });
}

const evaluatorTools: Record<string, string> = {
  nsys: 'nsys',
  ncu: 'ncu (it replays kernels)',
  torch: "PyTorch's profiler",
  'gemm-log': 'the logs of cuBLAS',
};

/** Measurements below a profiler include its overhead; null without one. */
export function evaluatedIssue(env: NodeJS.ProcessEnv = process.env): Issue | null {
  const evaluator = env[evaluatorVariable] ?? '';
  const tool = evaluatorTools[evaluator];
  if (tool === undefined) return null;
  const text = `This ran below inferscope run --evaluator ${evaluator}: its times include the overhead of ${tool}. Do not set them as a baseline.`;
  return { code: 'under_evaluator', severity: 'warning', text };
}

/** PRETTY_NAME of os-release(5), unquoted: `Debian GNU/Linux 12 (bookworm)`. */
export function distribution(osRelease: string): string | null {
  return /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(osRelease)?.[1] ?? null;
}

/** Version of an installed package from its package.json; loading the package would take 100 ms. */
export function packageVersion(name: string): string | null {
  const folders = createRequire(join(packageRoot(), 'package.json')).resolve.paths(name) ?? [];
  for (const folder of folders) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'));
      if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
        return String(manifest.version);
      }
    } catch {
      // Not in this node_modules: hoisted installs have it in a parent folder.
    }
  }
  return null;
}
