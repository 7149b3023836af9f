import { damagedTrace, readFailure } from './damage.js';
import { createFields, readEvent } from './event-fields.js';
import { closeBracket, comma, sentinelBytes, skipSpace } from './json-bytes.js';
import { openSource, readTail } from './source.js';
import { readTopLevel } from './top-level.js';

/** Metadata of a trace, without reading all of its events. */
export interface TraceHead {
  /** Keys of the outermost object before the events; in a plain file also those of clock and rank in its last bytes. */
  facts: Map<string, unknown>;
  /** Whole µs of the earliest of the first events: the origin of times. 0 without events. */
  originUs: number;
  gzip: boolean;
}

/** Limit of the search for the first event: metadata before it can contain whole configurations. */
const maximumHeadBytes = 64 * 2 ** 20;
/** Bytes of events that are searched for the earliest time. */
const firstEventsBytes = 256 * 1024;
const tailBytes = 256 * 1024;

/** @throws E_TRACE_FILE if it is not such a trace */
export async function readHead(path: string): Promise<TraceHead> {
  try {
    const source = await openSource(path);
    let bytes: Uint8Array = new Uint8Array(sentinelBytes);
    let end = 0;
    let neededBytes = firstEventsBytes;
    const facts = new Map<string, unknown>();
    let eventsOffset: number | null = null;
    try {
      for await (const part of source.chunks()) {
        const next = new Uint8Array(end + part.length + sentinelBytes);
        next.set(bytes.subarray(0, end));
        next.set(part, end);
        bytes = next;
        end += part.length;
        if (end < neededBytes) continue;
        neededBytes = end * 2;
        eventsOffset = await findEvents(path, bytes, end, facts);
        if (eventsOffset !== null && end - eventsOffset >= firstEventsBytes) break;
        if (end > maximumHeadBytes) throw damagedTrace(path, 'It has no traceEvents in its first 64 MB.');
      }
    } finally {
      source.destroy();
    }
    eventsOffset = await findEvents(path, bytes, end, facts);
    if (eventsOffset === null) {
      const why = end === 0 ? 'The file is empty.' : 'It has no traceEvents, or ends before them.';
      throw damagedTrace(path, why);
    }
    if (!source.gzip) await addTailFacts(path, facts);
    return { facts, originUs: earliestTime(bytes, eventsOffset, end), gzip: source.gzip };
  } catch (error) {
    throw readFailure(path, error);
  }
}

async function findEvents(
  path: string,
  bytes: Uint8Array,
  end: number,
  facts: Map<string, unknown>,
): Promise<number | null> {
  const top = readTopLevel(bytes, 0, end, true, facts);
  if (top.state === 'malformed') throw damagedTrace(path, 'It is not JSON with events of a trace.');
  if (top.state === 'end') throw damagedTrace(path, 'It is JSON, but without traceEvents.');
  return top.state === 'events' ? top.offset : null;
}

/** Metadata may follow the events; only the keys for clock and rank are searched. */
async function addTailFacts(path: string, facts: Map<string, unknown>): Promise<void> {
  const tail = await readTail(path, tailBytes);
  // From the last event on: text in an event could look like these keys.
  const tailText = tail.slice(tail.lastIndexOf(']') > 0 ? Math.max(0, tail.lastIndexOf('"ph"')) : 0);
  const base = /"baseTimeNanoseconds"\s*:\s*"?(\d+)/.exec(tailText)?.[1];
  if (base !== undefined && !facts.has('baseTimeNanoseconds')) facts.set('baseTimeNanoseconds', base);
  const rank = /"distributedInfo"\s*:\s*\{[^[\]{}]*"rank"\s*:\s*(\d+)/.exec(tailText)?.[1];
  if (rank !== undefined && !facts.has('distributedInfo')) {
    const nccl_version = /"nccl_version"\s*:\s*"([^"]*)"/.exec(tailText)?.[1];
    facts.set('distributedInfo', { rank: Number(rank), nccl_version });
  }
}

function earliestTime(bytes: Uint8Array, from: number, end: number): number {
  const fields = createFields();
  let origin = Infinity;
  let position = from;
  for (;;) {
    position = skipSpace(bytes, position);
    if (bytes[position] === comma) position = skipSpace(bytes, position + 1);
    if (position >= end || bytes[position] === closeBracket) break;
    position = readEvent(bytes, position, end, fields);
    if (position < 0) break;
    if (fields.catTo > 0 && fields.tsUs < origin) origin = fields.tsUs;
  }
  return Number.isFinite(origin) ? origin : 0;
}
