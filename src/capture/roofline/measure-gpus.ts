import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Issue } from '../../model/document.js';
import type { GpuRoofline, MeasuredGpu } from '../../model/documents/gpu-roofline.js';
import { InferscopeError } from '../../model/errors.js';
import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { migInstance } from '../../hardware/mig.js';
import { pciIdOf } from '../../hardware/pci-id.js';
import type { KernelCase, KernelDevice } from '../../model/kernels.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { createScratch } from '../../model/scratch.js';
import type { Row } from '../../model/tables.js';
import type { KernelCapture } from '../kernels/capture.js';
import { measureCases } from '../kernels/measure-cases.js';
import { torchRunner, type TorchRunner } from '../kernels/runner.js';
import { type Gpus, openGpus } from '../telemetry-gpus.js';
import {
  type CachedGpuRoofline,
  frameworkKey,
  gpuMachineKey,
  saveGpuRoofline,
  readGpuRoofline,
  rooflineFolder,
} from './cache.js';
import { conditionsWithin, driverIndex } from './conditions.js';
import { collectiveCases, type PlannedDevice, rooflineOrder } from './gpu-plan.js';
import { collectivesOf, type ConditionsOf, gpuRoofsOf } from './gpu-roofs.js';
import { outlierIssues, roofIssues } from './issues.js';
import { readMicrobenchmarkLines } from './microbenchmark-lines.js';
import { comparisonCases, searchRoofs } from './search.js';

interface GpuRooflineOptions {
  /** --python; null finds one with torch. */
  python: string | null;
  cacheDir: string;
  fresh: boolean;
  /** Folder to store record files in; null removes them. */
  scratch: string | null;
  signal: AbortSignal;
  onProgress: (progress: { done: number; total: number; label: string }) => void;
}

/** The part of a measurement that a session stores. */
interface RooflineRecording {
  captures: KernelCapture[];
  telemetry: Row<'telemetry'>[];
  memory: Row<'memory'>[];
}

export type MeasuredGpuRoofline = CachedGpuRoofline & { recording: RooflineRecording | null };

/**
 * Rooflines of every GPU that PyTorch sees, and of the links between them; cached by GPUs, driver and PyTorch. The first GPU of each name
 * is measured fully, the others only for comparison with it.
 * @throws E_ENGINE_MISSING (no Python with torch, no GPU in it), E_INTERRUPTED, E_WORKLOAD_FAILED (nothing was measured)
 */
export async function gpuRoofline(options: GpuRooflineOptions): Promise<MeasuredGpuRoofline> {
  const runner = await torchRunner({ python: options.python, device: 'cuda' });
  const { gpus } = await openGpus();
  try {
    const facts = {
      torch: runner.version,
      build: runner.python.torch?.hip ?? runner.python.torch?.cuda ?? null,
      gpus: runner.gpus,
    };
    const machine = gpus ?? { source: 'NVML' as const, driverVersion: null, devices: [] };
    const keys = { machine: gpuMachineKey(machine), framework: frameworkKey(facts) };
    const cached = options.fresh ? null : await readGpuRoofline(options.cacheDir, keys);
    if (cached) return { ...cached, recording: null };
    const measured = await withScratch(options, (scratch) => measureAll(runner, gpus, scratch, options));
    if (!options.signal.aborted) await saveGpuRoofline(options.cacheDir, keys, measured.roofline);
    return { roofline: measured.roofline, cached: false, ageS: 0, recording: measured.recording };
  } finally {
    gpus?.close();
  }
}

async function withScratch<T>(
  { scratch, cacheDir }: GpuRooflineOptions,
  measure: (scratch: string) => Promise<T>,
): Promise<T> {
  if (scratch !== null) return measure(scratch);
  const folder = rooflineFolder(cacheDir);
  await mkdir(folder, { recursive: true });
  const temporary = createScratch(folder, 'scratch');
  try {
    return await measure(temporary.path);
  } finally {
    temporary.remove();
  }
}

