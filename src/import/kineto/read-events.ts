import { interrupted } from '../interrupted.js';
import type { Batch } from './batch.js';
import { createChunkParser, type TraceClock } from './chunk-parser.js';
import { truncatedTrace, damagedTrace } from './damage.js';
import { sentinelBytes, skipSpace } from './json-bytes.js';
import type { Lanes, ParsedChunk } from './lanes.js';
import type { Source } from './source.js';
import { lastEventStart } from './split.js';
import { readTopLevel } from './top-level.js';
import { formatBytes } from '../../vocabulary/format.js';

/** Chunk size per parse: its names and columns fit a core's caches. */
const chunkBytes = 2 * 2 ** 20;
/** No profiler writes an event or metadata value longer than this. */
const maximumTokenBytes = 128 * 2 ** 20;

/** The file cannot be split at event starts: one thread must read it. */
export class NotSplittable extends Error {}

export interface Reading {
  path: string;
  source: Source;
  /** Values of the outermost object's keys, filled while reading. */
  facts: Map<string, unknown>;
  onBatch(batch: Batch, lane: number): void;
  /** A second list of events starts. */
  onSecondList(): void;
  /** Text after the end of the trace, in bytes. */
  onTrailing(bytes: number): void;
  onProgress(share: number): void;
  signal?: AbortSignal | undefined;
}

/** A growing buffer over a stream: `bytes` holds text from `offset` to `end`, with zeros after it. */
interface Window {
  bytes: Uint8Array;
  offset: number;
  end: number;
}

/** Shared memory: moving megabytes between threads triggered garbage collection at every chunk. */
const windowBytes = (capacity: number) => new Uint8Array(new SharedArrayBuffer(capacity));

const emptyWindow = (): Window => ({ bytes: windowBytes(2 * chunkBytes + sentinelBytes), offset: 0, end: 0 });

function appendPart(window: Window, part: Uint8Array): void {
  const room = window.bytes.length - sentinelBytes - window.end;
  if (part.length > room) {
    const grown = windowBytes(Math.max(2 * window.bytes.length, window.end + part.length + sentinelBytes));
    grown.set(window.bytes.subarray(0, window.end));
    window.bytes = grown;
  }
  window.bytes.set(part, window.end);
  window.end += part.length;
  window.bytes.fill(0, window.end, window.end + sentinelBytes);
}

/** Moves the remaining bytes to the front. */
function compact(window: Window): void {
  window.bytes.copyWithin(0, window.offset, window.end);
  window.end -= window.offset;
  window.offset = 0;
  window.bytes.fill(0, window.end, window.end + sentinelBytes);
}

/**
 * Reads a trace on this thread, from the first byte to the last, whatever its layout.
 * @throws E_TRACE_FILE, E_INTERRUPTED
 */
export async function readOnOneThread(reading: Reading, clock: TraceClock): Promise<void> {
  const { path, source, facts } = reading;
  const parser = createChunkParser(clock);
  const window = emptyWindow();
  let state = 'head' as 'head' | 'events' | 'tail' | 'end';
  let started = false;
  let isBareArray = false;
  let eventLists = 0;
  let neededBytes = chunkBytes;

  function readAvailable(last: boolean): void {
    for (;;) {
      if (state === 'end') {
        const trailingStart = skipSpace(window.bytes, window.offset);
        if (trailingStart < window.end) reading.onTrailing(window.end - trailingStart);
        window.offset = window.end;
        return;
      }
      if (state === 'events') {
        const batch = parser.parse(window.bytes, window.offset, window.end, last);
        reading.onBatch(batch, 0);
        window.offset = batch.consumed;
        if (!batch.closed) return;
        state = isBareArray ? 'end' : 'tail';
        continue;
      }
      const top = readTopLevel(window.bytes, window.offset, window.end, !started, facts);
      if (top.state === 'malformed') {
        throw damagedTrace(path, `The text ${started ? 'after' : 'before'} its events is not JSON.`);
      }
      if (top.state === 'incomplete') return;
      window.offset = top.offset;
      started = true;
      isBareArray = top.isBareArray;
      state = top.state;
      if (state === 'events' && eventLists++ > 0) reading.onSecondList();
    }
  }

  for await (const part of source.chunks()) {
    appendPart(window, part);
    if (window.end < neededBytes) continue;
    checkSignal(reading.signal);
    readAvailable(false);
    compact(window);
    if (window.end > maximumTokenBytes) {
      throw damagedTrace(path, `One event or value is longer than ${formatBytes(maximumTokenBytes)}.`);
    }
    // The next attempt waits for twice as much, so that a huge event is not rescanned for every block.
    neededBytes = Math.max(chunkBytes, 2 * window.end);
    reading.onProgress(source.share());
  }
  readAvailable(true);
  if (state !== 'end') throw truncatedTrace(path);
}

