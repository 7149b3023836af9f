import { gpuPeakBandwidth, gpuPeakFlops, gpuSheet } from '../../hardware/gpu-peaks.js';
import { kvCacheBytes } from '../../llm/kv-cache.js';
import { rooflineTime } from '../../llm/roofline-time.js';
import type { StageShape } from '../../llm/shape.js';
import { weightBytes } from '../../llm/storage.js';
import { mbu, mfuOfWork, type PeakFlops } from '../../llm/utilization.js';
import { totalWork } from '../../llm/work-totals.js';
import type { BenchPoint } from '../../model/bench.js';
import type { BenchExpectation, BenchPointResult } from '../../model/documents/bench.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import { dtypes } from '../../model/dtype.js';
import { type Figure, mapFigure, missing, type MissingFigure } from '../../model/figure.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import { necessaryOps, workloadModel, type WorkloadModel } from '../model-work.js';
import { bandwidthAt, computePeaks } from '../roofs.js';
import { factOf } from '../trace/devices.js';
import { onCpu, remote } from './machine.js';

/** What the device allows, and whose word that is. */
export interface Roofs {
  kind: 'gpu' | 'cpu';
  peaks: PeakFlops;
  /** Read bandwidth at a working set, B/s. */
  bandwidth(workingSetBytes: number): number | null;
  source: string;
}

/** Of eager programs: share of a roof that their kernels commonly reach; kernels a decoder layer; host cost of a launch. */
const kernelEfficiency = 0.6;
const launchesPerLayer = 42;
const launchUs = 25;
/** From the start of one node of a replayed CUDA graph to that of the next where kernels are too short to tell. */
const nodeUs = 1.5;
/** Operators of a CPU runtime commonly take up to this many times what their own roofs allow. */
const cpuExcess = 2;

/**
 * Dense data-sheet peaks of the GPU (of all GPUs of a tensor-parallel group together), measured roofs of the CPU. GPUs that
 * have no sheet have no roof: it is never that of a similar one.
 */
export function roofsOf(
  { workload, hardware }: Pick<ManifestData, 'hardware'> & { workload: Workload },
  roofline: MachineRoofline | null,
): Roofs | MissingFigure {
  if (onCpu(workload)) {
    if (!roofline) return missing('no_roofline', "this machine's roofline was not measured");
    return {
      kind: 'cpu',
      peaks: computePeaks(roofline),
      bandwidth: (bytes) => bandwidthAt(roofline, bytes).bytesPerS,
      source: `measured roofline (${roofline.engine})`,
    };
  }
  if (workload.device === remote) {
    return missing('remote', 'a server does not tell what it computes on');
  }
  const name = gpuName(workload, hardware);
  if (name === null) return missing('unknown_gpu', 'the session does not name the GPU');
  const sheet = gpuSheet(name);
  if (!sheet) return missing('unknown_gpu', `no data sheet is known for a GPU named "${name}"`);
  const devices = workload.tensor_parallel_size;
  const scaled = (figure: Figure) => (figure.value === null ? null : figure.value * devices);
  const bandwidth = scaled(gpuPeakBandwidth(name));
  return {
    kind: 'gpu',
    peaks: Object.fromEntries(dtypes.map((dtype) => [dtype, scaled(gpuPeakFlops(name, dtype))])),
    bandwidth: () => bandwidth,
    source: `${sheet.source.document}${devices > 1 ? `, × ${devices}` : ''}`,
  };
}

/** As the engine calls it, else as the machine's description does. */
export function gpuName(workload: Workload, hardware: ManifestData['hardware']): string | null {
  const told = workload.engine.options['gpu'];
  if (typeof told === 'string') return told;
  if (workload.device === remote) return null;
  const ordinal = /(\d+)$/.exec(workload.device)?.[1];
  const name =
    factOf(hardware, ordinal === undefined ? null : Number(ordinal), 'name') ?? hardware['gpu0_name'] ?? null;
  return typeof name === 'string' ? name : null;
}

/** Whether a variant replays its decode steps as CUDA graphs, by its engine's arguments: vLLM does unless told otherwise. */
export function usesGraphs(workload: Workload, engineArgs: Record<string, string>): boolean {
  if (onCpu(workload) || workload.device === remote) return false;
  const { name } = workload.engine;
  if (name === 'vllm') return !/^(true|1)$/i.test(engineArgs['enforce_eager'] ?? 'false');
  return engineArgs['mode'] === 'cudagraph';
}

/** The model's arithmetic; missing also where a quantised format's computing is not known. */
export function benchModel(workload: Workload): WorkloadModel | MissingFigure {
  const quantization = workload.model?.quantization ?? null;
  if (quantization !== null && !workload.engine.name.startsWith('onnx')) {
    return missing('unknown_storage', `how this engine stores and computes ${quantization} is not known`);
  }
  return workloadModel(workload);
}

type Utilization = Pick<BenchPointResult, 'model_utilization' | 'expected'>;

