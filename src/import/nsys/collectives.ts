import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import type { ReadTable } from './facts.js';
import { pushPop } from './trace-ranges.js';

/** A range of NCCL's with its payload: the call of an operation on the host, ns of the session. */
interface Call {
  start_ns: number;
  dur_ns: number;
  communicator: string;
  operation: string;
  bytes: number;
}

/**
 * Rows of `collectives` from NCCL's own ranges, which name communicator and size where the report was exported with their payloads
 * (--include-json; NCCL 2.18 and later). They are calls on the host; the kernels that they launched are found by time, so nothing
 * is written for a report of several such processes. An operation in a group has no launch of its own and stays without a kernel.
 * @param offset_ns added to all times
 */
export async function keepCollectiveCalls(
  read: ReadTable,
  workbench: Workbench,
  { execution_id, capture_id, host }: ImportContext,
  offset_ns: number,
): Promise<void> {
  const events = await read('NVTX_EVENTS', ['start', 'end', 'globalTid', 'eventType', 'textId', 'jsonText']);
  const paid = events.filter((event) => String(event[5] ?? '').includes(communicatorKey));
  const processes = new Set(paid.map((event) => BigInt(event[2] as number | bigint) >> 24n));
  if (processes.size !== 1) return;
  const names = new Map(
    (await read('StringIds', ['id', 'value'])).map(([id, value]) => [Number(id), String(value)]),
  );
  const ranks = new Map<string, number>();
  const calls: Call[] = [];
  for (const [start, end, , type, textId, json] of paid) {
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
      communicator,
      operation: operation === 'AlltoAll' ? 'AllToAll' : operation,
      bytes: Number(bytes),
    });
  }
  if (calls.length === 0) return;
  calls.sort((a, b) => a.start_ns - b.start_ns);
  const column = (of: (call: Call) => number) => Float64Array.from(calls, of);
  const texts = { communicator: codesOf(calls, 'communicator'), operation: codesOf(calls, 'operation') };
  const numbers = new Map<string, number>();
  const writer = await workbench.keepColumns(
    'collectives',
    capture_id,
    {
      start_ns: {},
      dur_ns: {},
      bytes: {},
      sequence: {},
      ranks: {},
      communicator: { texts: texts.communicator.list },
      operation: { texts: texts.operation.list },
    },
    { execution_id, host, timed_by: 'call_cpu' },
  );
  await writer.append(
    {
      start_ns: column((call) => call.start_ns),
      dur_ns: column((call) => call.dur_ns),
      bytes: column((call) => call.bytes),
      // The number of the call of its communicator and operation.
      sequence: column(({ communicator, operation }) => {
        const key = `${communicator} ${operation}`;
        const number = numbers.get(key) ?? 0;
        numbers.set(key, number + 1);
        return number;
      }),
      ranks: column((call) => ranks.get(call.communicator) ?? Number.NaN),
      communicator: texts.communicator.codes,
      operation: texts.operation.codes,
    },
    calls.length,
  );
  await writer.close();
}

const communicatorKey = 'NCCL communicator ID';

/** Ids of 64 bits exceed what a JSON number holds exactly. */
function fieldOf(json: string, name: string): string | null {
  const at = json.indexOf(`"${name}":`);
  return at < 0 ? null : (/^-?\d+/.exec(json.slice(at + name.length + 3).trimStart())?.[0] ?? null);
}

function codesOf(
  calls: readonly Call[],
  of: 'communicator' | 'operation',
): { list: string[]; codes: Float64Array } {
  const list = [...new Set(calls.map((call) => call[of]))];
  const codes = new Map(list.map((text, code) => [text, code]));
  return { list, codes: Float64Array.from(calls, (call) => codes.get(call[of])!) };
}
