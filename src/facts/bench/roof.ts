import { rooflineTime } from '../../llm/roofline-time.js';
import type { StageShape } from '../../llm/shape.js';
import { totalWork } from '../../llm/work-totals.js';
import type { BenchPoint } from '../../model/bench.js';
import type { BenchExpectation, BenchPointResult } from '../../model/documents/bench.js';
import type { GpuRoofline } from '../../model/documents/gpu-roofline.js';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import { type Figure, missing, type MissingFigure } from '../../model/figure.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import { necessaryOps, type WorkloadModel } from '../model-work.js';
import { neededPeaks, utilizationRoofs, type UtilizationRoofs } from '../utilization/roofs.js';
import { stageShares, workingSetBytes } from '../utilization/stage.js';
import { graphNodeNs, launchSource } from '../predict/assumptions.js';
import { onCpu, remoteDevice } from './machine.js';
import { formatSetting, plural } from '../../vocabulary/format.js';

/**
 * Share of the data sheet's roofs that kernels reach, per operation: the lowest of 13 stages of fixed programs on an
 * H200 and an H100 (test/fixtures/diagnosis, explain; 0.58 to 0.80). Excluded are three decode steps with kernels too
 * short to fill the GPU, which the launch costs cover, and a deliberately slow kernel.
 */
const kernelShare = { value: 0.58, source: 'the lowest of 13 stages on an H200 and an H100' };
/** Kernels per decoder layer of an eager decode step: 924 for TinyLlama's 22 layers, one model. */
const launchesPerLayer = 42;
/** Host time per launch, the upper end for eager PyTorch. It bounds a range; `predict` uses the measured value. */
const launchUs = 25;
const nodeUs = graphNodeNs / 1e3;
/**
 * Ratio of CPU operators to their roofs: 1.8 in float32 prefill and decode at batch 1 (llama-24m, one thread, other
 * load on the machine). Batch 8 took 2.3 and 4.1, int4 10 to 21; those are reported as above the range.
 */
const cpuExcess = { value: 2, source: '1.8 in 2 float32 stages at batch 1 on one CPU' };

/** Roofs of the engine's device; missing for a server, which does not report its hardware. */
export function roofsOf(
  { workload, hardware }: Pick<ManifestData, 'hardware'> & { workload: Workload },
  rooflines: { cpu: MachineRoofline | null; gpu: GpuRoofline | null },
): UtilizationRoofs | MissingFigure {
  if (workload.device === remoteDevice) {
    return missing('remote', 'a server does not report its hardware');
  }
  return utilizationRoofs({ workload, hardware }, rooflines, { onCpu: onCpu(workload) });
}

/** Whether a variant replays its decode steps as CUDA graphs, by its engine's arguments: vLLM does by default. */
export function usesGraphs(workload: Workload, engineArgs: Record<string, string>): boolean {
  if (onCpu(workload) || workload.device === remoteDevice) return false;
  const { name } = workload.engine;
  if (name === 'vllm') return !/^(true|1)$/i.test(engineArgs['enforce_eager'] ?? 'false');
  return engineArgs['mode'] === 'cudagraph';
}

type Utilization = Pick<BenchPointResult, 'model_utilization' | 'expected'>;