async function measureAll(
  runner: TorchRunner,
  gpus: Gpus | null,
  scratch: string,
  options: GpuRooflineOptions,
): Promise<{ roofline: GpuRoofline; recording: RooflineRecording }> {
  const started = new Date();
  const recording: RooflineRecording = { captures: [], telemetry: [], memory: [] };
  const rounds = { scratch, recording, options };
  const conditions = conditionsOf(recording, gpus);
  const planned = runner.gpus.map((name, index) => plannedGpu(name, index, gpus));
  const { measured, issues } = await measureEachName(planned, gpus, rounds);
  const collectives = await measureAllReduce(rounds, planned, conditions(0), issues);
  failWithoutAny(measured, recording, options.signal);
  issues.push(...recording.captures.flatMap((capture, index) => captureIssues(capture, index === 0)));
  const device = recording.captures.find((capture) => capture.device !== null)?.device ?? null;
  const roofline: GpuRoofline = {
    framework: device?.framework ?? `torch ${runner.version}`,
    driver: gpus?.driverVersion ?? device?.driver ?? null,
    measured_at: started.toISOString(),
    seconds: (Date.now() - started.getTime()) / 1000,
    gpus: measured.toSorted((a, b) => a.index - b.index),
    collectives,
    issues: withoutRepeats(issues),
  };
  return { roofline, recording };
}

interface Rounds {
  scratch: string;
  recording: RooflineRecording;
  options: GpuRooflineOptions;
}

/** Measures the first GPU of each name fully, and the others for comparison with it. */
async function measureEachName(
  planned: readonly PlannedDevice[],
  gpus: Gpus | null,
  rounds: Rounds,
): Promise<{ measured: MeasuredGpu[]; issues: Issue[] }> {
  const { recording, options } = rounds;
  const conditions = conditionsOf(recording, gpus);
  const issues: Issue[] = [];
  const measured: MeasuredGpu[] = [];
  for (const [index, plan] of planned.entries()) {
    if (measured.some((gpu) => gpu.name === plan.name) || options.signal.aborted) continue;
    const lines = await searchRoofs(
      plan,
      (round, cases) => runRound(rounds, plan, round, cases),
      options.signal,
    );
    const reported = recording.captures.findLast((capture) => capture.order.device === plan.device)?.device;
    const gpu = gpuRoofsOf(factsOf(plan, index, reported ?? null, gpus), 'full', lines, conditions(index));
    measured.push(gpu);
    issues.push(...roofIssues(gpu, lines));
    const sameName = planned.filter((other, position) => position > index && other.name === plan.name);
    const cases = comparisonCases(lines, gpu.compute);
    if (sameName.length === 0 || cases.length === 0 || options.signal.aborted) continue;
    const compared = await Promise.all(
      sameName.map(async (other) => {
        const roundLines = await runRound(rounds, other, 'compared', cases);
        const position = planned.indexOf(other);
        return gpuRoofsOf(factsOf(other, position, null, gpus), 'compared', roundLines, conditions(position));
      }),
    );
    measured.push(...compared);
    issues.push(...outlierIssues([gpu, ...compared]));
  }
  return { measured, issues };
}

/** Runs one order in its own process. */
async function runRound(
  { scratch, recording, options }: Rounds,
  { device }: PlannedDevice,
  round: string,
  cases: KernelCase[],
): Promise<MicrobenchmarkLine[]> {
  const executionId = `${device.replace(':', '')}-${round}`;
  const folder = join(scratch, executionId);
  await mkdir(folder, { recursive: true });
  const capture = await measureCases(rooflineOrder(executionId, device, cases), {
    // The interpreter is not probed twice.
    runner: await torchRunner({ python: options.python, device }),
    recordPath: join(folder, 'record.jsonl'),
    scratch: folder,
    host: 'localhost',
    signal: options.signal,
    onProgress: ({ case: name, done, total }) =>
      options.onProgress({ done, total, label: `${device}, ${round} round: ${name}` }),
    onRows: ({ telemetry, memory }) => {
      recording.telemetry.push(...telemetry);
      recording.memory.push(...memory);
    },
  });
  recording.captures.push(capture);
  return readMicrobenchmarkLines(capture.recordPath);
}

