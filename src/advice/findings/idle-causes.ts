import type { GpuRoofs } from '../../facts/roofs.js';
import { type StageFacts, waitCauses, type WaitCause } from './stage-facts.js';

/**
 * What the device does between two nodes of a CUDA graph: nothing for 0.44 µs (1100 nodes of a decode step replayed on an
 * H200, nsys). Work queued back to back in a stream leaves as little.
 */
export const nodeGapNs = 450;
/** The most a node was seen to cost beside its kernel. */
export const slowNodeGapNs = 1500;

/**
 * A graph needs a static KV cache behind a mask, which costs kernels time: of TinyLlama's eager steps on an H200 17 % at batch 1
 * and 74 % at batch 32 (2.73 → 4.74 ms).
 */
export const staticCacheShare = 0.75;

/**
 * From one node of a graph to the next on this GPU: the measured period of empty nodes, else what was seen on an H200.
 * @returns least_ns what every gap keeps anyway (idleCauses.floor), and words after "follow each other"
 */
export function graphNode(roofs: Pick<GpuRoofs, 'name' | 'graphNodeNs'> | null): {
  ns: number;
  least_ns: number;
  words: string;
} {
  const measured = roofs?.graphNodeNs.value ?? null;
  const ns = Math.max(nodeGapNs, measured ?? nodeGapNs);
  const words =
    measured !== null
      ? `${Math.round(ns)} ns apart, as nodes of a graph were measured to on this GPU`
      : /H200/.test(roofs?.name ?? '')
        ? `${ns} ns apart, as nodes of a graph do on an H200`
        : `${ns} ns apart, as nodes of a graph were seen to on an H200 (on this GPU it was not measured: inferscope roofline does)`;
  return { ns, least_ns: nodeGapNs, words };
}

/** The device's idle time of a mean instance by what would have to change for it to go, ms; the parts sum to it. */
export interface IdleCauses {
  /** Between activities that follow each other as closely as the device can: remains whatever the host does. */
  floor: number;
  /** The host hands work over more slowly than the device does it, launch by launch. */
  launch: number;
  /** The host waited for the device, and the device then for the host; by what the wait was for. */
  wait: Record<WaitCause, number>;
  /** Single long stretches of the host. */
  host: number;
  compile: number;
  firstUse: number;
  /** Queued work that waited for other streams or devices; activities whose launch is not known. */
  dependency: number;
  unattributed: number;
}

/**
 * With the host kept waiting for T of a step's W, it needs H = W − T for its own work: free of waits the step would take
 * max(H, B), B what the device needs. So waits cost min(T, idle time between launches), and what idle time is left there is
 * the launches' own: a host without waits would still be slower than the device.
 */
export function idleCauses(facts: StageFacts): IdleCauses {
  const { long_host_ms: host, compile_ms: compile, first_use_ms: firstUse } = facts;
  const short = Math.max(0, facts.host_ms - host - compile - firstUse);
  const between = short + facts.launch_overhead_ms + facts.launch_latency_ms + facts.synchronization_ms;
  const waited = waitCauses.reduce((sum, cause) => sum + facts.waits[cause].ms, 0);
  const floor = Math.min(between, (facts.kernels * nodeGapNs) / 1e6);
  const restartable = between - floor;
  // A device that was drained begins later than the usual latency after a launch: what is beyond it counts as dependency.
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
    dependency: facts.device_dependency_ms - Math.max(0, byWaits - restartable),
    unattributed: facts.unattributed_ms,
  };
}

/**
 * A graph takes the host out of the whole step, long stretches of its dispatch too (StageFacts.inside_ms). They are claimed
 * where the launches alone cost a third of them; else the stretches are what is to be found.
 */
const stretchesClaimed = 3;

/** Of the long stretches those that a graph of the step leaves out, ms. */
export const stretchesOfDispatch = (inside_ms: number, { launch }: Pick<IdleCauses, 'launch'>): number =>
  inside_ms <= stretchesClaimed * launch ? inside_ms : 0;