/** MFU, MBU, bound, and the range predicted from the roofline, of one point. */
export function pointRoof(
  point: BenchPoint,
  measured: { ttft: Figure; tpot: Figure; decodeKernels: Figure; graphs: boolean },
  model: WorkloadModel | MissingFigure,
  roofs: UtilizationRoofs | MissingFigure,
): Utilization {
  const { batch_size: batchSize, input_len, output_len } = point;
  const prefill: StageShape = { phase: 'prefill', batchSize, newTokens: input_len, contextTokens: 0 };
  // Step i of output_len − 1 reads a cache of input_len + i tokens. This is the mean.
  const cached = input_len + Math.max(0, output_len - 2) / 2;
  const decode: StageShape = { phase: 'decode', batchSize, newTokens: 1, contextTokens: cached };
  // Prefill is launched kernel by kernel even if decode is a graph, because prompts vary in length.
  const prefillRoof = stageRoof(
    prefill,
    measured.ttft,
    { kernels: measured.decodeKernels, graphs: false },
    model,
    roofs,
  );
  const decodeRoof =
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
      prefill_mfu: prefillRoof.mfu,
      prefill_mbu: prefillRoof.mbu,
      decode_mfu: decodeRoof.mfu,
      decode_mbu: decodeRoof.mbu,
      prefill_bound: prefillRoof.bound,
      decode_bound: decodeRoof.bound,
    },
    expected: { ttft: prefillRoof.expected, tpot: decodeRoof.expected },
  };
}

interface StageLaunches {
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
  launches: StageLaunches,
  model: WorkloadModel | MissingFigure,
  roofs: UtilizationRoofs | MissingFigure,
): StageRoof {
  if ('reason' in model) return noStage(model);
  if ('reason' in roofs) return noStage(roofs);
  const ops = necessaryOps(model, shape);
  const { architecture } = model;
  const attended = shape.contextTokens + shape.newTokens;
  const workingSet = workingSetBytes(model, shape.batchSize, attended);
  const { mfu, mbu, bound } = stageShares(totalWork(ops), duration, workingSet, roofs);
  const bandwidth = roofs.bandwidth(workingSet);
  const peaks = neededPeaks(
    [...new Set(ops.filter(({ flops }) => flops > 0).map(({ dtype }) => dtype))],
    roofs.peak,
  );
  const limit = 'reason' in peaks ? peaks : rooflineTime(ops, peaks, bandwidth.value);
  return {
    mfu,
    mbu,
    bound,
    expected:
      'reason' in limit
        ? limit
        : expectation(
            limit.roofline_s * 1e3,
            limit.one_by_one_s * 1e3,
            launches,
            architecture.layers.length,
            {
              kind: roofs.kind,
              source: bandwidth.value === null ? '' : bandwidth.source,
            },
          ),
  };
}

/** Range from the roofline to the typical time of a program that runs operation by operation; `how` states the computation. */
function expectation(
  low: number,
  serialMs: number,
  { kernels, graphs }: StageLaunches,
  layers: number,
  { kind, source }: Pick<UtilizationRoofs, 'kind'> & { source: string },
): BenchExpectation {
  const serialFormula = 'Σ over operations max(F/P, B/BW)';
  const lowest = `low = max(FLOPs / peak, bytes / bandwidth), ${source}`;
  if (kind === 'cpu') {
    return {
      unit: 'ms',
      low,
      high: cpuExcess.value * serialMs,
      explanation: `${lowest}; high = ${cpuExcess.value} × ${serialFormula} (${cpuExcess.source})`,
    };
  }
  const kernelsMs = serialMs / kernelShare.value;
  const atShare = `high = ${serialFormula} / ${kernelShare.value} (${kernelShare.source})`;
  const launches = kernels.value ?? launchesPerLayer * layers;
  const countSource =
    kernels.value === null
      ? `${launchesPerLayer} per layer as in one model × ${layers} layers assumed`
      : 'counted in a decode step';
  if (graphs) {
    return {
      unit: 'ms',
      low,
      high: kernelsMs + (launches * nodeUs) / 1e3,
      explanation: `${lowest}; ${atShare} + ${plural(launches, 'node')} of a CUDA graph (${countSource}) × ${formatSetting(nodeUs, 'µs')} (${launchSource})`,
    };
  }
  return {
    unit: 'ms',
    low,
    high: kernelsMs + (launches * launchUs) / 1e3,
    explanation: `${lowest}; ${atShare} + ${plural(launches, 'launch', 'launches')} (${countSource}) × ${formatSetting(launchUs, 'µs')} on the host (eager PyTorch takes 10 to 25)`,
  };
}