function plannedGpu(name: string, index: number, gpus: Gpus | null): PlannedDevice {
  const device = driverDevice(index, gpus);
  const mig = migInstance(name) !== null;
  return {
    device: `cuda:${index}`,
    name,
    computeCapability: device?.computeCapability ?? null,
    memoryBytes: mig ? null : (device?.memoryTotalBytes ?? null),
    smCount: gpuSheet(name)?.smCount ?? null,
  };
}

function driverDevice(index: number, gpus: Gpus | null) {
  const devices = gpus?.devices ?? [];
  const driverGpu = driverIndex(index, devices);
  return devices.find((device) => device.index === driverGpu) ?? null;
}

function factsOf(plan: PlannedDevice, index: number, reported: KernelDevice | null, gpus: Gpus | null) {
  return {
    ...plan,
    index,
    computeCapability: reported?.compute_capability ?? plan.computeCapability,
    smCount: reported?.sm_count ?? plan.smCount,
    memoryBytes: reported?.memory_bytes ?? plan.memoryBytes,
    l2Bytes: reported?.l2_bytes ?? null,
    powerLimitW: driverDevice(index, gpus)?.powerLimitW ?? null,
    pciId: pciIdOf(driverDevice(index, gpus)?.pciBusId ?? null),
  };
}

function conditionsOf(recording: RooflineRecording, gpus: Gpus | null) {
  const devices = gpus?.devices ?? [];
  return (index: number): ConditionsOf =>
    (line) =>
      conditionsWithin(recording.telemetry, `gpu${driverIndex(index, devices)}`, {
        fromNs: line.t_ns,
        toNs: line.end_ns,
      });
}

/** All-reduce over all GPUs; null and an issue if it fails, as it does between MIG instances, on which NCCL does not run. */
async function measureAllReduce(
  rounds: Rounds,
  planned: PlannedDevice[],
  conditions: ConditionsOf,
  issues: Issue[],
): Promise<GpuRoofline['collectives']> {
  const [first] = planned;
  if (!first || planned.length < 2 || rounds.options.signal.aborted) return null;
  const lines = await runRound(rounds, first, 'all-reduce', collectiveCases(planned.length, first));
  const collectives = collectivesOf(first.name, planned.length, lines, conditions);
  if (!collectives) {
    const why = lines.find((line) => line.text !== null)?.text;
    const text = `All-reduce over ${planned.length} GPUs was not measured${why ? `: ${why}` : '.'}`;
    issues.push({ code: 'collectives_not_measured', severity: 'warning', text });
  }
  return collectives;
}

function failWithoutAny(measured: MeasuredGpu[], { captures }: RooflineRecording, signal: AbortSignal): void {
  if (measured.some((gpu) => gpu.compute.length > 0 || gpu.bandwidth.length > 0)) return;
  if (signal.aborted) {
    throw new InferscopeError('E_INTERRUPTED', {
      what: 'stopped before a roof was measured',
      why: 'There are no results yet.',
      fix: 'Run it again: inferscope roofline',
    });
  }
  const failure = captures
    .flatMap(({ launches }) => launches)
    .find((launch) => launch.failure !== null)?.failure;
  if (failure instanceof InferscopeError) throw failure;
  throw new InferscopeError('E_WORKLOAD_FAILED', {
    what: 'no measurement of the GPU succeeded',
    why:
      failure instanceof Error
        ? failure.message
        : 'All cases failed; inferscope doctor checks driver and torch.',
    fix: 'inferscope kernels gemm --device cuda   shows the error of a single operation; --device cpu measures the CPU.',
  });
}

/** Issues of the host sampler do not concern a GPU. */
const hostCodes = new Set(['clock_nominal', 'clock_unreadable']);

/** Other processes are taken from the first capture: later ones also see our own processes on the other GPUs. */
function captureIssues({ issues }: KernelCapture, first: boolean): Issue[] {
  return issues.filter(({ code }) => !hostCodes.has(code) && (first || code !== 'gpu_shared'));
}

function withoutRepeats(issues: Issue[]): Issue[] {
  return [...new Map(issues.map((issue) => [`${issue.code} ${issue.text}`, issue])).values()];
}
