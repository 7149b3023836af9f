import type { Batch, Workbench } from '../../../model/workbench.js';
import { openRows } from '../row-writer.js';
import type { HeldEvents } from './held-trace.js';

const batchRows = 16_384;

/** Calls as the host sweep reads them. */
// oxlint-disable-next-line require-await
export async function* callBatches({
  rows,
  start_ns,
  dur_ns,
  shape,
  shapes,
}: HeldEvents): AsyncGenerator<Batch> {
  const [pids, tids, names] = [shapes['pid']!, shapes['tid']!, shapes['name']!];
  for (let from = 0; from < rows; from += batchRows) {
    const count = Math.min(batchRows, rows - from);
    const pid = new Float64Array(count);
    const tid = new Float64Array(count);
    const name = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const code = shape[from + i]!;
      pid[i] = pids[code]!;
      tid[i] = tids[code]!;
      name[i] = names[code]!;
    }
    const columns = {
      start_ns: start_ns.subarray(from, from + count),
      dur_ns: dur_ns.subarray(from, from + count),
      pid,
      tid,
      name,
    };
    yield { rows: count, columns };
  }
}

/** When each thread was last seen in a call, as the table trace_api, which ranges nobody closed are cut by. */
export async function lastCalls(workbench: Workbench, calls: HeldEvents): Promise<void> {
  const last = new Map<string, { pid: number; tid: number; end: number }>();
  const ofShape = Array.from(calls.shapes['pid'] ?? [], (pid, code) => {
    const tid = calls.shapes['tid']![code]!;
    const key = `${pid},${tid}`;
    if (!last.has(key)) last.set(key, { pid, tid, end: Number.NEGATIVE_INFINITY });
    return last.get(key)!;
  });
  for (let i = 0; i < calls.rows; i++) {
    const thread = ofShape[calls.shape[i]!]!;
    thread.end = Math.max(thread.end, calls.start_ns[i]! + calls.dur_ns[i]!);
  }
  const rows = await openRows(workbench, 'trace_api', ['pid', 'tid', 'start_ns', 'dur_ns']);
  for (const { pid, tid, end } of last.values()) if (Number.isFinite(end)) rows.add(pid, tid, end, 0);
  rows.close();
}
