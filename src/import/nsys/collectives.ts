import { recordedCallsSql } from '../../model/collectives.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import type { ReadTable } from './facts.js';
import { pushPop } from './trace-ranges.js';

/** An NCCL range with its payload: the call of an operation on the host, ns of the session. */
interface Call {
  start_ns: number;
  dur_ns: number;
  pid: number;
  communicator: string;
  operation: string;
  bytes: number;
}

/**
 * Saves into recorded_calls the calls of NCCL's own ranges, which name communicator and size if the report was exported with payloads
 * (--include-json; NCCL 2.18 and later). They are calls on the host; the kernels that they launched are found by time.
 * An operation in a group has no launch of its own and stays without a kernel.
 * @param offset_ns added to all times
 */
export async function saveCollectiveCalls(
  read: ReadTable,
  workbench: Workbench,
  { capture_id }: Pick<ImportContext, 'capture_id'>,
  offset_ns: number,
): Promise<void> {
  const { calls, ranks } = await readCalls(read, offset_ns);
  if (calls.length === 0) return;
  const texts = [...new Set(calls.flatMap(({ communicator, operation }) => [communicator, operation]))];
  const codes = new Map(texts.map((text, code) => [text, code]));
  const column = (valueOf: (call: Call) => number) => Float64Array.from(calls, valueOf);
  const numbers = new Map<string, number>();
  const columns = {
    start_ns: column((call) => call.start_ns),
    dur_ns: column((call) => call.dur_ns),
    pid: column((call) => call.pid),
    bytes: column((call) => call.bytes),
    // Call number within its communicator and operation.
    sequence: column(({ pid, communicator, operation }) => {
      const key = `${pid} ${communicator} ${operation}`;
      const number = numbers.get(key) ?? 0;
      numbers.set(key, number + 1);
      return number;
    }),
    ranks: column((call) => ranks.get(call.communicator) ?? Number.NaN),
    communicator: column((call) => codes.get(call.communicator)!),
    operation: column((call) => codes.get(call.operation)!),
  };
  await workbench.createNames('nsys_call_names', texts);
  const writer = await workbench.createTable('nsys_calls', Object.keys(columns));
  writer.append(columns, calls.length);
  writer.close();
  const text = (name: string) => `(SELECT text FROM nsys_call_names WHERE code = c.${name}) AS ${name}`;
  await workbench.run(recordedCallsSql);
  await workbench.run(
    `INSERT INTO recorded_calls BY NAME SELECT '${capture_id}' AS capture_id, true AS on_host, start_ns, dur_ns, pid, bytes, sequence, CASE WHEN NOT isnan(ranks) THEN ranks END AS ranks,
       ${text('communicator')}, ${text('operation')} FROM nsys_calls c`,
  );
  await workbench.run('DROP TABLE nsys_calls');
  await workbench.run('DROP TABLE nsys_call_names');
}

/** The calls in order of start, and the number of ranks by communicator. */
async function readCalls(
  read: ReadTable,
  offset_ns: number,
): Promise<{ calls: Call[]; ranks: ReadonlyMap<string, number> }> {
  const events = await read('NVTX_EVENTS', ['start', 'end', 'globalTid', 'eventType', 'textId', 'jsonText']);
  const eventsWithPayload = events.filter((event) => String(event[5] ?? '').includes(communicatorKey));
  const names = new Map(
    (await read('StringIds', ['id', 'value'])).map(([id, value]) => [Number(id), String(value)]),
  );
  const ranks = new Map<string, number>();
  const calls: Call[] = [];
  for (const [start, end, thread, type, textId, json] of eventsWithPayload) {
    const text = String(json);
    const communicator = fieldOf(text, communicatorKey)!;
    const size = fieldOf(text, 'No. of ranks');
    if (size !== null) ranks.set(communicator, Number(size));
    const bytes = fieldOf(text, 'Message size [bytes]');
    const operation = /^nccl(\w+)$/.exec(names.get(Number(textId)) ?? '')?.[1];
    if (bytes === null || !operation || end === null || !pushPop.includes(Number(type))) continue;
    calls.push({
      start_ns: Number(start) + offset_ns,
      dur_ns: Number(end) - Number(start),
      pid: Number((BigInt(thread as number | bigint) >> 24n) & 0xffffffn),
      communicator,
      operation: operation === 'AlltoAll' ? 'AllToAll' : operation,
      bytes: Number(bytes),
    });
  }
  calls.sort((a, b) => a.start_ns - b.start_ns);
  return { calls, ranks };
}

const communicatorKey = 'NCCL communicator ID';

/** 64-bit ids exceed the exact range of a JSON number. */
function fieldOf(json: string, name: string): string | null {
  const index = json.indexOf(`"${name}":`);
  return index < 0 ? null : (/^-?\d+/.exec(json.slice(index + name.length + 3).trimStart())?.[0] ?? null);
}
