import type { StageName } from '../stage-names.js';
import { initialPositions, type OpenStage, type Positions } from './open-stage.js';
import { newWaiting, type Waiting } from './waiting.js';

/** An open operator. */
export interface OpenOp {
  id: number;
  parent: OpenOp | null;
  depth: number;
  endNs: number;
  selfNs: number;
  stage: number;
  /** Class of kernels launched inside, from this operator or the nearest enclosing one that has one; NaN: unknown. */
  kernelClass: number;
}

export interface Thread {
  process: Process;
  /** Push/pop ranges, outermost first. */
  ranges: OpenStage[];
  ops: OpenOp[];
  /** End of the last outermost API call. */
  callEndNs: number;
  /** Whether the program marked a range on it anywhere in the capture: then ranges of other threads do not apply to it. */
  hasRanges: boolean;
  positions: Positions;
  waiting: Waiting;
}

export interface Process {
  threads: Map<number, Thread>;
  threadsWithRanges: Thread[];
  /** Start/end ranges, in order of start. */
  ranges: OpenStage[];
  positions: Positions;
}

export interface Host {
  processes: Map<number, Process>;
}

/**
 * Threads on which the program marked ranges. A thread with ranges of a library only is a worker of the framework: the backward pass of torch
 * runs on one, with the collectives between its kernels.
 * @param ranges threads and names of push/pop ranges
 */
export function markedThreads(
  ranges: readonly { pid: number; tid: number; name: number }[],
  stage: (name: number) => StageName,
): { pid: number; tid: number }[] {
  const marked = new Map<string, { pid: number; tid: number }>();
  for (const { pid, tid, name } of ranges)
    if (!stage(name).library) marked.set(`${pid},${tid}`, { pid, tid });
  return [...marked.values()];
}

/** @param threadsWithRanges threads on which the program marked push/pop ranges */
export function hostThreads(threadsWithRanges: readonly { pid: number; tid: number }[]): Host {
  const host: Host = { processes: new Map() };
  for (const { pid, tid } of threadsWithRanges) {
    const thread = threadOf(host, pid, tid);
    thread.hasRanges = true;
    processOf(host, pid).threadsWithRanges.push(thread);
  }
  return host;
}

export function processOf(host: Host, pid: number): Process {
  let process = host.processes.get(pid);
  if (!process) {
    process = { threads: new Map(), threadsWithRanges: [], ranges: [], positions: initialPositions() };
    host.processes.set(pid, process);
  }
  return process;
}

export function threadOf(host: Host, pid: number, tid: number): Thread {
  const process = processOf(host, pid);
  let thread = process.threads.get(tid);
  if (!thread) {
    thread = {
      process,
      ranges: [],
      ops: [],
      callEndNs: Number.NEGATIVE_INFINITY,
      hasRanges: false,
      positions: initialPositions(),
      waiting: newWaiting(),
    };
    process.threads.set(tid, thread);
  }
  return thread;
}

/** Innermost of the `open` ranges that ends at endNs or later. All started before the event, the last one latest. */
export function findContaining<T extends { endNs: number }>(open: readonly T[], endNs: number): T | null {
  for (let i = open.length - 1; i >= 0; i--) if (open[i]!.endNs >= endNs) return open[i]!;
  return null;
}

/** How a stage was found; the codes of kernels.attributed_by. */
export const attributions = ['api', 'process_range', 'thread', 'time'] as const;

/** Result of the host sweep for a call: stage × attributions + how; 0: no stage. */
export const placeOf = ({ stage, by }: FoundStage): number =>
  stage ? stage.id * attributions.length + by : 0;

export interface FoundStage {
  stage: OpenStage | null;
  /** Index in `attributions`. */
  by: number;
}

/**
 * Like findStageAround, for an event that starts at startNs. Ranges that ended before it are popped first, so that the
 * stack has only ranges that are open or overlap an open one.
 * @returns whether it starts in a range of its thread and ends after that range
 */
export function findStageAt(thread: Thread, startNs: number, endNs: number, found: FoundStage): boolean {
  const { ranges } = thread;
  while (ranges.length > 0 && ranges[ranges.length - 1]!.endNs < startNs) ranges.pop();
  findStageAround(thread, endNs, found);
  return ranges.length > 0 && found.stage !== ranges[ranges.length - 1];
}

/**
 * Stage of an event on a thread: its thread's innermost range around it, else a start/end range of the process, else, for a
 * thread without ranges (a framework's worker), the range that another thread of the process is in.
 */
function findStageAround(thread: Thread, endNs: number, found: FoundStage): void {
  const { process } = thread;
  found.by = 0;
  found.stage = findContaining(thread.ranges, endNs);
  if (found.stage) return;
  if (process.ranges.length > 0) {
    found.by = 1;
    found.stage = findContaining(process.ranges, endNs);
    if (found.stage) return;
  }
  if (thread.hasRanges) return;
  found.by = 2;
  for (const otherThread of process.threadsWithRanges) {
    const stage = findContaining(otherThread.ranges, endNs);
    if (stage && (!found.stage || stage.startNs > found.stage.startNs)) found.stage = stage;
  }
}