/** MFU, MBU, bound, and the range that the roofline leads one to expect, of one point. */
export function pointRoof(
  point: BenchPoint,
  measured: { ttft: Figure; tpot: Figure; decodeKernels: Figure; graphs: boolean },
  model: WorkloadModel | MissingFigure,
  roofs: Roofs | MissingFigure,
): Utilization {
  const { batch_size: batchSize, input_len, output_len } = point;
  const prefill: StageShape = { phase: 'prefill', batchSize, newTokens: input_len, contextTokens: 0 };
  // Step i of output_len − 1 reads a cache of input_len + i tokens: their mean.
  const cached = input_len + Math.max(0, output_len - 2) / 2;
  const decode: StageShape = { phase: 'decode', batchSize, newTokens: 1, contextTokens: cached };
  const one = stageRoof(
    prefill,
    measured.ttft,
    { kernels: measured.decodeKernels, graphs: false },
    model,
    roofs,
  );
  const step =
    output_len < 2
      ? noStage(missing('one_token', 'one output token needs no decode step'))
      : stageRoof(
          decode,
          measured.tpot,
          { kernels: measured.decodeKernels, graphs: measured.graphs },
          model,
          roofs,
        );
  return {
    model_utilization: {
      prefill_mfu: one.mfu,
      prefill_mbu: one.mbu,
      decode_mfu: step.mfu,
      decode_mbu: step.mbu,
      prefill_bound: one.bound,
      decode_bound: step.bound,
    },
    expected: { ttft: one.expected, tpot: step.expected },
  };
}

/** Prefill is launched kernel by kernel also where decode is a graph: prompts have any length. */
interface Launched {
  kernels: Figure;
  graphs: boolean;
}

interface StageRoof {
  mfu: Figure;
  mbu: Figure;
  bound: 'memory' | 'compute' | null;
  expected: BenchExpectation;
}

const noStage = (why: MissingFigure): StageRoof => ({ mfu: why, mbu: why, bound: null, expected: why });

function stageRoof(
  shape: StageShape,
  duration: Figure,
  launched: Launched,
  model: WorkloadModel | MissingFigure,
  roofs: Roofs | MissingFigure,
): StageRoof {
  if ('reason' in model) return noStage(model);
  if ('reason' in roofs) return noStage(roofs);
  const ops = necessaryOps(model, shape);
  const work = totalWork(ops);
  const { architecture, storage } = model;
  const held = {
    kvCache: storage.kvCache,
    batchSize: shape.batchSize,
    contextTokens: shape.contextTokens + shape.newTokens,
  };
  const bandwidth = roofs.bandwidth(
    weightBytes(architecture, storage).total + kvCacheBytes(architecture, held),
  );
  // Of one second: a time of t seconds has 1/t of it.
  const share = (ofOneSecond: Figure): Figure =>
    ofOneSecond.value === null
      ? ofOneSecond
      : mapFigure(
          duration,
          'ratio',
          `${ofOneSecond.source}; ${roofs.source}`,
          (ms) => ofOneSecond.value / (ms / 1e3),
        );
  const limit = rooflineTime(ops, roofs.peaks, bandwidth);
  return {
    mfu: share(mfuOfWork(work, 1, roofs.peaks)),
    mbu: share(mbu(work.bytes_total, 1, bandwidth)),
    bound: 'reason' in limit ? null : limit.bound,
    expected:
      'reason' in limit
        ? limit
        : expectation(
            limit.roofline_s * 1e3,
            limit.one_by_one_s * 1e3,
            launched,
            architecture.layers.length,
            roofs,
          ),
  };
}

/** From the roofline to what programs without fused operators commonly take; how is told with it. */
function expectation(
  low: number,
  oneByOneMs: number,
  { kernels, graphs }: Launched,
  layers: number,
  { kind, source }: Roofs,
): BenchExpectation {
  const lowest = `low = max(FLOPs / peak, bytes / bandwidth), ${source}`;
  if (kind === 'cpu') {
    return {
      unit: 'ms',
      low,
      high: cpuExcess * oneByOneMs,
      how: `${lowest}; high = ${cpuExcess} × Σ over operations max(F/P, B/BW): operation after operation, each at half its roof`,
    };
  }
  const launches = kernels.value ?? launchesPerLayer * layers;
  const counted =
    kernels.value === null
      ? `${launchesPerLayer} a layer × ${layers} layers assumed`
      : 'of a decode step, counted';
  if (graphs) {
    return {
      unit: 'ms',
      low,
      high: low / kernelEfficiency + (launches * nodeUs) / 1e3,
      how: `${lowest}; high = low / ${kernelEfficiency} (kernels of unfused programs) + ${Math.round(launches)} nodes of a CUDA graph (${counted}) × ${nodeUs} µs`,
    };
  }
  return {
    unit: 'ms',
    low,
    high: low / kernelEfficiency + (launches * launchUs) / 1e3,
    how: `${lowest}; high = low / ${kernelEfficiency} (kernels of eager programs) + ${Math.round(launches)} launches (${counted}) × ${launchUs} µs on the host (eager PyTorch takes 10 to 25)`,
  };
}
