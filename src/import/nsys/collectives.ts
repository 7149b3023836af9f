import { recordedCallsSql } from '../../model/collectives.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import type { ReadTable } from './facts.js';
import { pushPop } from './trace-ranges.js';

/** An operation that NCCL's ranges name: the time on the host in which its kernel is launched, ns of the session. */
interface Call {
  start_ns: number;
  dur_ns: number;
  pid: number;
  tid: number;
  communicator: string;
  operation: string;
  bytes: number;
  /** Null if the call does not say it. */
  received_bytes: number | null;
  /** The other rank of a Send or Recv, counted within the communicator; null for collectives. */
  peer: number | null;
  /** Number of equal calls in its group. */
  repeats: number;
  /** For a Send or Recv of a thread that drives several devices, the place of its device among them; null if unknown. */
  device_place: number | null;
}

/**
 * Saves into recorded_calls the calls of NCCL's own ranges, which name communicator and size if the report was exported with payloads
 * (--include-json; NCCL 2.18 and later). They are calls on the host; the kernels that they launched are found by time.
 * Operations of a group are launched together at its end, on all devices of the thread.
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
    tid: column((call) => call.tid),
    bytes: column((call) => call.bytes),
    received: column((call) => call.received_bytes ?? Number.NaN),
    peer: column((call) => call.peer ?? Number.NaN),
    repeats: column((call) => call.repeats),
    device_place: column((call) => call.device_place ?? Number.NaN),
    // Call number within its process, communicator, operation and peer.
    sequence: column(({ pid, communicator, operation, peer }) => {
      const key = `${pid} ${keyOf({ communicator, operation, peer })}`;
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
    `INSERT INTO recorded_calls BY NAME SELECT '${capture_id}' AS capture_id, true AS on_host, start_ns, dur_ns, pid, tid, bytes, sequence, repeats, CASE WHEN NOT isnan(device_place) THEN device_place END AS device_place, CASE WHEN NOT isnan(ranks) THEN ranks END AS ranks,
       CASE WHEN NOT isnan(peer) THEN peer END AS peer, CASE WHEN NOT isnan(received) THEN received END AS received_bytes, ${text('communicator')}, ${text('operation')} FROM nsys_calls c`,
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
  const names = new Map(
    (await read('StringIds', ['id', 'value']))
      .filter(([, value]) => String(value).startsWith('nccl'))
      .map(([id, value]) => [Number(id), String(value)]),
  );
  const ncclEvents = events
    .filter(
      ([, end, , type, textId]) =>
        end !== null && pushPop.includes(Number(type)) && names.has(Number(textId)),
    )
    .toSorted(([a], [b]) => Number(a) - Number(b));
  const ranks = new Map<string, number>();
  const calls: Call[] = [];
  const groups = new Map<string, { depth: number; parts: Call[][] }>();
  for (const [start, end, thread, , textId, json] of ncclEvents) {
    const name = names.get(Number(textId))!;
    const group = groups.get(String(thread)) ?? { depth: 0, parts: [] };
    groups.set(String(thread), group);
    const window = { start_ns: Number(start) + offset_ns, dur_ns: Number(end) - Number(start) };
    if (name === 'ncclGroupStart') group.depth += 1;
    // A capture can start within a group.
    if (name === 'ncclGroupEnd') group.depth = Math.max(0, group.depth - 1);
    if (name === 'ncclGroupStart' || name === 'ncclGroupEnd') group.parts.push([]);
    if (name === 'ncclGroupEnd' && group.depth === 0) {
      for (const call of callsOfGroup(group.parts)) calls.push({ ...call, ...window });
      group.parts = [];
    }
    const text = String(json ?? '');
    const communicator = fieldOf(text, communicatorKey);
    if (communicator === null) continue;
    const size = fieldOf(text, 'No. of ranks');
    if (size !== null) ranks.set(communicator, Number(size));
    const bytes = fieldOf(text, 'Message size [bytes]');
    const operation = /^nccl(\w+)$/.exec(name)?.[1];
    if (bytes === null || !operation) continue;
    const peer = fieldOf(text, 'Peer rank');
    (group.depth > 0 ? group.parts.at(-1)! : calls).push({
      ...window,
      pid: Number((BigInt(thread as number | bigint) >> 24n) & 0xffffffn),
      tid: Number(BigInt(thread as number | bigint) & 0xffffffn),
      communicator,
      operation: operation === 'AlltoAll' ? 'AllToAll' : operation,
      bytes: Number(bytes),
      received_bytes: operation === 'Send' ? 0 : operation === 'Recv' ? Number(bytes) : null,
      peer: peer === null ? null : Number(peer),
      repeats: 1,
      device_place: null,
    });
  }
  calls.sort((a, b) => a.start_ns - b.start_ns);
  return { calls, ranks };
}

/**
 * The calls that NCCL carries out for a group, by communicator.
 * @param parts calls between two starts or ends of groups. A program that drives several devices from one thread, such as nccl-tests, puts a
 * group for each device into the group
 */
