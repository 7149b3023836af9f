import type { DeviceTimes } from '../devices.js';
import { deviceSweep, priorities } from '../device-sweep.js';
import type { Host } from '../host-threads.js';
import { gapSamples, type GapSamples } from '../launch-latency.js';
import type { Waiting } from '../waiting.js';
import { byPriority, type DeviceOfRank, devicesOfRanks, endOfEqualStarts } from './device-order.js';
import type { LaunchedActivities } from './place-activities.js';
import { sharedBytes, sharedFloats, sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/** Idle intervals, each until its activity starts. */
export interface GapArrays {
  count: number;
  /** Kernels by row, copies as −1 − row. */
  activity: Int32Array;
  idle_ns: Float64Array;
  /** Part of the time before its call that the launching thread spent in synchronizing calls. */
  waiting_ns: Float64Array;
  inGraph: Uint8Array;
}

/** Exclusive times; null: all equal the duration. */
interface ExclusiveTimes {
  kernels: Float64Array | null;
  copies: Float64Array | null;
}

interface InMemoryDeviceTimes extends DeviceTimes {
  gaps: GapArrays;
  exclusive: ExclusiveTimes;
}

/** Inputs and outputs of the sweeps of all devices. */
interface Sweep {
  calls: InMemoryEvents;
  kernels: LaunchedActivities;
  copies: LaunchedActivities;
  /** Per combination: for kernels their priority, for calls the waiting time of their thread. */
  priority: Uint8Array;
  waiting: readonly (Waiting | undefined)[];
  streams: { kernels: Int32Array; copies: Int32Array };
  samples: GapSamples;
  gaps: GapArrays;
  exclusive: ExclusiveTimes;
}

/**
 * Sweeps every device (and rank) once.
 * @param priority of each combination of kernels
 */
export function sweepDevicesInMemory(
  host: Host,
  calls: InMemoryEvents,
  kernels: LaunchedActivities,
  copies: LaunchedActivities,
  priority: Uint8Array,
): InMemoryDeviceTimes {
  const maxRows = kernels.events.rows + copies.events.rows;
  // Pages of a fresh array take no memory until they are written.
  const gaps: GapArrays = {
    count: 0,
    activity: sharedInts(maxRows),
    idle_ns: sharedFloats(maxRows),
    waiting_ns: sharedFloats(maxRows),
    inGraph: sharedBytes(maxRows),
  };
  const exclusive: ExclusiveTimes = { kernels: null, copies: null };
  const samples = gapSamples();
  const waiting = threadWaits(host, calls);
  const streams = streamNumbers(kernels.events, copies.events);
  const sweep = { calls, kernels, copies, priority, waiting, streams, samples, gaps, exclusive };
  for (const device of devicesOfRanks(kernels.events, copies.events)) sweepDevice(sweep, device);
  const overlapping = exclusive.kernels !== null || exclusive.copies !== null;
  return { ...samples.estimate(), overlapping, gaps, exclusive };
}

/**
 * The rules of deviceSweep, with a fast path: an activity that runs alone (nearly all do) has its full duration, and only
 * the gap before it is examined. deviceSweep takes over from the first activity that starts while another runs until all
 * have ended.
 */
function sweepDevice(sweep: Sweep, device: DeviceOfRank): void {
  const { kernels, copies } = sweep;
  const { start_ns: kernelStart, dur_ns: kernelDur } = kernels.events;
  const { start_ns: copyStart, dur_ns: copyDur } = copies.events;
  const overlap = overlapSweep(sweep);
  const writeGap = gapWriter(sweep);
  const copyRows = copies.events.rows;
  const kernelRows = kernels.events.rows;
  const kernelShape = kernels.events.shape;
  const copyShape = copies.events.shape;
  const isOwnKernel = device.kernels;
  const isOwnCopy = device.copies;
  // The next row of each table, and the order of kernels that start together (not the order of the rows).
  let kernel = 0;
  let copy = 0;
  let nextCopyStart = copyRows > 0 ? copyStart[0]! : Number.POSITIVE_INFINITY;
  let sameStart: number[] = [];
  let nextOfSameStart = 0;
  let isSharing = false;
  let previous = 0;
  let busyUntil = Number.NEGATIVE_INFINITY;
  for (;;) {
    let activity = 0;
    if (nextOfSameStart < sameStart.length) {
      activity = sameStart[nextOfSameStart++]!;
    } else if (kernel < kernelRows && kernelStart[kernel]! <= nextCopyStart) {
      if (kernel + 1 < kernelRows && kernelStart[kernel + 1] === kernelStart[kernel]) {
        const to = endOfEqualStarts(kernels.events, kernel);
        sameStart = byPriority(kernels.events, isOwnKernel, sweep.priority, kernel, to);
        nextOfSameStart = 0;
        kernel = to;
        continue;
      }
      activity = kernel++;
      if (isOwnKernel[kernelShape[activity]!] === 0) continue;
    } else if (copy < copyRows) {
      activity = -1 - copy++;
      nextCopyStart = copy < copyRows ? copyStart[copy]! : Number.POSITIVE_INFINITY;
      if (isOwnCopy[copyShape[-1 - activity]!] === 0) continue;
    } else break;
    const isCopy = activity < 0;
    const start = isCopy ? copyStart[-1 - activity]! : kernelStart[activity]!;
    const end = start + (isCopy ? copyDur[-1 - activity]! : kernelDur[activity]!);
    if (start >= busyUntil) {
      if (isSharing) overlap.finish();
      isSharing = false;
      if (start > busyUntil && busyUntil !== Number.NEGATIVE_INFINITY)
        writeGap(activity, previous, busyUntil, start);
      busyUntil = end;
    } else {
      if (!isSharing) overlap.add(previous);
      isSharing = true;
      overlap.add(activity);
      if (end > busyUntil) busyUntil = end;
    }
    previous = activity;
  }
  if (isSharing) overlap.finish();
}

/** Shares the time of overlapping activities, which are added in order of start, and writes their exclusive times. */
function overlapSweep(sweep: Sweep): { add(activity: number): void; finish(): void } {
  const { kernels, copies, exclusive } = sweep;
  const shared = deviceSweep({
    ended(activity, durNs, exclusiveNs) {
      if (exclusiveNs === durNs) return;
      if (activity < 0) (exclusive.copies ??= sharedCopy(copies.events.dur_ns))[-1 - activity] = exclusiveNs;
      else (exclusive.kernels ??= sharedCopy(kernels.events.dur_ns))[activity] = exclusiveNs;
    },
    idle: () => {},
  });
  const add = (activity: number) => {
    const isCopy = activity < 0;
    const row = isCopy ? -1 - activity : activity;
    const { events } = isCopy ? copies : kernels;
    const shape = events.shape[row]!;
    const start = events.start_ns[row]!;
    const streams = isCopy ? sweep.streams.copies : sweep.streams.kernels;
    const priority = isCopy ? priorities.copy : sweep.priority[shape]!;
    shared.add(activity, start, start + events.dur_ns[row]!, priority, streams[shape]!);
  };
  return { add, finish: () => shared.finish() };
}

/** Writes the gap between two activities, with the launch that ended it. */
function gapWriter({ calls, kernels, copies, waiting, samples, gaps }: Sweep) {
  const { start_ns: callStart, dur_ns: callDur, shape: callShape } = calls;
  const { activity: activityOf, idle_ns: idleOf, waiting_ns: waitingOf, inGraph: inGraphOf } = gaps;
  const kernelGraphs = graphShapes(kernels.events);
  const copyGraphs = graphShapes(copies.events);
  const graphs = kernelGraphs.includes(1) || copyGraphs.includes(1);
  /** For a graph node the id of its launch, else NaN. */
  const graphOf = (activity: number): number => {
    const isCopy = activity < 0;
    const row = isCopy ? -1 - activity : activity;
    const { shape, correlation } = isCopy ? copies.events : kernels.events;
    return (isCopy ? copyGraphs : kernelGraphs)[shape[row]!] === 1 ? correlation[row]! : Number.NaN;
  };
  return (activity: number, previous: number, fromNs: number, toNs: number): void => {
    const row = gaps.count++;
    activityOf[row] = activity;
    idleOf[row] = fromNs;
    const inGraph = graphs && graphOf(activity) === graphOf(previous);
    const isKernel = activity >= 0;
    const call = isKernel ? kernels.call[activity]! : copies.call[-1 - activity]!;
    if (call < 0 && !inGraph) return;
    const begin = call < 0 ? Number.NaN : callStart[call]!;
    const end = call < 0 ? Number.NaN : begin + callDur[call]!;
    const threadWaiting = call < 0 ? undefined : waiting[callShape[call]!];
    const waited = samples.addGap(inGraph, isKernel, begin, end, threadWaiting, fromNs, toNs);
    // Fresh arrays are zero, and a page that is never written takes no memory.
    if (inGraph) inGraphOf[row] = 1;
    if (waited > 0) waitingOf[row] = waited;
  };
}

function sharedCopy(values: Float64Array): Float64Array {
  const copy = sharedFloats(values.length);
  copy.set(values);
  return copy;
}

/** For each combination, whether it is a graph node. */
function graphShapes({ shapes }: InMemoryEvents): Uint8Array {
  const nodes = shapes['graph_node'];
  return Uint8Array.from(shapes['pid'] ?? [], (_, code) =>
    Number(nodes !== undefined && !Number.isNaN(nodes[code]!)),
  );
}

/** For each combination of calls, the waiting time of its thread. */
function threadWaits(host: Host, { shapes }: InMemoryEvents) {
  return Array.from(
    shapes['pid'] ?? [],
    (pid, code) => host.processes.get(pid)?.threads.get(shapes['tid']![code]!)?.waiting,
  );
}

/** A stream belongs to its process and context. */
function streamNumbers(kernels: InMemoryEvents, copies: InMemoryEvents) {
  const numbers = new Map<string, number>();
  const numbersOf = ({ shapes }: InMemoryEvents) =>
    Int32Array.from(shapes['pid'] ?? [], (pid, code) => {
      const key = `${pid},${shapes['context']![code]},${shapes['stream']![code]}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key)!;
    });
  return { kernels: numbersOf(kernels), copies: numbersOf(copies) };
}
