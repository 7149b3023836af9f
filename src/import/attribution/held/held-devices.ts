import { deviceSweep } from '../device-sweep.js';
import type { DeviceTimes } from '../devices.js';
import type { Host } from '../host-threads.js';
import { latencySamples } from '../launch-latency.js';
import { byDevice } from './device-order.js';
import type { HeldEvents } from './held-trace.js';
import type { Launched } from './launched.js';
import { sharedBytes, sharedFloats, sharedInts } from './shared-arrays.js';

/** Idle intervals, each until its activity begins. */
export interface HeldGaps {
  count: number;
  /** Kernels by row, copies as −1 − row. */
  activity: Int32Array;
  idle_ns: Float64Array;
  /** For how much of the time before its call the launching thread waited. */
  waiting_ns: Float64Array;
  inGraph: Uint8Array;
}

export interface HeldDeviceTimes extends DeviceTimes {
  gaps: HeldGaps;
  /** Exclusive times; null: all have their duration. */
  exclusive: { kernels: Float64Array | null; copies: Float64Array | null };
}

/** Sweeps every device (and rank) once. @param priority of each combination of kernels */
export function sweepHeldDevices(
  host: Host,
  calls: HeldEvents,
  kernels: Launched,
  copies: Launched,
  priority: Uint8Array,
): HeldDeviceTimes {
  const most = kernels.events.rows + copies.events.rows;
  // Pages of a fresh array take no memory until they are written.
  const gaps: HeldGaps = {
    count: 0,
    activity: sharedInts(most),
    idle_ns: sharedFloats(most),
    waiting_ns: sharedFloats(most),
    inGraph: sharedBytes(most),
  };
  const exclusive: HeldDeviceTimes['exclusive'] = { kernels: null, copies: null };
  const launch = latencySamples();
  const graphNode = latencySamples();
  const now = { call: -1, graph: Number.NaN, kernel: true };
  let graphBefore = Number.NaN;
  const waitingOf = threadWaits(host, calls);

  const events = {
    ended(activity: number, durNs: number, exclusiveNs: number) {
      if (exclusiveNs === durNs) return;
      if (activity < 0) (exclusive.copies ??= sharedCopy(copies.events.dur_ns))[-1 - activity] = exclusiveNs;
      else (exclusive.kernels ??= sharedCopy(kernels.events.dur_ns))[activity] = exclusiveNs;
    },
    idle(activity: number, fromNs: number, toNs: number) {
      const inGraph = now.graph === graphBefore;
      let waited = 0;
      if (inGraph) graphNode.add(toNs - fromNs);
      else if (now.call >= 0) {
        const callStart = calls.start_ns[now.call]!;
        const callEnd = callStart + calls.dur_ns[now.call]!;
        if (now.kernel && callStart >= fromNs && callEnd <= toNs) launch.add(toNs - callEnd);
        if (callStart > fromNs)
          waited = waitingOf[calls.shape[now.call]!]?.within(fromNs, Math.min(callStart, toNs)) ?? 0;
      }
      const at = gaps.count++;
      gaps.activity[at] = activity;
      gaps.idle_ns[at] = fromNs;
      gaps.waiting_ns[at] = waited;
      gaps.inGraph[at] = Number(inGraph);
    },
  };

  const streams = streamNumbers(kernels.events, copies.events);
  for (const { activities } of byDevice(kernels.events, copies.events, priority)) {
    const sweep = deviceSweep(events);
    graphBefore = Number.NaN;
    for (const activity of activities) {
      const isCopy = activity < 0;
      const row = isCopy ? -1 - activity : activity;
      const { events: of, call } = isCopy ? copies : kernels;
      const shape = of.shape[row]!;
      const class_ = isCopy ? 2 : priority[shape]!;
      now.call = call[row]!;
      now.graph = Number.isNaN(of.shapes['graph_node']?.[shape] ?? Number.NaN)
        ? Number.NaN
        : of.correlation[row]!;
      now.kernel = !isCopy;
      const start = of.start_ns[row]!;
      const stream = (isCopy ? streams.copies : streams.kernels)[shape]!;
      sweep.add(activity, start, start + of.dur_ns[row]!, class_, stream);
      graphBefore = now.graph;
    }
    sweep.finish();
  }
  const overlapping = exclusive.kernels !== null || exclusive.copies !== null;
  return { launch: launch.estimate(), graphNode: graphNode.estimate(), overlapping, gaps, exclusive };
}

/** Of each combination of calls, the waiting of its thread. */
function threadWaits(host: Host, { shapes }: HeldEvents) {
  return Array.from(
    shapes['pid'] ?? [],
    (pid, code) => host.processes.get(pid)?.threads.get(shapes['tid']![code]!)?.waiting,
  );
}

/** A stream is one of its process and context. */
function streamNumbers(kernels: HeldEvents, copies: HeldEvents) {
  const numbers = new Map<string, number>();
  const of = ({ shapes }: HeldEvents) =>
    Int32Array.from(shapes['pid'] ?? [], (pid, code) => {
      const key = `${pid},${shapes['context']![code]},${shapes['stream']![code]}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key)!;
    });
  return { kernels: of(kernels), copies: of(copies) };
}

function sharedCopy(values: Float64Array): Float64Array {
  const copy = sharedFloats(values.length);
  copy.set(values);
  return copy;
}