function callsOfGroup(parts: readonly (readonly Call[])[]): Call[] {
  const ids = new Set(parts.flatMap((calls) => calls.map(({ communicator }) => communicator)));
  return [...ids].flatMap((id) => {
    const ofOne = parts.flatMap((calls) => {
      const own = calls.filter(({ communicator }) => communicator === id);
      return own.length > 0 ? [own] : [];
    });
    const merged = ofOne.map(mergeEqual);
    return areOfDevices(merged)
      ? merged.flatMap((calls, place) =>
          calls.map((call) => ({ ...call, repeats: merged.length, device_place: place })),
        )
      : mergeEqual(merged.flat());
  });
}

/** One call for equal operations on one communicator to or from one rank, and one all-to-all where they form it. */
function mergeEqual(calls: readonly Call[]): Call[] {
  const merged = new Map<string, Call>();
  for (const call of calls) merged.set(keyOf(call), addSizes(merged.get(keyOf(call)), call));
  const all = [...merged.values()];
  return joinAllToAll(all) ?? all;
}

const keyOf = ({ communicator, operation, peer }: Pick<Call, 'communicator' | 'operation' | 'peer'>) =>
  `${communicator} ${operation} ${peer}`;

const addSizes = (sum: Call | undefined, call: Call): Call => ({
  ...call,
  repeats: call.repeats + (sum?.repeats ?? 0),
  bytes: call.bytes + (sum?.bytes ?? 0),
  received_bytes: call.received_bytes === null ? null : call.received_bytes + (sum?.received_bytes ?? 0),
});

/**
 * Whether sends and receives are of consecutive ranks of the communicator, one for each part: for some first rank, all transfers between
 * these ranks have both ends, and there is one.
 */
function areOfDevices(parts: readonly (readonly Call[])[]): boolean {
  const calls = parts.flat();
  if (parts.length < 2 || calls.some(({ peer }) => peer === null)) return false;
  const largest = Math.max(...calls.map(({ peer }) => peer!));
  const has = (place: number, operation: string, peer: number) =>
    parts[place]!.some((call) => call.operation === operation && call.peer === peer);
  return Array.from({ length: largest + 1 }, (_, first) => first).some((first) => {
    const between = parts.flatMap((part, place) =>
      part.flatMap(({ operation, peer }) =>
        peer! >= first && peer! < first + parts.length ? { operation, peer: peer! - first, place } : [],
      ),
    );
    return (
      between.length > 0 &&
      between.every(
        ({ operation, peer, place }) =>
          peer !== place && has(peer, operation === 'Send' ? 'Recv' : 'Send', first + place),
      )
    );
  });
}

/**
 * One all-to-all for sends to all ranks and receives from all ranks, the own one included: torch's all_to_all_single, for example. Null for
 * other calls.
 */
function joinAllToAll(calls: readonly Call[]): [Call] | null {
  const peersOf = (operation: string) =>
    calls
      .flatMap((call) => (call.operation === operation ? (call.peer ?? []) : []))
      .toSorted((a, b) => a - b);
  const [receivers, senders] = [peersOf('Send'), peersOf('Recv')];
  const isComplete = [receivers, senders].every((peers) => peers.every((peer, index) => peer === index));
  if (
    receivers.length < 2 ||
    !isComplete ||
    2 * receivers.length !== calls.length ||
    senders.length !== receivers.length
  )
    return null;
  const sum = (select: (call: Call) => number) => calls.reduce((total, call) => total + select(call), 0);
  return [
    {
      ...calls[0]!,
      operation: 'AllToAll',
      peer: null,
      repeats: Math.min(...calls.map(({ repeats }) => repeats)),
      bytes: sum(({ operation, bytes }) => (operation === 'Send' ? bytes : 0)),
      received_bytes: sum((call) => call.received_bytes ?? 0),
    },
  ];
}

const communicatorKey = 'NCCL communicator ID';

/** The integer of a key as text, because 64-bit ids exceed the exact range of a JSON number; null if the key is absent. */
function fieldOf(json: string, name: string): string | null {
  const index = json.indexOf(`"${name}":`);
  return index < 0 ? null : (/^-?\d+/.exec(json.slice(index + name.length + 3).trimStart())?.[0] ?? null);
}
