import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../model/errors.js';
import { toolJson } from './amd-json.js';
import { rocmSmiArguments, rocmSmiCards, rocmSmiProcesses } from './amd-rocm-smi.js';
import { amdSmiMetric, amdSmiProcesses, type AmdReading, amdSmiStatic } from './amd-smi.js';
import { failureLine, runTool } from './doctor/run-tool.js';
import { monotonicNs } from '../model/clock.js';
import {
  emptyGpuDetails,
  emptyGpuSample,
  type GpuDetails,
  type GpuDevice,
  type GpuProcess,
  type GpuSample,
} from './telemetry-gpu.js';

/** Pause between two readings: both tools are Python programs that take about a second. */
const periodMs = 1000;
const timeoutMs = 10_000;
/** Listing processes needs a separate program. */
const processPeriodNs = 5e9;

export interface AmdTool {
  name: 'amd-smi' | 'rocm-smi';
  path: string;
}

interface AmdGpus {
  devices: GpuDevice[];
  close(): void;
}

interface Answer extends AmdReading {
  name?: string | null;
}

/**
 * Opens AMD's GPUs through a tool: reads once, then continues in the background until close().
 * @throws Error with the output of the tool, when it fails or lists no GPU
 */
export async function openAmd(tool: AmdTool): Promise<AmdGpus> {
  const ask = async (...args: string[]) => {
    const run = await runTool(tool.path, args, { timeoutMs });
    if (!run.ok) throw new Error(failureLine(run));
    return toolJson(run.stdout);
  };
  const read = async (): Promise<Answer[]> =>
    tool.name === 'amd-smi'
      ? amdSmiMetric(await ask('metric', '--json'))
      : rocmSmiCards(await ask(...rocmSmiArguments));
  const first = await read();
  if (first.length === 0) throw new Error('it lists no GPUs');
  const facts = tool.name === 'amd-smi' ? amdSmiStatic(await ask('static', '--json').catch(() => null)) : [];

  const latest = new Map(first.map((answer) => [answer.index, answer]));
  let sampledNs = monotonicNs();
  let failure: string | null = null;
  let closed = false;
  const poll = async () => {
    for (;;) {
      await sleep(periodMs, undefined, { ref: false });
      if (closed) return;
      try {
        for (const answer of await read()) latest.set(answer.index, answer);
        sampledNs = monotonicNs();
        failure = null;
      } catch (error) {
        failure = messageOf(error);
      }
    }
  };
  void poll();

  /** Null if the tool fails. All GPUs share one reading. */
  let processes: Promise<Map<number, GpuProcess[]> | null> = Promise.resolve(null);
  let processesNs = -Infinity;
  const listProcesses = async (index: number) =>
    tool.name === 'amd-smi'
      ? amdSmiProcesses(await ask('process', '--json'))
      : new Map([[index, rocmSmiProcesses(await ask('--showpids', '--json'))]]);
  async function readProcesses(index: number): Promise<GpuProcess[] | null> {
    // rocm-smi reports the memory of a process, but not on which GPU.
    if (tool.name !== 'amd-smi' && first.length > 1) return null;
    if (monotonicNs() - processesNs >= processPeriodNs) {
      processesNs = monotonicNs();
      processes = listProcesses(index).catch(() => null);
    }
    return (await processes)?.get(index) ?? null;
  }

  const devices = first.map(({ index, name, details, memoryTotalBytes }): GpuDevice => {
    const about = facts.find((fact) => fact.index === index);
    const powerLimitW = about?.powerLimitW ?? details.powerLimitW;
    const gpuSample: GpuSample = emptyGpuSample();
    return {
      index,
      name: about?.name ?? name ?? null,
      uuid: null,
      pciBusId: null,
      memoryTotalBytes,
      computeCapability: null,
      powerLimitW,
      powerDefaultLimitW: null,
      maxSmClockMhz: null,
      maxMemoryClockMhz: null,
      migEnabled: null,
      migDevices: [],
      get missing() {
        const why = failure ?? `${tool.name} does not report it`;
        const nulls = Object.entries(gpuSample).filter(([, value]) => value === null);
        return Object.fromEntries(nulls.map(([field]) => [field, why]));
      },
      get sampledNs() {
        return sampledNs;
      },
      sample: () => Object.assign(gpuSample, latest.get(index)?.sample ?? emptyGpuSample()),
      energyJ: () => latest.get(index)?.energyJ ?? null,
      energyLaterJ: async () => latest.get(index)?.energyJ ?? null,
      async details(): Promise<GpuDetails> {
        const now = latest.get(index)?.details ?? emptyGpuDetails();
        return { ...now, powerLimitW: now.powerLimitW ?? powerLimitW, processes: await readProcesses(index) };
      },
    };
  });
  return { devices, close: () => (closed = true) };
}
