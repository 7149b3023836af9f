import { setTimeout as sleep } from 'node:timers/promises';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import { identifyGpuProcess } from '../monitor/gpu-processes.js';
import type { GpuProcess } from '../telemetry-gpu.js';
import type { Gpus } from '../telemetry-gpus.js';
import { formatBytes } from '../../vocabulary/format.js';
import { scopeLabel } from '../../vocabulary/sampled-metrics.js';

/** Memory that driver and display use on an idle GPU. */
const unusedBytes = 2 ** 30;

interface GpuUse {
  index: number;
  processes: readonly GpuProcess[] | null;
  computeProcesses: number | null;
  memoryUsedBytes: number | null;
  migEnabled: boolean | null;
}

/** A process that has just exited, perhaps ours of the previous round, stays listed for a while. */
const goneMs = 3000;
const pollMs = 300;

/** Records who uses the GPUs before the first case: other processes affect every figure. */
export async function findOtherProcesses(gpus: Pick<Gpus, 'devices'>, waitMs = goneMs): Promise<Issue[]> {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const issues = await findSharedGpus(gpus);
    if (issues.length === 0 || Date.now() >= deadline) return issues;
    await sleep(pollMs);
  }
}

async function findSharedGpus({ devices }: Pick<Gpus, 'devices'>): Promise<Issue[]> {
  const issues: Issue[] = [];
  for (const device of devices) {
    const { processes } = await device.details();
    const { memoryUsedBytes, computeProcesses } = device.sample();
    const { index, migEnabled } = device;
    const issue = sharedBefore({ index, migEnabled, processes, memoryUsedBytes, computeProcesses });
    if (issue) issues.push(issue);
  }
  return issues;
}

/** A container cannot see other processes, but sees their memory. */
export function sharedBefore(use: GpuUse, nameOf = (pid: number) => identifyGpuProcess(pid).name) {
  const { index, processes, memoryUsedBytes: used } = use;
  const count = Math.max(processes?.length ?? 0, use.computeProcesses ?? 0);
  if (count > 0) {
    const names = (processes ?? []).map(({ pid, usedBytes }) => {
      const memory = usedBytes === null ? '' : ` with ${formatBytes(usedBytes)}`;
      return `${nameOf(pid) ?? 'a process'} (pid ${pid})${memory}`;
    });
    const processNames = names.length > 0 ? names.join(', ') : `${count} of them`;
    const usedText = used === null ? '' : `, ${formatBytes(used)} of its memory in use`;
    return sharedIssue(
      `Other processes used GPU ${index} before the first case: ${processNames}${usedText}.`,
    );
  }
  if (used === null || used <= unusedBytes || use.migEnabled === true) return null;
  return sharedIssue(
    `GPU ${index} had ${formatBytes(used)} in use before the first case, by processes that are not visible from here.`,
  );
}

/** Processes that appeared during a measurement; a collective has several ranks, one per GPU. */
export function sharedDuring(telemetry: readonly Row<'telemetry'>[]): Issue[] {
  const maxByScope = new Map<string, number>();
  for (const { scope, metric, value } of telemetry)
    if (metric === 'compute_processes' && scope && typeof value === 'number')
      maxByScope.set(scope, Math.max(maxByScope.get(scope) ?? 0, value));
  return [...maxByScope]
    .filter(([, count]) => count > 1)
    .map(([scope, count]) =>
      sharedIssue(`Up to ${count} processes used ${scopeLabel(scope)} during the measurement.`),
    );
}

function sharedIssue(text: string): Issue {
  return {
    code: 'gpu_shared',
    severity: 'warning',
    text: `${text} The figures were measured on a shared device.`,
  };
}
