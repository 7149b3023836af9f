import type { Batch, Workbench } from '../../model/workbench.js';
import { stageKinds } from '../../model/record.js';
import type { StageName } from '../stage-names.js';
import { openCursor, refill, nextRow, type Cursor } from './cursor.js';
import {
  findContaining,
  type FoundStage,
  type Host,
  hostThreads,
  markedThreads,
  type OpenOp,
  placeOf,
  processOf,
  findStageAt,
  type Thread,
  threadOf,
} from './host-threads.js';
import { type FoldedStages, foldStages } from './nested-stages.js';
import { openRange, type OpenedRanges } from './open-range.js';
import { openRowWriter, type RowWriter } from './row-writer.js';

export interface HostCounts {
  clippedCalls: number;
  overlappingRanges: number;
  unclosedRanges: number;
}

interface HostInput {
  /** By the code in trace_names that ranges use. */
  stage(name: number): StageName;
  /** Codes of synchronizing API calls. */
  synchronizing: ReadonlySet<number>;
  /** start_ns, dur_ns, pid, tid, name; sorted by start_ns. */
  calls: AsyncIterable<Batch>;
  /** By the code of an operator's name, as OperatorClasses.kernelClasses. */
  kernelClasses: Float64Array;
  /**
   * Receives for each call, in order, its place (placeOf), the operator around it, and the class of that operator's
   * kernels (OpenOp.kernelClass); NaN: none.
   */
  callPlaces: { add(place: number, op: number, opClass: number): void; close(): void };
  /** Receives the ranges as stages, in the order of stageColumns, numbered from 1 in order of start. */
  stages: RowWriter;
}

/**
 * One sweep in time order over ranges, operators and API calls of all threads, each with its stack. Writes
 * attr_ops (op_id, parent_op_id, stage_id, self_dur_ns, depth, kernel_class).
 * The returned host has the waiting times of each thread; `stages` is the number of stages.
 */
export async function sweepHost(
  workbench: Workbench,
  input: HostInput,
): Promise<{ host: Host; counts: HostCounts; folded: FoldedStages; stages: number }> {
  const threadRanges = await workbench.query<{ pid: number; tid: number; name: number }>(
    'SELECT DISTINCT pid, tid, name::DOUBLE AS name FROM trace_ranges WHERE process_wide IS DISTINCT FROM 1 ORDER BY ALL',
  );
  const [unclosed] = await workbench.query<{ n: number }>(
    'SELECT count(*) AS n FROM trace_ranges WHERE end_ns IS NULL OR isnan(end_ns::DOUBLE)',
  );
  const counts: HostCounts = { clippedCalls: 0, overlappingRanges: 0, unclosedRanges: unclosed!.n };
  const host = hostThreads(markedThreads(threadRanges, input.stage));
  const sweep: Sweep = {
    host,
    counts,
    input,
    opened: { stages: 0, nested: new Map(), counts },
    last: null,
    stages: input.stages,
    ops: await openRowWriter(workbench, 'attr_ops', opColumns),
    calls: input.callPlaces,
    innermost: { stage: null, by: 0 },
  };
  const ranges = await openCursor(workbench.scan(rangeScan(counts.unclosedRanges > 0)));
  const ops = await openCursor(
    workbench.scan(
      'SELECT start_ns, dur_ns, pid, tid, op_id, name FROM trace_ops ORDER BY start_ns, dur_ns DESC, op_id',
    ),
  );
  const calls = await openCursor(input.calls);
  for (;;) {
    // At equal start times the enclosing one comes first.
    const [cursor, take] =
      ranges.time <= ops.time && ranges.time <= calls.time
        ? ([ranges, takeRange] as const)
        : ops.time <= calls.time
          ? ([ops, takeOp] as const)
          : ([calls, takeCall] as const);
    if (cursor.time === Number.POSITIVE_INFINITY) break;
    const until = Math.min(
      cursor === ranges ? Number.POSITIVE_INFINITY : ranges.time,
      cursor === ops ? Number.POSITIVE_INFINITY : ops.time,
      cursor === calls ? Number.POSITIVE_INFINITY : calls.time,
    );
    let hasNext = true;
    do {
      take(sweep, cursor);
      hasNext = nextRow(cursor);
    } while (hasNext && cursor.time < until);
    if (!hasNext) await refill(cursor);
  }
  closeAll(sweep);
  return { host, counts, folded: foldStages(sweep.opened.nested), stages: sweep.opened.stages };
}

export const stageColumns = [
  'stage_id',
  'parent_id',
  'phase_id',
  'depth',
  'kind',
  'name',
  'step_index',
  'iteration',
  'start_ns',
  'end_ns',
  'pid',
  'tid',
  'rank',
  'batch_size',
  'new_tokens',
  'context_tokens_sum',
  'warmup',
  'confidence',
] as const;

const opColumns = ['op_id', 'parent_op_id', 'stage_id', 'self_dur_ns', 'depth', 'kernel_class'] as const;

interface Sweep {
  host: Host;
  counts: HostCounts;
  input: HostInput;
  opened: OpenedRanges;
  last: { pid: number; tid: number; thread: Thread } | null;
  stages: RowWriter;
  ops: RowWriter;
  calls: HostInput['callPlaces'];
  innermost: FoundStage;
}

