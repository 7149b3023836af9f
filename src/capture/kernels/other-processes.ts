import type { Issue } from '../../model/document.js';
import { identifyGpuProcess } from '../monitor/gpu-processes.js';
import type { Gpus } from '../telemetry-gpus.js';

/** What a driver and a display hold by themselves on a GPU that nobody uses. */
const unusedBytes = 2 ** 30;

/**
 * Who uses the GPUs before the first case: what others run at the same time is part of every figure. A container does
 * not see the processes of others, but sees their memory.
 */
export async function otherProcesses({ devices }: Pick<Gpus, 'devices'>): Promise<Issue[]> {
  const issues: Issue[] = [];
  for (const device of devices) {
    const { processes } = await device.details();
    const { memoryUsedBytes, computeProcesses } = device.sample();
    const held = memoryUsedBytes === null ? '' : `, ${gib(memoryUsedBytes)} of its memory in use`;
    const count = processes?.length ?? computeProcesses ?? 0;
    if (count > 0) {
      const names = (processes ?? []).map(({ pid, usedBytes }) => {
        const { name } = identifyGpuProcess(pid);
        const used = usedBytes === null ? '' : ` with ${gib(usedBytes)}`;
        return `${name ?? 'a process'} (pid ${pid})${used}`;
      });
      const who = names.length > 0 ? `: ${names.join(', ')}` : `: ${count} of them`;
      issues.push(busy(`Others ran on gpu${device.index} before the first case${who}${held}.`));
    } else if ((memoryUsedBytes ?? 0) > unusedBytes && device.migEnabled !== true) {
      const text = `gpu${device.index} had ${gib(memoryUsedBytes!)} in use before the first case, by processes that are not seen from here.`;
      issues.push(busy(text));
    }
  }
  return issues;
}

function busy(text: string): Issue {
  const doubt = 'Figures share the device with them.';
  return { code: 'gpu_shared', severity: 'warning', text: `${text} ${doubt}` };
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
