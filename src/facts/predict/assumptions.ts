import type { PredictAssumption, Fusion, Launch } from '../../model/documents/predict.js';
import type { DeviceRoofs } from './device-roofs.js';
import { formatNs } from '../../vocabulary/format.js';

/** Costs of putting kernels on the device for the assumed kind of program, ns. */
export interface LaunchCosts {
  launch: Launch;
  /** Host time from one launch to the next: driver, framework and Python. */
  hostPerLaunchNs: number;
  /** Minimum time from the start of a node of a replayed CUDA graph to that of the next. */
  nodeNs: number;
  /** Host time per stage apart from launches: copying tokens to the host, and the next call. */
  hostPerStageNs: number;
}

/**
 * Measured on an H200 (driver 580, torch 2.11, transformers 5.17): TinyLlama's eager decode step, 9.3 ms for 924
 * launches.
 */
const eagerLaunchNs = 10_000;
/**
 * An empty kernel launched from C++ on the same kind of machine. The rest of eagerLaunchNs is Python and the
 * dispatcher.
 */
const emptyLaunchNs = 3_000;
/** Same machine: a graph node with negligible kernels. */
export const graphNodeNs = 1_500;
/** Same machine: a decode step on the host clock minus its time between two device events. */
const hostStageNs = 27_000;

export const launchSource = 'measured with one model on one H200, torch 2.11, transformers 5.17, 2026-11';

/** Assumed costs with the source of each; CPU operators have no launch cost. */
export function launchCosts(
  launch: Launch,
  roofs: DeviceRoofs,
): { costs: LaunchCosts; assumptions: PredictAssumption[] } {
  if (roofs.kind === 'cpu') {
    return {
      costs: { launch, hostPerLaunchNs: 0, nodeNs: 0, hostPerStageNs: 0 },
      assumptions: [
        {
          id: 'launch',
          text: 'operators run on the CPU: there are no launches and no waits for a host',
        },
      ],
    };
  }
  const measuredLaunch = roofs.launchNs.value;
  const hostPerLaunchNs = (measuredLaunch ?? emptyLaunchNs) + (eagerLaunchNs - emptyLaunchNs);
  const nodeNs = roofs.graphNodeNs.value ?? graphNodeNs;
  const nodeSource = roofs.graphNodeNs.value === null ? launchSource : roofs.graphNodeNs.source;
  return {
    costs: { launch, hostPerLaunchNs, nodeNs, hostPerStageNs: hostStageNs },
    assumptions: [
      {
        id: 'launch',
        text:
          launch === 'eager'
            ? `every kernel is launched separately; the host needs ${formatNs(hostPerLaunchNs)} per launch, ${formatNs(measuredLaunch ?? emptyLaunchNs)} of it as for an empty kernel${measuredLaunch === null ? '' : ` (${roofs.launchNs.source})`}, the rest for PyTorch and the model's Python (${launchSource}); a stage takes the longer of host and device`
            : `decode steps are one CUDA graph with at least ${formatNs(nodeNs)} per node (${nodeSource}); the prefill is launched kernel by kernel, ${formatNs(hostPerLaunchNs)} each, as in serving engines`,
      },
      {
        id: 'host',
        text: `${formatNs(hostStageNs)} of host time per stage, to copy the token to the host and make the next call (${launchSource})`,
      },
    ],
  };
}

export function fusionAssumption(fusion: Fusion, launch: Launch): PredictAssumption {
  const text: Record<Fusion, string> = {
    none:
      launch === 'graph'
        ? 'kernels of Hugging Face transformers, nothing fused: each step of a norm, rotation and activation is a kernel; a graph needs a static cache, whose keys and values are repeated for every query head and attended to the length reserved'
        : 'kernels of Hugging Face transformers, nothing fused: each step of a norm, rotation and activation is a kernel, and the cache is copied to be extended',
    standard:
      'fused as by serving engines and torch.compile: QKV is one GEMM, gate + up is one; norm + addition, rotation and activation are one kernel each',
    full: 'norms, rotation and activations are fused into the GEMM before or after them: they take no time and move no bytes',
  };
  return { id: 'fusion', text: text[fusion] };
}

/** Effects that a prediction does not model, listed with it. */
export const notModeled: readonly string[] = [
  'paged KV cache',
  'continuous batching',
  'overlap of kernels',
  'work split over GPUs',
  'clocks that fall under load',
  'speculative decoding',
];
