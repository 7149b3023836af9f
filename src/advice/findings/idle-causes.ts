import type { GpuRoofs } from '../../facts/roofs.js';
import { type StageFacts, waitCauses, type WaitCause } from './stage-facts.js';
import { formatCount, formatNs } from '../../vocabulary/format.js';

/**
 * Gap between two nodes of a CUDA graph: 0.44 µs (1100 nodes of a decode step replayed on an H200, nsys). Work queued back to back
 * in a stream has the same gap.
 */
export const nodeGapNs = 450;
/** Source of `nodeGapNs`. */
export const nodeSource = `measured on ${formatCount(1100)} nodes of one graph on one H200`;
/** Largest measured gap per node. */
export const slowNodeGapNs = 1500;

/**
 * A graph needs a static KV cache with a mask, which slows kernels down: TinyLlama eager steps on an H200, 17 % at batch 1
 * and 74 % at batch 32 (2.73 → 4.74 ms).
 */
export const staticCacheShare = 0.75;
/** Source of `staticCacheShare`. */
export const staticCacheSource =
  'the larger slowdown of two batch sizes, one model on one H200; 17 % at batch 1';

/**
 * Period from one graph node to the next on this GPU: measured with empty nodes, else the value measured on an H200.
 * @returns floor_ns: the part that every gap keeps (idleCauses.floor); words: follow "follow each other"
 */
export function graphNode(roofs: Pick<GpuRoofs, 'graphNodeNs'> | null): {
  ns: number;
  floor_ns: number;
  words: string;
} {
  const measured = roofs?.graphNodeNs.value ?? null;
  const ns = Math.max(nodeGapNs, measured ?? nodeGapNs);
  const words =
    measured !== null
      ? `${formatNs(ns)} apart (graph nodes measured on this GPU)`
      : `${formatNs(ns)} apart (${nodeSource}; run inferscope roofline to measure this GPU)`;
  return { ns, floor_ns: nodeGapNs, words };
}

/** Idle time of the device per mean instance, split by the change that would remove it, in ms; the parts sum to the whole. */
export interface IdleCauses {
  /** Minimum gaps between back-to-back activities; the host cannot remove them. */
  floor: number;
  /** The host launches work more slowly than the device runs it. */
  launch: number;
  /** The host waited for the device, then the device for the host; by cause of the wait. */
  wait: Record<WaitCause, number>;
  /** Long host gaps. */
  host: number;
  compile: number;
  firstUse: number;
}

/**
 * If the host waits for T of a step's wall time W, its own work takes H = W − T. Without waits the step would take max(H, B), where B is
 * the device time. So waits cost min(T, idle time between launches); the remaining idle time there is launch overhead: even
 * without waits the host would be slower than the device.
 */
export function idleCauses(facts: StageFacts): IdleCauses {
  const { long_host_ms: host, compile_ms: compile, first_use_ms: firstUse } = facts;
  const short = Math.max(0, facts.host_ms - host - compile - firstUse);
  const between = short + facts.launch_overhead_ms + facts.launch_latency_ms + facts.synchronization_ms;
  const waited = waitCauses.reduce((sum, cause) => sum + facts.waits[cause].ms, 0);
  const floor = Math.min(between, (facts.kernels * nodeGapNs) / 1e6);
  const restartable = between - floor;
  // A drained device starts later than the usual latency after a launch: the excess counts as dependency.
  const drained = Math.min(facts.device_dependency_ms, Math.max(0, waited - restartable));
  const byWaits = Math.min(waited, restartable + drained);
  const wait = Object.fromEntries(
    waitCauses.map((cause) => [cause, waited > 0 ? (byWaits * facts.waits[cause].ms) / waited : 0]),
  ) as Record<WaitCause, number>;
  return {
    floor,
    launch: Math.max(0, restartable - byWaits),
    wait,
    host,
    compile,
    firstUse,
  };
}

/**
 * Idle time after waits for copies, ms: gaps where the host launched too late, and the usual latency after as many launches as there are
 * copies. After a few copies the host is soon ahead of the device again, and the latency between other kernels stays.
 */
export const copyWaitMs = (
  { wait }: IdleCauses,
  { waits, launches }: Pick<StageFacts, 'waits' | 'launches'>,
  gaps: Pick<StageFacts, 'launch_overhead_ms' | 'synchronization_ms' | 'launch_latency_ms'>,
): number =>
  Math.min(
    wait.copy,
    gaps.launch_overhead_ms +
      gaps.synchronization_ms +
      gaps.launch_latency_ms * Math.min(1, waits.copy.calls / Math.max(1, launches)),
  );

/**
 * A graph removes the host from the whole step, including long dispatch gaps (StageFacts.inside_ms). They are claimed only if
 * the launches cost at least a third of them, or if they are before every fifth launch: one long gap or a few in a step are the problem to
 * report, one in each layer is how the model launches (vLLM without graphs on an H100: 29 to 34 in 100 launches; stock transformers up to 10).
 */
const maxStretchRatio = 3;
const minStretchesPerLaunch = 0.2;

/** Long host gaps that a graph of the step removes, in ms. */
export const stretchesOfDispatch = (
  { inside_ms, insides, launches }: Pick<StageFacts, 'inside_ms' | 'insides' | 'launches'>,
  { launch }: Pick<IdleCauses, 'launch'>,
): number =>
  inside_ms <= maxStretchRatio * launch || insides >= minStretchesPerLaunch * launches ? inside_ms : 0;

/** Minimum waits of the host per step that keep it from preparing the next step while the device runs this one. */
const maxWaitsAhead = 0.5;
/** Minimum steps for a loop in which the host can run ahead. */
const minStepsAhead = 4;

/**
 * Host work before a step launched as one graph that overlaps with device work, ms: a host without waits runs ahead, so
 * the step takes as long as the slower of host and device.
 */
export const overlappedAheadMs = ({ waits, instances, busy_ms, before_ms }: StageFacts): number => {
  const calls = waits.synchronize.calls + waits.read.calls + waits.copy.calls;
  return calls < maxWaitsAhead && instances >= minStepsAhead ? Math.min(busy_ms, before_ms) : 0;
};

/** A longer launch does something else first, such as loading code or waiting for memory. */
const maxLaunchMs = 0.5;
/** With fewer launches, launching is not the bottleneck: a graph of them brings little. */
export const minLaunches = 20;

/** Whether the host launches more slowly than the device runs the work, judged by the idle time before launches. */
export const isLaunchBound = (
  stage: StageFacts,
  { launch }: Pick<IdleCauses, 'launch'>,
  minShare: number,
): boolean =>
  launch >= minShare * stage.wall_ms &&
  stage.launches >= minLaunches &&
  launch <= maxLaunchMs * stage.launches;
