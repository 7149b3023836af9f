import type { Issue } from '../../model/document.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../../model/tables.js';
import { messageOf } from '../../model/errors.js';
import { toolJson } from '../amd-json.js';
import { rocmSmiCards } from '../amd-rocm-smi.js';
import { amdSmiMetric, amdSmiProcesses } from '../amd-smi.js';
import { monotonicNs } from '../../model/clock.js';
import { docker } from './docker.js';
import type { MemorySource } from './memory-target.js';

interface GpuReading {
  /** As the container numbers them. */
  gpu: number;
  usedBytes: number | null;
  utilizationPercent: number | null;
}

interface InsideTool {
  name: string;
  args: string[];
  read(stdout: string): GpuReading[];
}

/** Tools in images of NVIDIA and AMD, in the order in which they are tried. */
export const insideTools: InsideTool[] = [
  {
    name: 'nvidia-smi',
    args: ['--query-gpu=index,memory.used,utilization.gpu', '--format=csv,noheader,nounits'],
    read: readNvidiaSmi,
  },
  { name: 'amd-smi', args: ['metric', '--json'], read: (stdout) => readings(amdSmiMetric(toolJson(stdout))) },
  {
    name: 'rocm-smi',
    args: ['--showmeminfo', 'vram', '--showuse', '--json'],
    read: (stdout) => readings(rocmSmiCards(toolJson(stdout))),
  },
];

/** "0, 1234, 17": MiB, as nvidia-smi counts. "[N/A]" is null. */
export function readNvidiaSmi(stdout: string): GpuReading[] {
  return stdout
    .trim()
    .split('\n')
    .filter((line) => /^\s*\d+\s*,/.test(line))
    .map((line) => {
      const [gpu, used, busy] = line.split(',').map((field) => {
        const text = field.trim();
        return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
      });
      return {
        gpu: gpu!,
        usedBytes: used === null || used === undefined ? null : used * 2 ** 20,
        utilizationPercent: busy ?? null,
      };
    });
}

function readings(
  cards: { index: number; sample: { memoryUsedBytes: number | null; utilizationPercent: number | null } }[],
) {
  return cards.map(({ index, sample }) => ({
    gpu: index,
    usedBytes: sample.memoryUsedBytes,
    utilizationPercent: sample.utilizationPercent,
  }));
}

/** The image's first working tool; null if none works. */
export async function findInsideTool(container: string): Promise<InsideTool | null> {
  for (const tool of insideTools) {
    const answer = await docker(['exec', container, tool.name, ...tool.args]);
    if (answer.exitCode !== 0) continue;
    try {
      if (tool.read(answer.stdout).some(({ usedBytes }) => usedBytes !== null)) return tool;
    } catch {
      // Unexpected output: try the next one.
    }
  }
  return null;
}

/** Each reading starts a process in the container: amd-smi takes half a second of one core. */
const periodMs = 500;
/** The process list is a separate call, for amd-smi only. */
const processesEvery = 4;

/**
 * GPU memory (kind used; with amd-smi also process) and utilization as reported by the container's own tool, for machines where this
 * process cannot query the driver.
 * @param gpus GPUs of the container by the driver's numbers, which its record has too; null: they are numbered alike
 */
export function insideGpuSource(
  container: string,
  tool: InsideTool,
  gpus: readonly number[] | null,
): MemorySource {
  const numberOf = (inside: number) => gpus?.[inside] ?? inside;
  return {
    name: 'container',
    tool: { name: tool.name, version: null },
    start(keys) {
      const memory: Row<'memory'>[] = [];
      const telemetry: Row<'telemetry'>[] = [];
      const failures: string[] = [];
      const stopped = new AbortController();
      let count = 0;
      const sample = async () => {
        const startNs = monotonicNs();
        const answer = await docker(['exec', container, tool.name, ...tool.args]);
        if (answer.exitCode !== 0) {
          failures.push(answer.stderr.trim().split('\n').at(-1) ?? '');
          return;
        }
        const t_ns = Math.round((startNs + monotonicNs()) / 2);
        const common = { ...keys, pid: null, rank: 0 };
        const source = `${tool.name} in the container`;
        for (const { gpu, usedBytes, utilizationPercent } of tool.read(answer.stdout)) {
          if (usedBytes !== null) {
            memory.push({
              ...common,
              device: numberOf(gpu),
              t_ns,
              kind: 'used',
              bytes: usedBytes,
              point: null,
              source,
            });
          }
          if (utilizationPercent !== null) {
            telemetry.push({
              ...common,
              t_ns,
              scope: `gpu${numberOf(gpu)}`,
              metric: 'utilization_percent',
              value: utilizationPercent,
            });
          }
        }
        if (tool.name === 'amd-smi' && count++ % processesEvery === 0) {
          const listed = await docker(['exec', container, 'amd-smi', 'process', '--json']);
          if (listed.exitCode !== 0) return;
          for (const [gpu, processes] of amdSmiProcesses(toolJson(listed.stdout))) {
            for (const { pid, usedBytes } of processes) {
              if (usedBytes === null) continue;
              const row = {
                device: numberOf(gpu),
                t_ns,
                kind: 'process',
                bytes: usedBytes,
                point: null,
                source,
              };
              memory.push({ ...common, ...row, pid });
            }
          }
        }
      };
      const loop = async () => {
        while (!stopped.signal.aborted) {
          const began = Date.now();
          await sample().catch((error: unknown) => failures.push(messageOf(error)));
          const waitMs = Math.max(0, periodMs - (Date.now() - began));
          if (!stopped.signal.aborted) await sleep(waitMs);
        }
      };
      const looping = loop();
      return {
        async stop() {
          stopped.abort();
          await looping;
          const issues: Issue[] =
            failures.length === 0
              ? []
              : [
                  {
                    code: 'container_sampling',
                    severity: 'warning',
                    text: `${tool.name} in the container ${container} failed at times: ${failures[0]}`,
                    count: failures.length,
                  },
                ];
          return { memory, telemetry, issues };
        },
      };
    },
  };
}
