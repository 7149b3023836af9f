import { stageKinds } from '../../../model/record.js';
import type { Columns } from '../../../model/workbench.js';
import type { StageName } from '../../stage-names.js';
import type { HostCounts } from '../host-sweep.js';
import {
  attributions,
  type FoundStage,
  type Host,
  hostThreads,
  markedThreads,
  placeOf,
  type Process,
  processOf,
  findStageAt,
  type Thread,
  threadOf,
} from '../host-threads.js';
import { foldStages } from '../nested-stages.js';
import { openRange, type OpenedRanges } from '../open-range.js';
import type { OpenStage } from '../open-stage.js';
import { closeRanges, type InMemoryRanges, rangeOrder } from './ranges.js';
import { foldInMemory, type InMemoryStages, stageArrays } from './stages.js';
import type { Places } from './places.js';
import { sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

interface SweptHost {
  /** Records when and how long each thread waited. */
  host: Host;
  counts: HostCounts;
  stages: InMemoryStages;
  /** One entry per call. */
  places: Places;
}

/**
 * Like sweepHost, for ranges and calls in memory, without operators. Nearly every call lies in the range that its thread
 * opened last: such calls are placed by two numbers per thread, the others by searching the thread's stack.
 * @param stage by the code of a name
 * @param synchronizing codes of synchronizing calls
 */
export function sweepHostInMemory(
  ranges: InMemoryRanges,
  calls: InMemoryEvents,
  stage: (name: number) => StageName,
  synchronizing: ReadonlySet<number>,
): SweptHost {
  const counts: HostCounts = {
    clippedCalls: 0,
    overlappingRanges: 0,
    unclosedRanges: closeRanges(ranges, calls),
  };
  const host = hostThreads(markedThreads(threadRanges(ranges), stage));
  const numbers = new Map<Thread, number>();
  const numberOf = (thread: Thread): number => {
    if (!numbers.has(thread)) numbers.set(thread, numbers.size);
    return numbers.get(thread)!;
  };
  const owners = rangeOwners(host, ranges, numberOf);
  const callCodes = callThreads(host, calls, synchronizing, numberOf);
  const threads = [...numbers.keys()];
  const tops = {
    end: new Float64Array(threads.length).fill(Number.NEGATIVE_INFINITY),
    place: new Int32Array(threads.length),
  };
  const labels = Array.from(ranges.shapes['name']!, (name) => stage(name));
  const opened: OpenedRanges = { stages: 0, nested: new Map(), counts };
  const stages = stageArrays(ranges.rows, { ...ranges.shapes, ...labelColumns(labels) });
  const places = sharedInts(calls.rows);
  const openRow = rowOpener({ ranges, owners, labels, opened, stages, tops });
  const placeCalls = callPlacer({ calls, callCodes, threads, tops, counts, places });

  const order = rangeOrder(ranges);
  let call = 0;
  for (let next = 0; next < ranges.rows; next++) {
    const row = order ? order[next]! : next;
    // At equal start times the enclosing range comes first.
    call = placeCalls(call, ranges.start_ns[row]!);
    openRow(row);
  }
  placeCalls(call, Number.POSITIVE_INFINITY);
  foldInMemory(stages, foldStages(opened.nested));
  return { host, counts, stages, places };
}

/** For each thread, the end and the place of the range on top of its stack. */
interface TopRanges {
  end: Float64Array;
  place: Int32Array;
}

const api = attributions.indexOf('api');

function setTop(tops: TopRanges, number: number, stage: OpenStage | null): void {
  tops.end[number] = stage ? stage.endNs : Number.NEGATIVE_INFINITY;
  tops.place[number] = placeOf({ stage, by: api });
}

/** @returns function that opens the range of a row and writes its stage */
function rowOpener(sweep: {
  ranges: InMemoryRanges;
  owners: readonly Owner[];
  labels: readonly StageName[];
  opened: OpenedRanges;
  stages: InMemoryStages;
  tops: TopRanges;
}): (row: number) => void {
  const { ranges, owners, labels, opened, stages, tops } = sweep;
  return (row) => {
    const code = ranges.shape[row]!;
    const { process, thread, number, rank, name } = owners[code]!;
    const startNs = ranges.start_ns[row]!;
    const range = { startNs, endNs: Math.max(ranges.end_ns[row]!, startNs), name, rank };
    const stage = openRange(opened, process, thread, range, labels[code]!);
    if (thread) setTop(tops, number, stage);
    const { stageValues: values } = stages;
    const stageRow = stages.rows++;
    stages.shape[stageRow] = code;
    values.parent_id[stageRow] = stage.parent ? stage.parent.id : Number.NaN;
    values.phase_id[stageRow] = stage.phase ? stage.phase.id : Number.NaN;
    values.step_index[stageRow] = stage.step ?? Number.NaN;
    values.iteration[stageRow] = stage.iteration ?? Number.NaN;
    values.start_ns[stageRow] = startNs;
    values.end_ns[stageRow] = stage.endNs;
    if (stage.warmup) values.warmup[stageRow] = 1;
  };
}

/** @returns function that places calls from a row on that start before a time, and returns the row after them */
function callPlacer(sweep: {
  calls: InMemoryEvents;
  callCodes: ReturnType<typeof callThreads>;
  threads: readonly Thread[];
  tops: TopRanges;
  counts: HostCounts;
  places: Places;
}): (from: number, until: number) => number {
  const { threads, tops, counts, places } = sweep;
  const { rows, start_ns: start, dur_ns: dur, shape } = sweep.calls;
  const { thread: threadOfCode, synchronizes } = sweep.callCodes;
  const attribution: FoundStage = { stage: null, by: 0 };
  const findPlace = (number: number, startNs: number, endNs: number): number => {
    const thread = threads[number]!;
    if (findStageAt(thread, startNs, endNs, attribution)) counts.clippedCalls++;
    setTop(tops, number, thread.ranges.at(-1) ?? null);
    return placeOf(attribution);
  };
  return (from, until) => {
    let i = from;
    for (; i < rows; i++) {
      const begin = start[i]!;
      if (begin >= until) break;
      const code = shape[i]!;
      const number = threadOfCode[code]!;
      const end = begin + dur[i]!;
      if (synchronizes[code] === 1) threads[number]!.waiting.add(begin, end);
      places[i] = end <= tops.end[number]! ? tops.place[number]! : findPlace(number, begin, end);
    }
    return i;
  };
}

/** Columns that follow from the names of combinations, for all their stages. */
function labelColumns(labels: readonly StageName[]): Columns {
  const labelColumn = (value: (label: StageName) => number | null) =>
    Float64Array.from(labels, (label) => value(label) ?? Number.NaN);
  return {
    kind: labelColumn(({ kind }) => stageKinds.indexOf(kind)),
    batch_size: labelColumn((label) => label.batch_size),
    new_tokens: labelColumn((label) => label.new_tokens),
    context_tokens_sum: labelColumn((label) => label.context_tokens_sum),
    confidence: labelColumn((label) => label.confidence),
  };
}

/** Threads and names of push/pop ranges, in order. */
function threadRanges({ shapes }: InMemoryRanges): { pid: number; tid: number; name: number }[] {
  const last = (value: number) => (Number.isNaN(value) ? Number.MAX_VALUE : value);
  return Array.from(shapes['pid']!, (pid, code) => ({
    pid,
    tid: shapes['tid']![code]!,
    name: shapes['name']![code]!,
    code,
  }))
    .filter(({ code }) => shapes['process_wide']![code] !== 1)
    .sort((a, b) => last(a.pid) - last(b.pid) || last(a.tid) - last(b.tid));
}

interface Owner {
  process: Process;
  /** Null: a start/end range. */
  thread: Thread | null;
  number: number;
  rank: number;
  name: number;
}

/** The thread or process that owns the ranges of each combination. */
function rangeOwners(host: Host, { shapes }: InMemoryRanges, numberOf: (thread: Thread) => number): Owner[] {
  return Array.from(shapes['pid']!, (pid, code) => {
    const tid = shapes['tid']![code]!;
    const thread = shapes['process_wide']![code] === 1 ? null : threadOf(host, pid, tid);
    return {
      process: processOf(host, pid),
      thread,
      number: thread ? numberOf(thread) : -1,
      rank: shapes['rank']![code]!,
      name: shapes['name']![code]!,
    };
  });
}

/** For each combination of calls, the number of its thread, and whether the call is a synchronizing one. */
function callThreads(
  host: Host,
  { shapes }: InMemoryEvents,
  synchronizing: ReadonlySet<number>,
  numberOf: (thread: Thread) => number,
) {
  const pids = shapes['pid'] ?? new Float64Array();
  return {
    thread: Int32Array.from(pids, (pid, code) => numberOf(threadOf(host, pid, shapes['tid']![code]!))),
    synchronizes: Uint8Array.from(pids, (_, code) => Number(synchronizing.has(shapes['name']![code]!))),
  };
}
