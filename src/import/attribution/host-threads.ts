import { freshPositions, type OpenStage, type Positions } from './open-stage.js';
import { waiting, type Waiting } from './waiting.js';

/** An operator that has begun. */
export interface OpenOp {
  id: number;
  parent: OpenOp | null;
  depth: number;
  endNs: number;
  selfNs: number;
  stage: number;
  /** What it, or else the nearest operator around it that does, says of kernels launched inside; NaN: nothing. */
  ofKernels: number;
}

export interface Thread {
  process: Process;
  /** Push/pop ranges, outermost first. */
  ranges: OpenStage[];
  ops: OpenOp[];
  /** End of the last API call that is in no other one. */
  callEndNs: number;
  /** Whether it has a range anywhere in the capture: then the marks of other threads do not speak for it. */
  marked: boolean;
  positions: Positions;
  waiting: Waiting;
}

export interface Process {
  threads: Map<number, Thread>;
  marked: Thread[];
  /** Start/end ranges, in order of their start. */
  ranges: OpenStage[];
  positions: Positions;
}

export interface Host {
  processes: Map<number, Process>;
}

/** @param marked threads that have push/pop ranges */
export function hostThreads(marked: readonly { pid: number; tid: number }[]): Host {
  const host: Host = { processes: new Map() };
  for (const { pid, tid } of marked) {
    const thread = threadOf(host, pid, tid);
    thread.marked = true;
    processOf(host, pid).marked.push(thread);
  }
  return host;
}

export function processOf(host: Host, pid: number): Process {
  let process = host.processes.get(pid);
  if (!process) {
    process = { threads: new Map(), marked: [], ranges: [], positions: freshPositions() };
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
      marked: false,
      positions: freshPositions(),
      waiting: waiting(),
    };
    process.threads.set(tid, thread);
  }
  return thread;
}

/** Innermost that holds [.., endNs]; the last of `open` began last. All began before the interval. */
export function containing<T extends { endNs: number }>(open: readonly T[], endNs: number): T | null {
  for (let i = open.length - 1; i >= 0; i--) if (open[i]!.endNs >= endNs) return open[i]!;
  return null;
}

/** How a stage was found; the codes of kernels.attributed_by. */
export const attributions = ['api', 'process_range', 'thread', 'time'] as const;

/** What the sweep of the host found for a call: stage × attributions + how; 0: no stage. */
export const placeOf = ({ stage, by }: Found): number => (stage ? stage.id * attributions.length + by : 0);

export interface Found {
  stage: OpenStage | null;
  /** Index in `attributions`. */
  by: number;
}

/**
 * As stageAround, of something that begins at startNs. Ranges that ended before go first: what is left on the stack is
 * open, or overlaps what is.
 * @returns whether it begins in a range of its thread and ends after it
 */
export function stageAt(thread: Thread, startNs: number, endNs: number, found: Found): boolean {
  const { ranges } = thread;
  while (ranges.length > 0 && ranges[ranges.length - 1]!.endNs < startNs) ranges.pop();
  stageAround(thread, endNs, found);
  return ranges.length > 0 && found.stage !== ranges[ranges.length - 1];
}

/**
 * Stage of something a thread does: its own innermost range around it, else a start/end range of the process, else,
 * for a thread nobody marked (a worker of the framework), the range that another thread of the process is in.
 */
function stageAround(thread: Thread, endNs: number, found: Found): void {
  const { process } = thread;
  found.by = 0;
  found.stage = containing(thread.ranges, endNs);
  if (found.stage) return;
  if (process.ranges.length > 0) {
    found.by = 1;
    found.stage = containing(process.ranges, endNs);
    if (found.stage) return;
  }
  if (thread.marked) return;
  found.by = 2;
  for (const other of process.marked) {
    const stage = containing(other.ranges, endNs);
    if (stage && (!found.stage || stage.startNs > found.stage.startNs)) found.stage = stage;
  }
}