/**
 * Reads a trace with worker threads: this thread splits it at event starts, decompresses it, and takes the results in
 * order.
 * @throws NotSplittable, E_TRACE_FILE, E_INTERRUPTED
 */
export async function readWithWorkers(reading: Reading, lanes: Lanes): Promise<void> {
  const { path, source, facts } = reading;
  const free: Uint8Array[] = [];
  const running: Promise<ParsedChunk>[] = [];
  let nextLane = 0;
  let window = emptyWindow();
  let started = false;

  function startChunk(end: number, last: boolean): void {
    const { bytes, offset } = window;
    const remainingBytes = bytes.subarray(end, window.end);
    const next: Window = { bytes: free.pop() ?? emptyWindow().bytes, offset: 0, end: 0 };
    appendPart(next, remainingBytes);
    bytes.fill(0, end, end + sentinelBytes);
    running.push(lanes.parse(nextLane, { buffer: bytes, from: offset, end, last }));
    running.at(-1)!.catch(() => undefined);
    nextLane = (nextLane + 1) % lanes.count;
    window = next;
  }

  /**
   * Takes the result of the oldest running chunk.
   * @param last the chunk is the last one of the file
   */
  async function finishOne(last: boolean): Promise<ParsedChunk> {
    const parsed = await running.shift()!;
    const { batch } = parsed;
    if (!last && (batch.closed || batch.damaged > 0)) throw new NotSplittable();
    reading.onBatch(batch, parsed.lane);
    if (!last && parsed.buffer.length <= 4 * chunkBytes) free.push(parsed.buffer);
    return parsed;
  }

  for await (const part of source.chunks()) {
    appendPart(window, part);
    if (window.end < chunkBytes) continue;
    checkSignal(reading.signal);
    if (!started) {
      const top = readTopLevel(window.bytes, window.offset, window.end, true, facts);
      if (top.state !== 'events' || top.isBareArray) throw new NotSplittable();
      window.offset = top.offset;
      started = true;
    }
    const cut = lastEventStart(Buffer.from(window.bytes.buffer), window.end);
    if (cut <= window.offset) throw new NotSplittable();
    startChunk(cut, false);
    if (running.length > lanes.count + 1) await finishOne(false);
    reading.onProgress(source.share());
  }
  if (!started) throw new NotSplittable();
  const { end } = window;
  startChunk(end, true);
  while (running.length > 1) await finishOne(false);
  const { batch, buffer } = await finishOne(true);
  if (!batch.closed) throw truncatedTrace(path);
  const top = readTopLevel(buffer, batch.consumed, end, false, facts);
  if (top.state === 'events') throw new NotSplittable();
  if (top.state === 'malformed') throw damagedTrace(path, 'The text after its events is not JSON.');
  if (top.state !== 'end') throw truncatedTrace(path);
  const trailingStart = skipSpace(buffer, top.offset);
  if (trailingStart < end) reading.onTrailing(end - trailingStart);
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw interrupted();
}