/** A range that was never closed ends with the last event of its thread. */
function rangeScan(unclosed: boolean): string {
  const columns = 'r.start_ns, r.pid, r.tid, r.rank, r.name, r.process_wide';
  const order = 'ORDER BY start_ns, end_ns DESC, range_id';
  if (!unclosed) return `SELECT ${columns}, r.end_ns, r.range_id FROM trace_ranges r ${order}`;
  return `WITH thread_ends AS (
      SELECT pid, tid, max(end_ns) AS end_ns FROM (
        SELECT pid, tid, start_ns + dur_ns AS end_ns FROM trace_api
        UNION ALL SELECT pid, tid, start_ns + dur_ns FROM trace_ops
        UNION ALL SELECT pid, tid, coalesce(nullif(end_ns::DOUBLE, 'nan'), start_ns) FROM trace_ranges
          WHERE process_wide IS DISTINCT FROM 1
      ) GROUP BY ALL)
    SELECT ${columns}, coalesce(nullif(r.end_ns::DOUBLE, 'nan'), thread_ends.end_ns, r.start_ns) AS end_ns, r.range_id
    FROM trace_ranges r LEFT JOIN thread_ends ON thread_ends.pid IS NOT DISTINCT FROM r.pid AND thread_ends.tid IS NOT DISTINCT FROM r.tid
    ${order}`;
}

function takeRange(sweep: Sweep, { columns, row }: Cursor): void {
  const startNs = columns['start_ns']![row]!;
  const endNs = Math.max(columns['end_ns']![row]!, startNs);
  const pid = columns['pid']![row]!;
  const tid = columns['tid']![row]!;
  const name = columns['name']![row]!;
  const thread = columns['process_wide']![row] === 1 ? null : threadOf(sweep.host, pid, tid);
  const range = { startNs, endNs, name, rank: columns['rank']![row]! };
  const process = processOf(sweep.host, pid);
  const stage = openRange(sweep.opened, process, thread, range, sweep.input.stage(name));
  sweep.stages.add(
    stage.id,
    stage.parent?.id ?? Number.NaN,
    stage.phase?.id ?? Number.NaN,
    stage.depth,
    stageKinds.indexOf(stage.kind),
    name,
    stage.step ?? Number.NaN,
    stage.iteration ?? Number.NaN,
    startNs,
    endNs,
    pid,
    tid,
    range.rank,
    stage.label.batch_size ?? Number.NaN,
    stage.label.new_tokens ?? Number.NaN,
    stage.label.context_tokens_sum ?? Number.NaN,
    Number(stage.warmup),
    stage.label.confidence ?? Number.NaN,
  );
}

function takeOp(sweep: Sweep, { columns, row }: Cursor): void {
  const startNs = columns['start_ns']![row]!;
  const durNs = columns['dur_ns']![row]!;
  const endNs = startNs + durNs;
  const thread = threadAt(sweep, columns['pid']![row]!, columns['tid']![row]!);
  const open = thread.ops;
  while (open.length > 0 && open.at(-1)!.endNs <= startNs) writeOp(sweep, open.pop()!);
  const parent = findContaining(open, endNs);
  if (parent) parent.selfNs -= durNs;
  findStageAt(thread, startNs, endNs, sweep.innermost);
  const depth = parent ? parent.depth + 1 : 0;
  const kernelClass = sweep.input.kernelClasses[columns['name']![row]!] ?? Number.NaN;
  open.push({
    id: columns['op_id']![row]!,
    parent,
    depth,
    endNs,
    selfNs: durNs,
    stage: sweep.innermost.stage?.id ?? Number.NaN,
    kernelClass: Number.isNaN(kernelClass) && parent ? parent.kernelClass : kernelClass,
  });
}

function writeOp(sweep: Sweep, op: OpenOp): void {
  sweep.ops.add(op.id, op.parent?.id ?? Number.NaN, op.stage, op.selfNs, op.depth, op.kernelClass);
}

function takeCall(sweep: Sweep, { columns, row }: Cursor): void {
  const startNs = columns['start_ns']![row]!;
  const endNs = startNs + columns['dur_ns']![row]!;
  const thread = threadAt(sweep, columns['pid']![row]!, columns['tid']![row]!);
  if (sweep.input.synchronizing.has(columns['name']![row]!)) thread.waiting.add(startNs, endNs);
  const { ops } = thread;
  while (ops.length > 0 && ops.at(-1)!.endNs < startNs) writeOp(sweep, ops.pop()!);
  if (findStageAt(thread, startNs, endNs, sweep.innermost)) sweep.counts.clippedCalls++;
  const op = findContaining(ops, endNs);
  // A driver call inside a runtime call is part of it.
  if (startNs >= thread.callEndNs) {
    if (op) op.selfNs -= endNs - startNs;
    thread.callEndNs = endNs;
  }
  sweep.calls.add(placeOf(sweep.innermost), op?.id ?? Number.NaN, op?.kernelClass ?? Number.NaN);
}

/** Usually the thread of the previous event. */
function threadAt(sweep: Sweep, pid: number, tid: number): Thread {
  const { last } = sweep;
  if (last && last.pid === pid && last.tid === tid) return last.thread;
  const thread = threadOf(sweep.host, pid, tid);
  sweep.last = { pid, tid, thread };
  return thread;
}

function closeAll(sweep: Sweep): void {
  for (const process of sweep.host.processes.values()) {
    for (const { ops } of process.threads.values()) while (ops.length > 0) writeOp(sweep, ops.pop()!);
  }
  for (const writer of [sweep.stages, sweep.ops, sweep.calls]) writer.close();
}
